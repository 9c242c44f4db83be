package main

import (
	"context"
	"errors"
	"net"
	"net/http"
	"sync"
)

// serveDebug serves the debug endpoint. stop ends it.
func (f *front) serveDebug(address string) (stop func(), err error) {
	if f.foresay == nil {
		return nil, errors.New("--debug: there is nothing to see without Foresay")
	}
	lis, err := net.Listen("tcp", address)
	if err != nil {
		return nil, err
	}
	server := &http.Server{Handler: f.debug}
	var loop sync.WaitGroup
	loop.Go(func() { _ = server.Serve(lis) }) // ends with Shutdown
	return func() {
		_ = server.Shutdown(context.Background()) // does not fail: its context does not end
		loop.Wait()
	}, nil
}

// fromHere lets everybody on this machine switch.
func fromHere(r *http.Request) error {
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	if err == nil && !net.ParseIP(host).IsLoopback() {
		err = errors.New("this is for requests from the same machine only")
	}
	return err
}
