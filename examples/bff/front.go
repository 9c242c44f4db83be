package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	bffv1 "github.com/foresay/foresay/api/foresay/bff/v1"
	"github.com/foresay/foresay/setup"
)

// rung is one step on the ladder.
type rung struct {
	name string
	mode string // of the methods in the site file
	// observed: requests are observed.
	observed bool
	// prepared: pages are made in tasks, and services can be called on a guess.
	prepared bool
	// share is that of the requests, in mode canary or shadow.
	share float64
}

// rungs are in the order in which one climbs them.
func rungs() []rung {
	return []rung{
		{name: "plain"},
		{name: "observe", observed: true},
		{name: "prepared", mode: "observe", observed: true, prepared: true},
		{name: "shadow", mode: "shadow", observed: true, prepared: true, share: 0.1},
		{name: "canary", mode: "canary", observed: true, prepared: true, share: 0.2},
		{name: "on", mode: "on", observed: true, prepared: true},
		{name: "off", mode: "off", observed: true, prepared: true},
	}
}

// callSiteFile returns the file of sites for this rung: the methods of which observe
// says that it is worth it to predict them.
func (r rung) callSiteFile() string {
	var sites []string
	for _, method := range []string{bffv1.Users_GetUser_FullMethodName, bffv1.Permissions_Check_FullMethodName} {
		mode := strconv.Quote(r.mode)
		if r.share > 0 {
			mode += fmt.Sprintf(`, "share": %v`, r.share)
		}
		sites = append(sites, fmt.Sprintf(`  {"method": %q, "mode": %s, "predictors": [{"kind": "last"}]}`, method, mode))
	}
	return "{\"sites\": [\n" + strings.Join(sites, ",\n") + "\n]}\n"
}

// front is the BFF at work.
type front struct {
	handler http.Handler
	debug   *http.ServeMux // serves what operators look at
	foresay *setup.Process // nil if nothing is observed
	address string

	closers []io.Closer
	server  *http.Server
	loop    sync.WaitGroup
}

// startPlain starts the front without Foresay.
func startPlain(n network, s *services) (*front, error) {
	f := &front{debug: http.NewServeMux()}
	var conns []grpc.ClientConnInterface
	for _, lis := range s.listeners {
		conn, err := grpc.NewClient(target(lis), dialOptions(n)...)
		if err != nil {
			return f, err
		}
		f.closers, conns = append(f.closers, conn), append(conns, conn)
	}
	f.handler = newMux(newClients(conns).page)
	return f, f.serve(n)
}

// startObserved starts the front with its requests observed. Pages are made as
// without Foresay.
func startObserved(n network, s *services) (_ *front, err error) {
	f := &front{debug: http.NewServeMux()}
	if f.foresay, err = setup.New(f.debug, setup.Config{Name: "bff", Authorize: fromHere}); err != nil {
		return f, err
	}
	var conns []grpc.ClientConnInterface
	for _, lis := range s.listeners {
		conn, err := f.foresay.NewClient(target(lis), dialOptions(n)...)
		if err != nil {
			return f, err
		}
		f.closers, conns = append(f.closers, conn), append(conns, conn)
	}
	f.handler = f.foresay.Handler(newMux(newClients(conns).page))
	return f, f.serve(n)
}

// startPrepared starts the front with pages made in tasks, in the modes that the
// site file says.
func startPrepared(n network, s *services, callSiteFile string) (_ *front, err error) {
	f := &front{debug: http.NewServeMux()}
	cfg := setup.Config{Name: "bff", Authorize: fromHere, CallSiteFile: callSiteFile}
	if f.foresay, err = setup.New(f.debug, cfg); err != nil {
		return f, err
	}
	var conns []grpc.ClientConnInterface
	for _, lis := range s.listeners {
		conn, err := f.foresay.NewClient(target(lis), dialOptions(n)...)
		if err != nil {
			return f, err
		}
		f.closers, conns = append(f.closers, conn), append(conns, conn)
	}
	f.handler = f.foresay.Handler(newMux(newClients(conns).speculativePage))
	return f, f.serve(n)
}

// start starts the front as it is on a rung.
func (r rung) start(n network, s *services, callSiteFile string) (*front, error) {
	switch {
	case r.prepared:
		return startPrepared(n, s, callSiteFile)
	case r.observed:
		return startObserved(n, s)
	default:
		return startPlain(n, s)
	}
}

// serve serves the handler.
func (f *front) serve(n network) error {
	lis, err := n.Listen(frontSite)
	if err != nil {
		return err
	}
	f.address = lis.Addr().String()
	f.server = &http.Server{Handler: f.handler}
	f.loop.Go(func() { _ = f.server.Serve(lis) }) // ends with Shutdown
	return nil
}

// stop stops the front when it is done with what it does.
func (f *front) stop() error {
	var errs []error
	if f.server != nil {
		errs = append(errs, f.server.Shutdown(context.Background()))
		f.loop.Wait()
	}
	for _, c := range f.closers {
		errs = append(errs, c.Close())
	}
	return errors.Join(errs...)
}

func target(lis net.Listener) string { return "passthrough:///" + lis.Addr().String() }

func dialOptions(n network) []grpc.DialOption {
	return []grpc.DialOption{
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, address string) (net.Conn, error) {
			return n.Dial(ctx, frontSite, address)
		}),
	}
}
