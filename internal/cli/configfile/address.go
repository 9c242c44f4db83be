package configfile

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
)

// CheckAddress looks at an address that somebody dials or, if listen is set, listens at.
func CheckAddress(field, address string, listen bool) error {
	if address == "" {
		return Fieldf(field, "it is missing; want host:port")
	}
	host, port, err := net.SplitHostPort(address)
	switch addr := (*net.AddrError)(nil); {
	case errors.As(err, &addr):
		return Fieldf(field, "%q: %s; want host:port", address, addr.Err)
	case err != nil:
		return Field(field, err)
	case host == "" && !listen:
		return Fieldf(field, "%q has no host", address)
	}
	if _, err := net.LookupPort("tcp", port); err != nil {
		return Fieldf(field, "%q has no port", address)
	}
	return nil
}

// Where free ports are looked for: below those that systems give to connections, which come and go.
const (
	lowPort   = 10000
	highPort  = 30000
	portTries = 200
)

// FreeBeside returns a free address of the host of another one.
func FreeBeside(address string) (string, error) {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return "", err
	}
	free, err := FreeAddresses(host, 0, 1)
	if err != nil {
		return "", err
	}
	return free[0], nil
}

// FreeAddresses returns addresses of a host, with ports in a row from first on, or if that is 0,
// with ports that nobody listens at now.
func FreeAddresses(host string, first, n int) ([]string, error) {
	at := func(port int) []string {
		out := make([]string, n)
		for i := range out {
			out[i] = net.JoinHostPort(host, strconv.Itoa(port+i))
		}
		return out
	}
	if first != 0 {
		return at(first), nil
	}
	var err error
	for range portTries {
		addresses := at(lowPort + rand.IntN(highPort-lowPort-n))
		if err = allFree(addresses); err == nil {
			return addresses, nil
		}
		if unknown, ok := errors.AsType[*net.DNSError](err); ok {
			return nil, unknown // each other port would only ask for the name again
		}
	}
	return nil, fmt.Errorf("no %d free ports in a row: %w", n, err)
}

func allFree(addresses []string) error {
	for _, a := range addresses {
		l, err := net.Listen("tcp", a)
		if err != nil {
			return err
		}
		if err := l.Close(); err != nil {
			return err
		}
	}
	return nil
}
