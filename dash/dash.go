package dash

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/foresay/foresay/control"
	"github.com/foresay/foresay/observe"
)

// Path is where services serve a Handler: what reads them looks there.
const Path = "/debug/foresay/"

// Config configures a Handler.
type Config struct {
	// Control is whose call sites and tasks are shown. Required.
	Control *control.Control
	// Collector is where the service's observations come together: the page shows
	// its report. nil: there is none.
	Collector *observe.Collector
	// Authorize decides who may switch modes and the kill switch: it returns nil for
	// a request that may. nil: nobody.
	Authorize func(*http.Request) error
	// Name is the service's name on the page. Default: the host of the page's address.
	Name string
	// Logger is told of answers that could not be given. Default: nobody.
	Logger *slog.Logger
}

// maxStreams bounds the pages that may be open at one time.
const maxStreams = 64

// handler is what Handler returns.
type handler struct {
	cfg     Config
	source  *source
	streams streams
	guard   *http.CrossOriginProtection
}

// Handler serves the page and its data. It samples the Control every two
// seconds, so that a page shows the ten minutes before it was opened; this ends
// when the handler is no longer referred to. It starts no goroutine that stays:
// streams of events run in their requests, and end with these or when the
// http.Server is shut down. Pages that are slow to read skip what they missed.
func Handler(cfg Config) http.Handler {
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	h := &handler{cfg: cfg, guard: http.NewCrossOriginProtection()}
	if cfg.Control != nil {
		h.source = newSource(cfg)
		h.source.watch()
	}
	return h
}

// ServeHTTP implements http.Handler.
func (h *handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if h.source == nil {
		http.Error(w, "dash: the service gave the dashboard no Control", http.StatusInternalServerError)
		return
	}
	name, ok := below(w, r)
	if !ok {
		return
	}
	switch name {
	case "status":
		h.get(w, r, func() (any, error) { return h.cfg.Control.Status(), nil })
	case "report":
		h.report(w, r)
	case "tasks":
		h.tasks(w, r)
	case "rights":
		h.get(w, r, func() (any, error) { return h.rights(r), nil })
	case "events":
		if !allow(w, r, http.MethodGet) {
			return
		}
		about := h.rights(r)
		h.source.feed.tell(about)
		h.streams.serve(w, r, []*feed{h.source.feed}, about.Switch, h.source.refresh)
	case "mode", "kill":
		h.post(w, r, name)
	default:
		servePage(w, r, name)
	}
}

// below returns the name below Path, whether or not the path before it has been
// stripped.
func below(w http.ResponseWriter, r *http.Request) (name string, ok bool) {
	path := r.URL.Path
	if path == strings.TrimSuffix(Path, "/") {
		http.Redirect(w, r, Path, http.StatusMovedPermanently)
		return "", false
	}
	return strings.TrimPrefix(strings.TrimPrefix(path, Path), "/"), true
}

// Rights is what GET rights answers.
type Rights struct {
	// Name is the service's.
	Name string `json:"name"`
	// Switch says that the requester may POST mode and kill. Reason says why not.
	Switch bool   `json:"switch"`
	Reason string `json:"reason,omitempty"`
	// Report says that there is one.
	Report bool `json:"report"`
}

func (h *handler) rights(r *http.Request) Rights {
	out := Rights{Name: h.cfg.Name, Report: h.cfg.Collector != nil, Switch: true}
	if out.Name == "" {
		out.Name = r.Host
	}
	if err := h.authorize(r); err != nil {
		out.Switch, out.Reason = false, err.Error()
	}
	return out
}

// allow refuses requests with another method.
func allow(w http.ResponseWriter, r *http.Request, method string) bool {
	if r.Method == method || r.Method == http.MethodHead && method == http.MethodGet {
		return true
	}
	w.Header().Set("Allow", method)
	http.Error(w, fmt.Sprintf("dash: %s %s: want %s", r.Method, r.URL.Path, method), http.StatusMethodNotAllowed)
	return false
}

// get answers with a value as JSON.
func (h *handler) get(w http.ResponseWriter, r *http.Request, value func() (any, error)) {
	if !allow(w, r, http.MethodGet) {
		return
	}
	v, err := value()
	if err != nil {
		http.Error(w, "dash: "+err.Error(), http.StatusBadRequest)
		return
	}
	body, err := json.Marshal(v)
	if err != nil {
		h.cfg.Logger.Error("dash: encode", "path", r.URL.Path, "error", err)
		http.Error(w, "dash: "+err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	_, _ = w.Write(append(body, '\n')) // a requester that left needs no answer
}

func (h *handler) report(w http.ResponseWriter, r *http.Request) {
	if h.cfg.Collector == nil {
		http.Error(w, "dash: this service collects no observations: give dash.Config a Collector", http.StatusNotFound)
		return
	}
	h.get(w, r, func() (any, error) { return h.cfg.Collector.Report(h.cfg.Control), nil })
}

// Tasks is what GET tasks answers.
type Tasks struct {
	// Total is how many reports were kept, ever: what to ask for the next time.
	Total uint64 `json:"total"`
	// Tasks are those that are still kept, oldest first.
	Tasks []Task `json:"tasks"`
}

func (h *handler) tasks(w http.ResponseWriter, r *http.Request) {
	h.get(w, r, func() (any, error) {
		after := uint64(0)
		if s := r.URL.Query().Get("after"); s != "" {
			var err error
			if after, err = strconv.ParseUint(s, 10, 64); err != nil {
				return nil, fmt.Errorf("tasks: after=%q is not a number of tasks", s)
			}
		}
		reports, total := h.cfg.Control.Tasks(after)
		out := Tasks{Total: total, Tasks: make([]Task, len(reports))}
		for i, t := range reports {
			out.Tasks[i] = newTask(t, total-uint64(len(reports)-i)+1)
		}
		return out, nil
	})
}

// streams counts open streams, and ends them with their servers.
type streams struct {
	open    atomic.Int64
	servers servers
}

func (s *streams) serve(w http.ResponseWriter, r *http.Request, feeds []*feed, may bool, refresh func(time.Time)) {
	if s.open.Add(1) > maxStreams {
		s.open.Add(-1)
		w.Header().Set("Retry-After", "10")
		http.Error(w, fmt.Sprintf("dash: %d pages are open already", maxStreams), http.StatusServiceUnavailable)
		return
	}
	defer s.open.Add(-1)
	st := &stream{w: w, rc: http.NewResponseController(w), feeds: feeds, may: may, refresh: refresh}
	st.run(r.Context(), s.servers.closing(r))
}
