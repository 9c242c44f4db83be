package control

import (
	"context"
	"fmt"
	"log/slog"
	"math"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/foresay/foresay/report"
)

// KillVariable is the environment variable that stops all speculation of a
// process, as Control.Kill does, when the process's Controls, and call sites without
// one, are made: if it is set to anything but "0", "false", "no" or "off".
const KillVariable = "FORESAY_KILL"

// Config configures a Control. The zero value of a field is its default.
type Config struct {
	// Budget is the extra load that speculation may cause: calls made in vain per
	// call that counts. Above it the call site that wastes most is tripped. Default
	// 0.1; negative: no limit, and no call site is tripped at all.
	Budget float64
	// Window is over how long hit rates and loads are judged. Default 30 s.
	Window time.Duration
	// Retry is how long a tripped call site takes no predictions before a few are
	// tried. It is doubled up to 32 times while they are no better. Default 10 s.
	Retry time.Duration
	// ControlShare is which share of the requests is left without speculation in mode
	// on, once a thousand have begun: compared with the others they show whether
	// requests fail more often with speculation, or are slower, which trips the call sites
	// that they use, as in a canary. Default 0.01; negative: none, and what harm
	// call sites in mode on do is not known.
	ControlShare float64
	// OnRequest are told of each request that ended; they must not change it, be
	// quick, and are called concurrently.
	OnRequest []func(*RequestRecord)
	// Tracer, if not nil, follows the tasks of the Control's contexts.
	Tracer Tracer
	// Recent is how many reports of tasks are kept for Tasks. Default 64;
	// negative: none.
	Recent int
	// RecentEvery is the least time between two tasks whose reports are kept; to
	// record a task costs about a microsecond per event. Default 50 ms; negative: all.
	RecentEvery time.Duration
	// Logger is told of trips, and of what is set at run time. Default: nobody.
	Logger *slog.Logger
}

// Control switches and monitors a process's speculation: it has the call sites of all connections
// that it was given to. It is safe for concurrent use.
type Control struct {
	cfg    Config
	killed atomic.Bool
	recent recent
	runs   atomic.Int64 // see Status
	begun  atomic.Int64 // requests
	judged atomic.Int64 // when call sites were last judged, Unix nanoseconds

	mu     sync.Mutex
	sites  []*CallSite
	set    map[string]setting // at run time, by the call site's name
	useful float64            // calls that counted, in the window
	wrong  map[string]string  // what is wrong, by what it is about
	said   map[string]string  // what News heard last, by what it is about

	harmMu sync.Mutex
	harms  map[string]*harm // by the name of the kind of request
}

// setting is a mode with the share of the requests that it is for.
type setting struct {
	mode  Mode
	share float64
}

// New validates the configuration.
func New(cfg Config) (*Control, error) {
	switch {
	case math.IsNaN(cfg.Budget):
		return nil, fmt.Errorf("foresay: control: Budget is not a number")
	case math.IsNaN(cfg.ControlShare) || cfg.ControlShare > 0.5:
		return nil, fmt.Errorf("foresay: control: ControlShare is %v; want at most 0.5, 0 for the default, or less for none",
			cfg.ControlShare)
	case cfg.Window < 0:
		return nil, fmt.Errorf("foresay: control: Window is %v; want 0 for the default, or more", cfg.Window)
	case cfg.Retry < 0:
		return nil, fmt.Errorf("foresay: control: Retry is %v; want 0 for the default, or more", cfg.Retry)
	}
	if cfg.Budget == 0 {
		cfg.Budget = 0.1
	}
	if cfg.Window == 0 {
		cfg.Window = 30 * time.Second
	}
	if cfg.Retry == 0 {
		cfg.Retry = 10 * time.Second
	}
	if cfg.ControlShare == 0 {
		cfg.ControlShare = 0.01
	}
	if cfg.Recent == 0 {
		cfg.Recent = 64
	}
	if cfg.RecentEvery == 0 {
		cfg.RecentEvery = 50 * time.Millisecond
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	cfg.OnRequest = slices.Clone(cfg.OnRequest)
	c := &Control{cfg: cfg, set: make(map[string]setting)}
	c.recent.limit, c.recent.every = max(cfg.Recent, 0), max(cfg.RecentEvery, 0)
	c.killed.Store(killedFromOutside())
	return c, nil
}

// killedFromOutside reports whether the environment says that nothing speculates.
func killedFromOutside() bool {
	switch strings.ToLower(strings.TrimSpace(os.Getenv(KillVariable))) {
	case "", "0", "f", "false", "n", "no", "off":
		return false
	}
	return true // whoever sets it, however, means it
}

// Config returns the configuration, with its defaults.
func (c *Control) Config() Config { return c.cfg }

// Context returns a context whose tasks are the Control's: the tracer follows
// them, and their reports may be kept. Begin does the same for a request.
func (c *Control) Context(ctx context.Context) context.Context {
	of, r := Of(ctx)
	if of == c {
		return ctx
	}
	return context.WithValue(ctx, scopeKey{}, &scope{c, r})
}

// NewCallSite makes a call site that the Control switches. conn names the connection, for
// those who look at the Control.
func (c *Control) NewCallSite(cfg CallSiteConfig, conn string) (*CallSite, error) {
	s, err := NewCallSite(cfg)
	if err != nil {
		return nil, err
	}
	s.control, s.conn, s.killed = c, conn, false
	c.mu.Lock()
	defer c.mu.Unlock()
	if set, ok := c.set[cfg.Name]; ok {
		s.switchTo(set, originRuntime)
	}
	c.sites = append(c.sites, s)
	return s, nil
}

// Remove has the Control forget call sites, those of a connection that is closed.
func (c *Control) Remove(sites ...*CallSite) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.sites = slices.DeleteFunc(c.sites, func(s *CallSite) bool { return slices.Contains(sites, s) })
}

// CallSites returns the call sites, in the order in which they were made.
func (c *Control) CallSites() []*CallSite {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.sites)
}

// Kill stops all speculation of the Control's call sites, or with false lets it go on:
// calls that are made from now on wait for their actual responses, as if every
// call site were in ModeOff, and the Control's tasks take no guesses of futures. A run
// that takes the place of another one may still go on with a prediction that its
// task had before.
func (c *Control) Kill(stop bool) {
	if c.killed.Swap(stop) != stop {
		c.cfg.Logger.Warn("foresay: kill switch", "killed", stop)
	}
}

// Killed reports whether Kill stopped all speculation.
func (c *Control) Killed() bool { return c.killed.Load() }

// SetMode sets the mode of all call sites of a name, present and future, before what
// code and files say. ModeDefault takes that back. The share is that of the
// requests for which ModeShadow and ModeCanary do more than observe, above 0 and up
// to 1; for other modes it is 0.
func (c *Control) SetMode(site string, mode Mode, share float64) error {
	if mode > ModeOn {
		return fmt.Errorf("foresay: site %s: unknown mode %v", site, mode)
	}
	switch some := mode == ModeShadow || mode == ModeCanary; {
	case !(share >= 0 && share <= 1):
		return fmt.Errorf("foresay: site %s: the share %v is not between 0 and 1", site, share)
	case some && share == 0:
		return fmt.Errorf("foresay: site %s: mode %v needs the share of the requests that it is for, above 0 and up to 1",
			site, mode)
	case !some && share != 0:
		return fmt.Errorf("foresay: site %s: a share is for the modes canary and shadow, not for %v", site, mode)
	}
	if err := c.setMode(site, setting{mode, share}); err != nil {
		return err
	}
	c.cfg.Logger.Info("foresay: mode set", "site", site, "mode", mode.String(), "share", share)
	return nil
}

func (c *Control) setMode(site string, to setting) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	_, known := c.set[site]
	known = known && to.mode == ModeDefault // what was set can be taken back when the connection is closed
	for _, s := range c.sites {
		if s.cfg.Name == site {
			known = true
			if to.mode == ModeDefault {
				s.switchBack()
				continue
			}
			s.switchTo(to, originRuntime)
		}
	}
	if !known {
		return fmt.Errorf("foresay: no connection of this process has a site %s", site)
	}
	if to.mode == ModeDefault {
		delete(c.set, site)
	} else {
		c.set[site] = to
	}
	return nil
}

// SetProblem has Status tell what is wrong with something, such as a file that cannot be read; an
// empty text takes that back. It returns whether that is news: several may find the same problem.
func (c *Control) SetProblem(about, problem string) (news bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	news = c.wrong[about] != problem
	if problem == "" {
		delete(c.wrong, about)
		return news
	}
	if c.wrong == nil {
		c.wrong = make(map[string]string)
	}
	c.wrong[about] = problem
	return news
}

// News reports whether a message about a subject differs from the last one, so that what several
// parties notice, such as the connections that read the same file, is reported once.
func (c *Control) News(about, said string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.said == nil {
		c.said = make(map[string]string)
	}
	news := c.said[about] != said
	c.said[about] = said
	return news
}

// Origin says what set a call site's mode.
type Origin string

// What sets modes, the later before the earlier.
const (
	originCode    Origin = "code"
	originFile    Origin = "file"
	originRuntime Origin = "runtime"
)

// switchboard is which mode a call site is in. What is set is read on every call.
type switchboard struct {
	now atomic.Pointer[setting]

	mu     sync.Mutex
	origin Origin
	code   setting  // what the configuration says
	file   *setting // what a file said since
}

func (s *CallSite) switchTo(to setting, origin Origin) {
	s.board.mu.Lock()
	defer s.board.mu.Unlock()
	s.board.put(to, origin)
}

func (b *switchboard) put(to setting, origin Origin) {
	b.origin = origin
	b.now.Store(&to)
}

// switchBack takes back what was set at run time.
func (s *CallSite) switchBack() {
	s.board.mu.Lock()
	defer s.board.mu.Unlock()
	s.board.back()
}

func (b *switchboard) back() {
	if b.file != nil {
		b.put(*b.file, originFile)
		return
	}
	b.put(b.code, originCode)
}

// from returns what is set, and what set it.
func (b *switchboard) from() (setting, Origin) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return *b.now.Load(), b.origin
}

// Reconfigure sets the call site's mode as a configuration file says that was read
// again; what was set at run time goes before it. ModeDefault takes back what the
// file said.
func (s *CallSite) Reconfigure(mode Mode, share float64) error {
	if mode > ModeOn || !(share >= 0 && share <= 1) {
		return fmt.Errorf("foresay: site %s: mode %v with the share %v", s.cfg.Name, mode, share)
	}
	b := &s.board
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.file = nil; mode != ModeDefault {
		b.file = &setting{mode, share}
	}
	if b.origin != originRuntime {
		b.back()
	}
	return nil
}

// Decide returns what is to be done about predictions of a call that a task makes:
// ModeOff, ModeObserve, ModeShadow or ModeOn. luck draws the lot of a task that
// belongs to no request.
func (e *engineCallSite) Decide(r *Request, luck func() uint64) Mode {
	s := (*CallSite)(e)
	set := s.board.now.Load()
	c := s.control
	switch {
	case s.killed || c != nil && c.killed.Load():
		return ModeOff
	case set.mode == ModeOff || set.mode == ModeObserve:
		return set.mode
	case s.trip.holds():
		return ModeObserve
	case set.mode == ModeOn && (r == nil || !r.compared):
		return ModeOn
	case set.mode == ModeOn:
		share := 1 - r.control.cfg.ControlShare
		if in := within(r.Engine().Luck(), share); !in {
			r.chose(false, share, false)
			return ModeObserve
		}
		r.chose(true, share, false)
		return ModeOn
	}
	lot := uint64(0)
	if r != nil {
		lot = r.Engine().Luck()
	} else {
		lot = luck()
	}
	in := within(lot, set.share)
	if set.mode == ModeCanary && r != nil {
		r.chose(in, set.share, true)
	}
	switch {
	case !in:
		return ModeObserve
	case set.mode == ModeShadow:
		return ModeShadow
	default:
		return ModeOn
	}
}

// recent keeps the reports of some of the last tasks.
type recent struct {
	limit int
	every time.Duration
	last  atomic.Int64 // when a task was chosen, Unix nanoseconds

	mu    sync.Mutex
	tasks []*report.Report // the oldest first
	total uint64           // kept so far
}

// due reports whether the next task may be recorded.
func (r *recent) due() bool {
	return r.limit > 0 && time.Now().UnixNano()-r.last.Load() >= int64(r.every)
}

// wants reports whether a task that begins now is to be recorded.
func (r *recent) wants() bool {
	if r.limit == 0 {
		return false
	}
	now, last := time.Now().UnixNano(), r.last.Load()
	return now-last >= int64(r.every) && r.last.CompareAndSwap(last, now)
}

func (r *recent) add(t *report.Report) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.tasks) >= r.limit {
		r.tasks = slices.Delete(r.tasks, 0, 1)
	}
	r.tasks = append(r.tasks, t)
	r.total++
}

// Tasks returns the reports that are kept, of tasks that ended after the first
// `after` ones, oldest first, and how many there have been: what to give for the
// next time. The reports must not be changed.
func (c *Control) Tasks(after uint64) (reports []*report.Report, total uint64) {
	c.recent.mu.Lock()
	defer c.recent.mu.Unlock()
	fresh := min(c.recent.total-min(after, c.recent.total), uint64(len(c.recent.tasks)))
	return slices.Clone(c.recent.tasks[uint64(len(c.recent.tasks))-fresh:]), c.recent.total
}
