package dash_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/foresay/foresay/driver"

	"github.com/foresay/foresay"
	"github.com/foresay/foresay/control"
	"github.com/foresay/foresay/dash"
)

// later answers a call after a delay.
type later struct {
	delay time.Duration
	value any
}

func (l *later) Start(ctx context.Context, a *driver.Attempt) {
	go func() {
		t := time.NewTimer(l.delay)
		defer t.Stop()
		select {
		case <-t.C:
			a.Finish(l.value, nil)
		case <-ctx.Done():
			a.Finish(nil, ctx.Err())
		}
	}()
}
func (l *later) Equal(p, a any) bool      { return p == a }
func (l *later) Same(a, b any) bool       { return a == b }
func (l *later) Accept(v any) (any, bool) { return v, true }

// shop is a Control with two sites, whose tasks ask one after the other.
type shop struct {
	control       *control.Control
	prices, stock *control.CallSite
}

func newShop(t testing.TB, cfg control.Config) *shop {
	t.Helper()
	c, err := control.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	s := &shop{control: c}
	for name, to := range map[string]**control.CallSite{"/shop.Prices/Get": &s.prices, "/shop.Stock/Get": &s.stock} {
		if *to, err = c.NewCallSite(control.CallSiteConfig{Name: name, Effect: control.EffectNone, Mode: control.ModeOn},
			"shop:443"); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

// task asks for a price, predicted rightly or wrongly, and then for the stock.
func (s *shop) task(t testing.TB, ctx context.Context, name string, right bool, delay time.Duration) {
	guess := 7
	if !right {
		guess = 8
	}
	_, err := foresay.Do(s.control.Context(ctx), func(ctx context.Context) (int, error) {
		price, err := driver.Perform(foresay.Predicting(ctx, guess), &driver.Operation{
			CallSite: s.prices, Identity: name, CanSpeculate: true, Transport: &later{delay, 7},
		})
		if err != nil {
			return 0, err
		}
		stock, err := driver.Perform(ctx, &driver.Operation{
			CallSite: s.stock, Identity: fmt.Sprint(name, price), CanSpeculate: true, Transport: &later{delay, 1},
		})
		if err != nil {
			return 0, err
		}
		return price.(int) + stock.(int), nil
	}, foresay.WithName(name))
	if err != nil && ctx.Err() == nil {
		t.Errorf("task %s: %v", name, err)
	}
}

// memory is a listener in memory.
type memory struct {
	conns chan net.Conn
	once  sync.Once
	done  chan struct{}
}

func (p *memory) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.done:
		return nil, net.ErrClosed
	}
}

func (p *memory) Close() error {
	p.once.Do(func() { close(p.done) })
	return nil
}

func (p *memory) Addr() net.Addr { return &net.UnixAddr{Name: "memory"} }

func (p *memory) dial(context.Context, string, string) (net.Conn, error) {
	mine, theirs := net.Pipe()
	select {
	case p.conns <- theirs:
		return mine, nil
	case <-p.done:
		return nil, errors.New("connection refused")
	}
}

// site is a server in memory, with a client of it.
type site struct {
	server *http.Server
	client *http.Client
	pipes  *memory
}

func serve(t testing.TB, h http.Handler) *site {
	p := &memory{conns: make(chan net.Conn), done: make(chan struct{})}
	s := &site{server: &http.Server{Handler: h}, pipes: p}
	tr := &http.Transport{DialContext: p.dial}
	s.client = &http.Client{Transport: tr}
	served := make(chan struct{})
	go func() {
		defer close(served)
		_ = s.server.Serve(p)
	}()
	t.Cleanup(func() {
		tr.CloseIdleConnections()
		s.server.Close()
		<-served
		time.Sleep(time.Second) // what a server waits for after a body that was too long
	})
	return s
}

// ask returns the code and the body of an answer.
func (s *site) ask(t testing.TB, method, name, body string, header ...string) (int, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, "http://shop"+dash.Path+name, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	if method == http.MethodPost {
		req.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i+1 < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	resp, err := s.client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(b)
}

// event is a server-sent event, and when it came.
type event struct {
	id, kind, data string
	at             time.Time
}

// listen opens a stream of events, which ends with ctx. What arrives is told one
// after the other.
func (s *site) listen(t testing.TB, ctx context.Context, take func(event)) (ended <-chan error) {
	t.Helper()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://shop"+dash.Path+"events", nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := s.client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	if resp.StatusCode != http.StatusOK || resp.Header.Get("Content-Type") != "text/event-stream" {
		t.Fatalf("events: %s, %v", resp.Status, resp.Header)
	}
	out := make(chan error, 1)
	go func() {
		defer resp.Body.Close()
		lines := bufio.NewScanner(resp.Body)
		lines.Buffer(nil, 8<<20)
		var e event
		for lines.Scan() {
			switch name, value, _ := strings.Cut(lines.Text(), ": "); name {
			case "id":
				e.id = value
			case "event":
				e.kind = value
			case "data":
				e.data = value
			case "":
				if e.kind != "" {
					e.at = time.Now()
					take(e)
				}
				e = event{}
			}
		}
		out <- lines.Err()
	}()
	return out
}

// log is what a stream told.
type log struct {
	mu     sync.Mutex
	events []event
}

func (l *log) take(e event) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.events = append(l.events, e)
}

// of returns the events of a kind, decoded.
func of[T any](t testing.TB, l *log, kind string) (values []T, at []time.Time) {
	t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, e := range l.events {
		if e.kind != kind {
			continue
		}
		var v T
		if err := json.Unmarshal([]byte(e.data), &v); err != nil {
			t.Fatalf("event %s: %v: %s", kind, err, e.data)
		}
		values, at = append(values, v), append(at, e.at)
	}
	return values, at
}
