// Package metrics serves a process's figures over HTTP, as Prometheus scrapes them.
package metrics

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/pprof"
	"time"

	"github.com/foresay/foresay/host"
	"github.com/foresay/foresay/transport"
)

// Bounds of the requests.
const (
	timeout      = 5 * time.Second
	shutdownTime = time.Second
)

// Serve serves pages at a listener, which it closes, until ctx ends.
func Serve(ctx context.Context, l net.Listener, h http.Handler) error {
	server := &http.Server{Handler: h, ReadTimeout: timeout, WriteTimeout: timeout, IdleTimeout: time.Minute}
	served := make(chan error, 1)
	go func() { served <- server.Serve(l) }()
	select {
	case err := <-served:
		return fmt.Errorf("metrics: %w", err)
	case <-ctx.Done():
	}
	stop, cancel := context.WithTimeout(context.WithoutCancel(ctx), shutdownTime)
	defer cancel()
	err := server.Shutdown(stop)
	if errors.Is(err, context.DeadlineExceeded) {
		err = server.Close()
	}
	<-served
	return err
}

// Node adds what a node has done. Names begin with the prefix.
func Node(page *Page, prefix string, n host.NodeStats, labels ...string) {
	page.Counter(prefix+"steps_total", "Calls of the node.", n.Steps, labels...)
	page.Gauge(prefix+"queued_messages", "Messages that the node has not looked at.", float64(n.Queued), labels...)
	page.Gauge(prefix+"queued_bytes", "Their size.", float64(n.QueuedBytes), labels...)
	page.Gauge(prefix+"held_messages", "Messages that wait for the disk.", float64(n.Held), labels...)
	page.Counter(prefix+"dropped_messages_total", "Messages that came to a full queue.", n.Dropped, labels...)
	page.Counter(prefix+"malformed_messages_total", "Messages that could not be read.", n.Malformed, labels...)
	page.Counter(prefix+"disk_operations_total", "Operations that were committed to the disk.", n.Ops, labels...)
	page.Counter(prefix+"disk_records_total", "Records of logs among them.", n.Records, labels...)
}

// Network adds what a host's network has done. Names begin with the prefix.
func Network(page *Page, prefix string, n transport.Stats) {
	page.Counter(prefix+"received_messages_total", "Messages that arrived.", n.Received)
	page.Gauge(prefix+"client_streams", "Clients that are connected.", float64(n.Clients))
	page.Counter(prefix+"refused_handshakes_total", "Connections without a valid certificate.", n.RefusedHandshakes)
}

// NewMux returns a mux that answers /debug/pprof/: the process's profiles, for go tool pprof.
func NewMux() *http.ServeMux {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /debug/pprof/", pprof.Index) // and the named profiles below it
	mux.HandleFunc("GET /debug/pprof/cmdline", pprof.Cmdline)
	mux.HandleFunc("GET /debug/pprof/profile", pprof.Profile)
	mux.HandleFunc("GET /debug/pprof/symbol", pprof.Symbol)
	mux.HandleFunc("GET /debug/pprof/trace", pprof.Trace)
	return mux
}
