package command

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os/exec"
	"runtime"
	"time"

	"github.com/spf13/pflag"
	"golang.org/x/sync/errgroup"

	"github.com/foresay/foresay/dash"
)

// PageFlags say where a page is served.
type PageFlags struct {
	listen string
	open   bool
	Risk   string // what others can do who reach the page
}

// Add adds the flags.
func (f *PageFlags) Add(flags *pflag.FlagSet) {
	flags.StringVar(&f.listen, "listen", "127.0.0.1:0", "serve the page at this `ADDR`; port 0 is any that is free")
	flags.BoolVar(&f.open, "open", false, "open the page in the browser")
}

// ServePage serves a dashboard until ctx is done, beside what work does. The end
// of work ends it as well.
func (p *Program) ServePage(
	ctx context.Context, f PageFlags, page http.Handler, work func(context.Context) error,
) error {
	lis, err := net.Listen("tcp", f.listen)
	if err != nil {
		return fmt.Errorf("dash: --listen %s: %w", f.listen, err)
	}
	mux := http.NewServeMux()
	mux.Handle(dash.Path, page)
	mux.Handle("/{$}", http.RedirectHandler(dash.Path, http.StatusFound))
	s := &http.Server{Handler: known(lis.Addr(), mux), ReadHeaderTimeout: 10 * time.Second}
	address := "http://" + visited(lis.Addr()) + dash.Path
	if !ownOnly(lis.Addr()) {
		fmt.Fprintf(p.Err, "foresay: warning: --listen %s: other machines can reach the page: %s\n", f.listen, f.Risk)
	}
	p.visit(address)
	if f.open {
		if err := browse(ctx, address); err != nil {
			fmt.Fprintf(p.Err, "--open: %v\n", err)
		}
	}
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error {
		if err := s.Serve(lis); !errors.Is(err, http.ErrServerClosed) {
			return fmt.Errorf("dash: %w", err)
		}
		return nil
	})
	g.Go(func() error {
		<-ctx.Done()
		last, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*time.Second)
		defer cancel()
		if s.Shutdown(last) != nil {
			return s.Close()
		}
		return nil
	})
	g.Go(func() error {
		err := work(ctx)
		if ctx.Err() != nil {
			return nil // it was interrupted
		}
		if err == nil {
			err = errors.New("dash: what the page shows has ended")
		}
		return err
	})
	return g.Wait()
}

// visited is an address as a browser of this machine reaches it.
func visited(addr net.Addr) string {
	host, port, err := net.SplitHostPort(addr.String())
	if ip := net.ParseIP(host); err == nil && ip != nil && ip.IsUnspecified() {
		return net.JoinHostPort("localhost", port)
	}
	return addr.String()
}

// ownOnly reports whether only programs of this machine reach an address.
func ownOnly(addr net.Addr) bool {
	tcp, ok := addr.(*net.TCPAddr)
	return ok && tcp.IP.IsLoopback()
}

// known refuses requests for names that are not this machine's own, if nobody
// else is to be served: a foreign page can have its name lead here.
func known(addr net.Addr, next http.Handler) http.Handler {
	if !ownOnly(addr) {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		host, _, err := net.SplitHostPort(r.Host)
		if err != nil {
			host = r.Host
		}
		if ip := net.ParseIP(host); host != "localhost" && (ip == nil || !ip.IsLoopback()) {
			http.Error(w, fmt.Sprintf("dash: this page is at %s, not at %q", addr, r.Host), http.StatusMisdirectedRequest)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// browse opens an address in the browser.
func browse(ctx context.Context, address string) error {
	name, args := "xdg-open", []string{address}
	switch runtime.GOOS {
	case "darwin":
		name = "open"
	case "windows":
		name, args = "rundll32", []string{"url.dll,FileProtocolHandler", address}
	}
	c := exec.CommandContext(ctx, name, args...)
	if err := c.Start(); err != nil {
		return fmt.Errorf("no browser opens here: %w", err)
	}
	go func() { _ = c.Wait() }() // it ends with ctx, and nobody asks how
	return nil
}

// visit is what somebody is told who may open the page.
func (p *Program) visit(address string) { fmt.Fprintf(p.Out, "The dashboard is at %s\n", address) }
