package randtest

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	specv1 "github.com/foresay/foresay/api/foresay/spec/v1"
	"github.com/foresay/foresay/wan"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

type faultKind uint8

const (
	faultReset     faultKind = iota // of the connections between two sites
	faultCrash                      // of a server, which starts again
	faultBlackhole                  // between two sites, for a while
	faultDrain                      // a server stops gracefully, and starts again
	faultCancel                     // the program's context is cancelled
	faultDeadline                   // the program's context expires
	faultPause                      // a process stands still for a while
)

func (k faultKind) String() string {
	return [...]string{"reset", "crash", "black hole", "graceful stop", "cancel", "deadline", "pause"}[k]
}

// event is what a fault waits for at a server, in place of a time.
type event uint8

const (
	eventNone        event = iota
	eventConfirmLost       // a Confirm arrives, and is lost with the fault
	eventConfirmed         // a Confirm arrived
	eventRequested         // a Request arrived
	eventAnswered          // a Final was sent
)

func (e event) String() string {
	return [...]string{"", "when a Confirm is lost", "after a Confirm", "after a Request", "after a Final"}[e]
}

// fault is something that goes wrong once.
type fault struct {
	kind   faultKind
	at     time.Duration // after the program's start, or after the event
	event  event
	nth    int // of the events, from 1
	server int // of the event, the crash, the stop
	link   wan.Path
	oneWay bool
	lasts  time.Duration // 0 for ever
}

func (f *fault) String() string {
	s := fmt.Sprintf("fault: %v, %v", f.kind, f.at)
	if f.event != eventNone {
		s += fmt.Sprintf(" %v, the %d. at %s", f.event, f.nth, serverName(f.server))
	}
	switch f.kind {
	case faultCrash, faultDrain:
		s += fmt.Sprintf(", server %s, for %v", serverName(f.server), f.lasts)
	case faultPause:
		s += fmt.Sprintf(", of %v, for %v", f.paused(), f.lasts)
	case faultReset, faultBlackhole:
		s += fmt.Sprintf(", %v, one way %v, for %v", f.link, f.oneWay, f.lasts)
	}
	return s
}

// newFaults draws what goes wrong.
func newFaults(r *rand.Rand, sc *Scenario) []*fault {
	n := 1
	if r.IntN(4) == 0 {
		n = 2
	}
	var out []*fault
	for range n {
		f := &fault{
			kind: faultKind(r.IntN(6)), at: time.Duration(r.IntN(250_000_000)), server: r.IntN(sc.knobs.Servers),
			lasts: time.Duration(1+r.IntN(100)) * 50 * time.Millisecond, oneWay: r.IntN(2) == 0,
		}
		if r.IntN(2) == 0 {
			f.kind = []faultKind{faultReset, faultReset, faultCrash, faultCrash, faultBlackhole}[r.IntN(5)]
			f.event = event(1 + r.IntN(4))
			f.nth = 1 + r.IntN(3)
			f.at = []time.Duration{0, time.Duration(r.IntN(6_000_000))}[r.IntN(2)]
		}
		f.link = wan.Path{From: clientSite, To: siteOf(f.server)}
		if f.server > 0 && r.IntN(3) == 0 {
			f.link.From = siteOf(r.IntN(f.server))
		}
		if f.kind == faultBlackhole {
			f.lasts *= time.Duration(2 * r.IntN(3))
			if r.IntN(2) == 0 {
				f.link = f.link.Reverse()
			}
		}
		out = append(out, f)
	}
	return out
}

// strikes carries the faults out.
type strikes struct {
	w *world

	mu      sync.Mutex
	cancel  context.CancelFunc // of the program's context
	counts  map[[2]int]int     // by server and event
	over    bool
	timers  []*time.Timer
	running sync.WaitGroup
}

func newStrikes(w *world) *strikes { return &strikes{w: w, counts: make(map[[2]int]int)} }

// faultyDeadline ends programs that hang because the network does.
const faultyDeadline = 40 * time.Second

// begin sets the faults up that have a time, and bounds the program's context.
func (s *strikes) begin(ctx *context.Context) (stop func()) {
	if !s.w.sc.Faults {
		return func() {}
	}
	deadline := faultyDeadline
	if s.w.sc.knobs.Keepalive || s.w.sc.onlyPauses() {
		deadline = patience
	}
	for _, f := range s.w.sc.faults {
		switch {
		case f.kind == faultDeadline:
			deadline = min(deadline, f.at+1)
		case f.event == eventNone:
			s.after(f.at, func() { s.strike(f) })
		}
	}
	var cancel, expire context.CancelFunc
	*ctx, cancel = context.WithCancel(*ctx)
	*ctx, expire = context.WithTimeout(*ctx, deadline)
	s.mu.Lock()
	s.cancel = cancel
	s.mu.Unlock()
	return func() { expire(); cancel() }
}

// after has f run later, unless the strikes are over by then.
func (s *strikes) after(d time.Duration, f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.over {
		return
	}
	s.running.Add(1)
	t := time.AfterFunc(d, func() {
		defer s.running.Done()
		f()
	})
	s.timers = append(s.timers, t)
}

// heal ends the faults that last for ever, and reports whether there are any.
func (s *strikes) heal() (healed bool) {
	for _, f := range s.w.sc.faults {
		if f.kind == faultBlackhole && f.lasts == 0 && !s.w.plain {
			s.hole(f, false)
			healed = true
		}
	}
	return healed
}

// stop ends the strikes and waits for those under way.
func (s *strikes) stop() {
	s.mu.Lock()
	s.over = true
	for _, t := range s.timers {
		if t.Stop() {
			s.running.Done()
		}
	}
	s.mu.Unlock()
	s.running.Wait()
}

func (s *strikes) hole(f *fault, down bool) {
	s.w.net.SetDown(f.link.From, f.link.To, down)
	if !f.oneWay {
		s.w.net.SetDown(f.link.To, f.link.From, down)
	}
}

func (s *strikes) strike(f *fault) {
	s.w.journal.fault("%v", f)
	switch f.kind {
	case faultReset:
		s.w.net.Reset(f.link.From, f.link.To)
	case faultCrash, faultDrain:
		n := s.w.nodes[f.server]
		if f.kind == faultCrash {
			n.crash()
		} else {
			n.drain()
		}
		s.after(f.lasts, func() {
			if err := n.restart(); err != nil {
				s.w.journal.brokenRule("restart: %v", err)
			}
		})
	case faultPause:
		s.standStill(f.paused(), true)
		s.after(f.lasts, func() { s.standStill(f.paused(), false) })
	case faultBlackhole:
		s.hole(f, true)
		if f.lasts > 0 {
			s.after(f.lasts, func() { s.hole(f, false) })
		}
	case faultCancel:
		s.mu.Lock()
		defer s.mu.Unlock()
		s.cancel()
	}
}

// happened tells of an event at a server; it reports whether the frame that
// goes with it is lost.
func (s *strikes) happened(server int, e event) (lost bool) {
	s.mu.Lock()
	s.counts[[2]int{server, int(e)}]++
	n := s.counts[[2]int{server, int(e)}]
	s.mu.Unlock()
	for _, f := range s.w.sc.faults {
		if f.event != e || f.server != server || f.nth != n {
			continue
		}
		if e == eventConfirmLost {
			lost = true
		}
		s.after(f.at, func() { s.strike(f) })
	}
	return lost
}

// watch returns a stream interceptor of a server that notices events.
func (s *strikes) watch(server int) grpc.StreamServerInterceptor {
	return func(srv any, ss grpc.ServerStream, _ *grpc.StreamServerInfo, handler grpc.StreamHandler) error {
		if s.w.plain || !s.w.sc.Faults {
			return handler(srv, ss)
		}
		return handler(srv, &watchedStream{ss, s, server})
	}
}

type watchedStream struct {
	grpc.ServerStream
	strikes *strikes
	server  int
}

func (w *watchedStream) RecvMsg(m any) error {
	if err := w.ServerStream.RecvMsg(m); err != nil {
		return err
	}
	frame, ok := m.(*specv1.ClientFrame)
	switch {
	case !ok:
	case frame.GetRequest() != nil:
		w.strikes.happened(w.server, eventRequested)
	case frame.GetConfirm() != nil:
		if w.strikes.happened(w.server, eventConfirmLost) {
			return status.Error(codes.Unavailable, "the connection was lost")
		}
		w.strikes.happened(w.server, eventConfirmed)
	}
	return nil
}

func (w *watchedStream) SendMsg(m any) error {
	err := w.ServerStream.SendMsg(m)
	if frame, ok := m.(*specv1.ServerFrame); ok && frame.GetFinal() != nil {
		w.strikes.happened(w.server, eventAnswered)
	}
	return err
}

// A process that stands still for longer than any lease: nothing that is sent to
// it or by it arrives meanwhile. The clocks of a client may have stood still with
// it, so that its leases last. Nothing is lost: the program comes to its end, with
// the results and the effects of the sequential execution.

// pausePercent is how many of the worlds with faults have a pause, and no other fault.
const pausePercent = 15

// pause has a process stand still in place of what else goes wrong.
func (sc *Scenario) pause() {
	if !sc.chance.percent(pausePercent, "pause") {
		return
	}
	if f := sc.standStill(sc.faults[0].server); f.event == eventConfirmLost {
		f.event = eventAnswered
	}
	if sc.chance.percent(50, "clocks stand still") {
		sc.knobs.Lease = time.Minute
	}
}

// standStill has a process stand still, at whatever server it shows.
func (sc *Scenario) standStill(server int) *fault {
	sc.faults = sc.faults[:1]
	f := sc.faults[0]
	f.kind, f.server = faultPause, server
	f.lasts = time.Duration(16_000+sc.chance.below(4_000, "pause lasts")) * time.Millisecond
	sc.knobs.Keepalive = false // else connections end
	return f
}

// onlyPauses reports whether nothing goes wrong but pauses.
func (sc *Scenario) onlyPauses() bool {
	return len(sc.faults) > 0 && !slices.ContainsFunc(sc.faults, func(f *fault) bool { return f.kind != faultPause })
}

// paused is the site of the process that a pause is of.
func (f *fault) paused() wan.Site {
	if f.oneWay {
		return clientSite
	}
	return siteOf(f.server)
}

// standStill has nothing arrive at a site, or from there, or ends that.
func (s *strikes) standStill(site wan.Site, down bool) {
	sites := []wan.Site{clientSite}
	for i := range s.w.sc.knobs.Servers {
		sites = append(sites, siteOf(i))
	}
	for _, other := range sites {
		if other != site {
			s.w.net.SetDown(site, other, down)
			s.w.net.SetDown(other, site, down)
		}
	}
}
