package dash

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"
)

const (
	// silence is how long a service may be silent before it is taken to be down.
	silence = 10 * time.Second
	// switching is how long a service may take to switch.
	switching = 10 * time.Second
	// maxAnswer bounds an answer that is no stream, in bytes.
	maxAnswer = 64 << 10
	// slowest is how many times Retry at most a service that stays down is left alone.
	slowest = 8
)

// peer is a service that a relay follows.
type peer struct {
	cfg    *RelayConfig
	named  bool // by the configuration
	url    *url.URL
	header http.Header
	feed   *feed
}

// run follows the service's events, and tries again when that fails.
func (p *peer) run(ctx context.Context) {
	pause := p.cfg.Retry
	for ctx.Err() == nil {
		began := time.Now()
		err := p.follow(ctx)
		if ctx.Err() != nil {
			return
		}
		if time.Since(began) > silence {
			pause = p.cfg.Retry // it was up
		}
		p.down(err)
		select {
		case <-ctx.Done():
		case <-time.After(pause):
		}
		pause = min(2*pause, slowest*p.cfg.Retry)
	}
}

func (p *peer) down(err error) {
	p.feed.change(func(s *service) {
		if s.Up || s.Since.IsZero() {
			s.Since = time.Now()
			p.cfg.Logger.Warn("dash: service is down", "addr", s.Addr, "error", err)
		}
		s.Up, s.Error = false, err.Error()
	})
}

func (p *peer) up(r Rights) {
	p.feed.forget()
	p.feed.change(func(s *service) {
		s.Up, s.Since, s.Error, s.Switch, s.Report = true, time.Now(), "", r.Switch, r.Report
		if !p.named && r.Name != "" {
			s.Name = r.Name
		}
		p.cfg.Logger.Info("dash: service is up", "addr", s.Addr)
	})
}

// follow copies the service's events into the feed until they end.
func (p *peer) follow(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	quiet := time.AfterFunc(silence, func() { cancel(fmt.Errorf("silent for %v", silence)) })
	defer quiet.Stop()
	var rights Rights
	code, body, err := p.ask(ctx, http.MethodGet, "rights", nil)
	if err != nil {
		return err
	}
	if code != http.StatusOK {
		return fmt.Errorf("GET rights: %d %s", code, body)
	}
	if err := json.Unmarshal([]byte(body), &rights); err != nil {
		return fmt.Errorf("GET rights: no dashboard answers there: %w", err)
	}
	resp, err := p.do(ctx, http.MethodGet, "events", nil)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if kind := resp.Header.Get("Content-Type"); resp.StatusCode != http.StatusOK ||
		!strings.HasPrefix(kind, "text/event-stream") {
		return fmt.Errorf("GET events: %s, Content-Type %q", resp.Status, kind)
	}
	p.up(rights)
	err = readEvents(resp.Body, func(kind string, data []byte) error {
		quiet.Reset(silence)
		return p.take(kind, data)
	})
	if cause := context.Cause(ctx); cause != nil {
		return cause
	}
	return err
}

// take enters an event into the feed. Events of kinds that are not known are of a
// later version.
func (p *peer) take(kind string, data []byte) error {
	switch kind {
	case "status", "report", "task", "points":
	default:
		return nil
	}
	var compact bytes.Buffer
	if err := json.Compact(&compact, data); err != nil {
		return fmt.Errorf("event %s: %w", kind, err)
	}
	data = compact.Bytes()
	switch kind {
	case "status":
		p.feed.setStatus(data)
	case "report":
		p.feed.setReport(data)
	case "task":
		p.feed.addTask(data)
	case "points":
		var points []json.RawMessage
		if err := json.Unmarshal(data, &points); err != nil {
			return fmt.Errorf("event points: %w", err)
		}
		for _, point := range points {
			p.feed.addPoint(point)
		}
	}
	return nil
}

// post switches something at the service.
func (p *peer) post(ctx context.Context, name string, body []byte) (code int, text string, err error) {
	ctx, cancel := context.WithTimeout(ctx, switching)
	defer cancel()
	return p.ask(ctx, http.MethodPost, name, body)
}

func (p *peer) ask(ctx context.Context, method, name string, body []byte) (code int, text string, err error) {
	resp, err := p.do(ctx, method, name, body)
	if err != nil {
		return 0, "", err
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	if err != nil {
		return 0, "", fmt.Errorf("%s %s: %w", method, name, err)
	}
	return resp.StatusCode, strings.TrimSpace(string(b)), nil
}

func (p *peer) do(ctx context.Context, method, name string, body []byte) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, method, p.url.JoinPath(name).String(), bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	for k, v := range p.header {
		req.Header[k] = v
	}
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	resp, err := p.cfg.Client.Do(req)
	if cause := context.Cause(ctx); err != nil && cause != nil {
		err = cause
	}
	if wrapped := (*url.Error)(nil); errors.As(err, &wrapped) {
		err = fmt.Errorf("%s %s: %w", method, name, wrapped.Err) // without the address, which the page shows
	}
	return resp, err
}
