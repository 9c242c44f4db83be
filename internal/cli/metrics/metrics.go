// Package metrics serves a process's page of figures, in Prometheus' text format, over HTTP.
package metrics

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"
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

// ContentType is that of what Page writes.
const ContentType = "text/plain; version=0.0.4"

// A Page writes figures. It ignores errors of its writer, which is memory.
type Page struct{ io.Writer }

// Kinds of figures.
const (
	Gauge   = "gauge"
	Counter = "counter"
)

// Head begins a figure of many values, which Value writes.
func (p Page) Head(name, kind, help string) {
	fmt.Fprintf(p, "# HELP foresay_%s %s\n# TYPE foresay_%s %s\n", name, help, name, kind)
}

// Value writes one value; labels are such as member="1", empty for none.
func (p Page) Value(name, labels string, value any) {
	if labels != "" {
		labels = "{" + labels + "}"
	}
	if b, ok := value.(bool); ok {
		value = 0
		if b {
			value = 1
		}
	}
	fmt.Fprintf(p, "foresay_%s%s %v\n", name, labels, value)
}

// One writes a figure of one value.
func (p Page) One(name, kind, help string, value any) {
	p.Head(name, kind, help)
	p.Value(name, "", value)
}
