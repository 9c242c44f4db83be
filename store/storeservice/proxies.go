package storeservice

import (
	"context"
	"errors"
	"io"
	"net"
	"sync"
	"time"

	"github.com/foresay/foresay/wan"
	"github.com/foresay/foresay/wan/shape"
)

// proxies let processes elsewhere use a network in this one: who connects to a proxy is connected
// to a machine as from a site of the network.
type proxies struct {
	net  *shape.Network
	ctx  context.Context
	stop context.CancelFunc
	wg   sync.WaitGroup

	mu   sync.Mutex
	open map[[2]string]string // where they listen, by site and address
}

func newProxies(n *shape.Network) *proxies {
	p := &proxies{net: n, open: map[[2]string]string{}}
	p.ctx, p.stop = context.WithCancel(context.Background())
	return p
}

// at returns where the machine at an address is found, as from a site.
func (p *proxies) at(from wan.Site, address string) (string, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	key := [2]string{string(from), address}
	if at, ok := p.open[key]; ok {
		return at, nil
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	context.AfterFunc(p.ctx, func() { l.Close() })
	p.wg.Go(func() {
		for {
			c, err := l.Accept()
			if errors.Is(err, net.ErrClosed) {
				return
			}
			if err != nil { // too many files, say
				time.Sleep(10 * time.Millisecond)
				continue
			}
			p.wg.Go(func() { p.carry(c, from, address) })
		}
	})
	p.open[key] = l.Addr().String()
	return p.open[key], nil
}

// carry connects a connection with a machine, until either end closes.
func (p *proxies) carry(near net.Conn, from wan.Site, address string) {
	defer near.Close()
	far, err := p.net.Dial(p.ctx, from, address)
	if err != nil {
		return
	}
	defer far.Close()
	defer context.AfterFunc(p.ctx, func() {
		near.Close()
		far.Close()
	})()
	ended := make(chan struct{})
	go func() {
		io.Copy(far, near) // ends with either connection
		far.Close()
		close(ended)
	}()
	io.Copy(near, far)
	near.Close()
	<-ended
}

func (p *proxies) close() {
	p.stop()
	p.wg.Wait()
}
