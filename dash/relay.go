package dash

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Service is a service whose dashboard a Relay shows.
type Service struct {
	// URL is where its Handler is: scheme, host, and the path that ends in Path.
	URL string
	// Name is what the page calls it. Default: as it calls itself.
	Name string
	// Header is sent with each request, such as what authorises it.
	Header http.Header
}

// RelayConfig configures a Relay.
type RelayConfig struct {
	// Services are shown in this order: at least one, at most 64.
	Services []Service
	// Client makes the requests. Its Timeout must be 0: streams do not end. Default:
	// one that waits ten seconds for the beginning of an answer.
	Client *http.Client
	// Retry is how long after a failure a service is asked again. Default 1 s.
	Retry time.Duration
	// Authorize decides who may switch what the services let the Relay switch. nil:
	// nobody.
	Authorize func(*http.Request) error
	// Logger is told of services that go up and down. Default: nobody.
	Logger *slog.Logger
}

// maxServices bounds the services of a Relay.
const maxServices = 64

// Relay shows the dashboards of several services as one page, to which it is the
// only server that the browser talks to. Services that are down are shown as
// such, and asked again. It serves while Run runs, and is safe for concurrent use.
type Relay struct {
	cfg     RelayConfig
	peers   []*peer
	streams streams
	guard   *http.CrossOriginProtection
}

// NewRelay validates the configuration.
func NewRelay(cfg RelayConfig) (*Relay, error) {
	switch n := len(cfg.Services); {
	case n == 0:
		return nil, errors.New("dash: relay: there are no Services")
	case n > maxServices:
		return nil, fmt.Errorf("dash: relay: %d Services; at most %d can be shown", n, maxServices)
	case cfg.Retry < 0:
		return nil, fmt.Errorf("dash: relay: Retry is %v; want 0 for the default, or more", cfg.Retry)
	case cfg.Client != nil && cfg.Client.Timeout != 0:
		return nil, fmt.Errorf("dash: relay: the Client's Timeout is %v; it would end the streams", cfg.Client.Timeout)
	}
	if cfg.Retry == 0 {
		cfg.Retry = time.Second
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	if cfg.Client == nil {
		t := http.DefaultTransport.(*http.Transport).Clone()
		t.ResponseHeaderTimeout = 10 * time.Second
		cfg.Client = &http.Client{Transport: t}
	}
	r := &Relay{cfg: cfg, guard: http.NewCrossOriginProtection()}
	for i, s := range cfg.Services {
		u, err := url.Parse(s.URL)
		if err != nil {
			return nil, fmt.Errorf("dash: relay: service %d: %w", i+1, err)
		}
		if u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.RawQuery != "" || u.Fragment != "" {
			return nil, fmt.Errorf("dash: relay: service %d: %q is no address such as http://host:port%s", i+1, s.URL, Path)
		}
		if !strings.HasSuffix(u.Path, "/") {
			u.Path += "/"
		}
		id := strconv.Itoa(i)
		name := s.Name
		if name == "" {
			name = u.Host
		}
		r.peers = append(r.peers, &peer{
			cfg: &r.cfg, named: s.Name != "", url: u, header: maps.Clone(s.Header),
			feed: newFeed(service{ID: id, Base: "s/" + id + "/", Name: name, Addr: u.Host, Error: "not asked yet"}),
		})
	}
	return r, nil
}

// Run follows the services until ctx is done, and returns why that is.
func (r *Relay) Run(ctx context.Context) error {
	var all sync.WaitGroup
	for _, p := range r.peers {
		all.Go(func() { p.run(ctx) })
	}
	all.Wait()
	return context.Cause(ctx)
}

// ServeHTTP implements http.Handler, for Path or "/".
func (r *Relay) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	name, ok := below(w, req)
	if !ok {
		return
	}
	if rest, found := strings.CutPrefix(name, "s/"); found {
		id, what, _ := strings.Cut(rest, "/")
		r.forward(w, req, id, what)
		return
	}
	if name != "events" {
		servePage(w, req, name)
		return
	}
	if !allow(w, req, http.MethodGet) {
		return
	}
	feeds := make([]*feed, len(r.peers))
	for i, p := range r.peers {
		feeds[i] = p.feed
	}
	r.streams.serve(w, req, feeds, r.authorize(req) == nil, nil)
}

func (r *Relay) authorize(req *http.Request) error {
	if r.cfg.Authorize == nil {
		return errors.New("this dashboard is read-only: its dash.RelayConfig has no Authorize")
	}
	return r.cfg.Authorize(req)
}

// forward hands a switch on to its service.
func (r *Relay) forward(w http.ResponseWriter, req *http.Request, id, what string) {
	i, err := strconv.Atoi(id)
	if err != nil || i < 0 || i >= len(r.peers) || what != "mode" && what != "kill" {
		http.Error(w, fmt.Sprintf("dash: there is no %s here", req.URL.Path), http.StatusNotFound)
		return
	}
	if !allow(w, req, http.MethodPost) {
		return
	}
	if err := errors.Join(r.guard.Check(req), r.authorize(req)); err != nil {
		http.Error(w, "dash: "+what+": "+err.Error(), http.StatusForbidden)
		return
	}
	var body json.RawMessage
	if code, err := decode(w, req, what, &body); err != nil {
		http.Error(w, "dash: "+what+": "+err.Error(), code)
		return
	}
	code, text, err := r.peers[i].post(req.Context(), what, body)
	if err != nil {
		http.Error(w, "dash: "+what+": "+err.Error(), http.StatusBadGateway)
		return
	}
	if code == http.StatusNoContent {
		w.WriteHeader(code)
		return
	}
	http.Error(w, text, code)
}
