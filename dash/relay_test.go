package dash_test

import (
	"context"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/foresay/foresay/control"
	"github.com/foresay/foresay/dash"
)

// network is several servers in memory, by name.
type network struct {
	mu    sync.Mutex
	sites map[string]*site
}

func (n *network) client() *http.Client {
	return &http.Client{Transport: n}
}

func (n *network) at(name string) *site {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.sites[name]
}

func (n *network) put(name string, s *site) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.sites[name] = s
}

func (n *network) RoundTrip(r *http.Request) (*http.Response, error) {
	return n.at(r.URL.Host).client.Transport.RoundTrip(r)
}

type aboutService struct {
	ID, Name, Base, Error string
	Up, Switch, Report    bool
}

// TestRelay shows two services, of which one goes down and comes back.
func TestRelay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := newShop(t, control.Config{}), newShop(t, control.Config{RecentEvery: -1})
		secret := func(r *http.Request) error {
			if r.Header.Get("Authorization") != "Bearer sesame" {
				return http.ErrNoCookie
			}
			return nil
		}
		services := &network{sites: map[string]*site{
			"a": serve(t, dash.Handler(dash.Config{Control: a.control, Name: "prices", Authorize: secret})),
			"b": serve(t, dash.Handler(dash.Config{Control: b.control, Name: "stock"})),
		}}
		relay, err := dash.NewRelay(dash.RelayConfig{
			Services: []dash.Service{
				{URL: "http://a" + dash.Path, Header: http.Header{"Authorization": {"Bearer sesame"}}},
				{URL: "http://b" + dash.Path, Name: "B"},
			},
			Client: services.client(), Authorize: mayAll,
		})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		ran := make(chan error)
		go func() { ran <- relay.Run(ctx) }()
		web := serve(t, relay)
		var got log
		ended := web.listen(t, ctx, got.take)
		b.task(t, ctx, "of b", true, 10*time.Millisecond)
		time.Sleep(3 * time.Second)
		last := func() []aboutService {
			list, _ := of[[]aboutService](t, &got, "services")
			return list[len(list)-1]
		}
		if s := last(); len(s) != 2 || s[0].Name != "prices" || !s[0].Up || !s[0].Switch || s[1].Name != "B" || !s[1].Up ||
			s[1].Switch {
			t.Fatalf("services: %+v", s)
		}
		tasks, _ := of[dash.Task](t, &got, "task")
		if len(tasks) != 1 || tasks[0].Task != "of b" || tasks[0].Saved != 10*time.Millisecond {
			t.Errorf("tasks: %+v", tasks)
		}
		code, text := web.ask(t, http.MethodPost, "s/0/mode", `{"site": "/shop.Prices/Get", "mode": "shadow", "share": 0.5}`)
		if mode, share := a.prices.Mode(); code != http.StatusNoContent || mode != control.ModeShadow || share != 0.5 {
			t.Errorf("mode: %d %s; it is %v, %v", code, text, mode, share)
		}
		for _, c := range []struct {
			path, body string
			code       int
			says       string
		}{
			{"s/1/kill", `{"killed": true}`, 403, "read-only"},
			{"s/0/mode", `{"site": "/no/such", "mode": "on"}`, 404, "/no/such"},
			{"s/0/mode", `{`, 400, "body"},
			{"s/0/kill", strings.Repeat(" ", 5000) + `{}`, 413, "4096"},
			{"s/2/kill", `{}`, 404, ""}, {"s/-1/kill", `{}`, 404, ""}, {"s/0/status", `{}`, 404, ""},
			{"s/x/kill", `{}`, 404, ""},
		} {
			if code, text := web.ask(t, http.MethodPost, c.path, c.body); code != c.code || !strings.Contains(text, c.says) {
				t.Errorf("POST %s: %d %s; want %d with %q", c.path, code, text, c.code, c.says)
			}
		}
		if code, text := web.ask(t, http.MethodPost, "s/0/kill", `{"killed": true}`, "Sec-Fetch-Site",
			"cross-site"); code != http.StatusForbidden {
			t.Errorf("a foreign page: %d %s", code, text)
		}

		services.at("b").server.Close()
		time.Sleep(time.Second)
		if s := last(); s[1].Up || s[1].Error == "" || !s[0].Up {
			t.Errorf("after b went down: %+v", s)
		}
		services.put("b", serve(t, dash.Handler(dash.Config{Control: b.control})))
		time.Sleep(20 * time.Second)
		if s := last(); !s[1].Up || s[1].Error != "" || s[1].Name != "B" {
			t.Errorf("after b came back: %+v", s)
		}
		cancel()
		<-ended
		if err := <-ran; err != context.Canceled {
			t.Errorf("Run: %v", err)
		}
	})
}

// TestRelayOfOthers has a relay ask what is no dashboard, or an evil one.
func TestRelayOfOthers(t *testing.T) {
	for what, c := range map[string]struct {
		h    http.HandlerFunc
		says string
	}{
		"another server": {func(w http.ResponseWriter, r *http.Request) { http.NotFound(w, r) }, "404"},
		"a web page":     {func(w http.ResponseWriter, r *http.Request) { _, _ = w.Write([]byte("<html>")) }, "no dashboard"},
		"no JSON":        {talks("event: status\ndata: {\n\n"), "event status"},
		"no points":      {talks("event: points\ndata: {}\n\n"), "event points"},
		"an endless line": {func(w http.ResponseWriter, r *http.Request) {
			talks("data: ")(w, r)
			for strings.HasSuffix(r.URL.Path, "events") {
				if _, err := w.Write(make([]byte, 1<<16)); err != nil {
					return
				}
			}
		}, "longer than"},
		"silence": {func(w http.ResponseWriter, r *http.Request) {
			talks(":\n\n")(w, r)
			if strings.HasSuffix(r.URL.Path, "events") {
				_ = http.NewResponseController(w).Flush()
				<-r.Context().Done()
			}
		}, "silent for 10s"},
	} {
		t.Run(what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				services := &network{sites: map[string]*site{"a": serve(t, c.h)}}
				relay, err := dash.NewRelay(dash.RelayConfig{Services: []dash.Service{{URL: "http://a"}},
					Client: services.client()})
				if err != nil {
					t.Fatal(err)
				}
				ctx, cancel := context.WithCancel(t.Context())
				ran := make(chan error)
				go func() { ran <- relay.Run(ctx) }()
				web := serve(t, relay)
				var got log
				ended := web.listen(t, ctx, got.take)
				time.Sleep(10*time.Second + 100*time.Millisecond)
				cancel()
				<-ended
				<-ran
				list, _ := of[[]aboutService](t, &got, "services")
				for _, s := range list {
					if strings.Contains(s[0].Error, c.says) {
						return
					}
				}
				t.Errorf("the page says %+v; want %q", list, c.says)
			})
		})
	}
}

// talks answers as a dashboard whose events are these.
func talks(events string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "rights") {
			_, _ = w.Write([]byte("{}"))
			return
		}
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = w.Write([]byte(events))
	}
}

func TestRelayConfig(t *testing.T) {
	ok := []dash.Service{{URL: "http://a:1/debug/foresay/"}}
	for says, cfg := range map[string]dash.RelayConfig{
		"no Services":    {},
		"at most 64":     {Services: make([]dash.Service, 65)},
		"Retry is -1s":   {Services: ok, Retry: -time.Second},
		"Timeout is 1s":  {Services: ok, Client: &http.Client{Timeout: time.Second}},
		`"ftp://a"`:      {Services: []dash.Service{{URL: "ftp://a"}}},
		`"localhost:80"`: {Services: []dash.Service{{URL: "localhost:80"}}},
		"service 2":      {Services: append(ok, dash.Service{URL: "http://[a"})},
	} {
		if _, err := dash.NewRelay(cfg); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%+v: %v; want %q", cfg, err, says)
		}
	}
}
