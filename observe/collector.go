package observe

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"unicode"

	"github.com/foresay/foresay/internal/critpath"

	"github.com/foresay/foresay/control"
)

// Config configures a Collector. The zero value of a field is its default.
type Config struct {
	// MaxRequests is how many kinds of request are told apart, MaxMethods how many methods that a
	// kind of request calls; the rest goes under "(other)". Default 32 and 16.
	MaxRequests, MaxMethods int
	// Window is the length of a window of Report's recent figures, which cover the current window
	// and the one before. Default 5 min.
	Window time.Duration
	// MinSaving is what must be saved of a request's time for a method to be worth predicting.
	// Default 100 µs.
	MinSaving time.Duration
}

// Other is the name of what is not told apart because there is too much of it.
const Other = "(other)"

// maxName bounds a name's length in bytes.
const maxName = 256

// Collector collects what requests were like. It is safe for concurrent use.
type Collector struct {
	cfg    Config
	since  time.Time
	works  sync.Pool // of *work
	broken atomic.Int64
	missed atomic.Int64

	mu    sync.RWMutex
	kinds map[string]*kind
}

// NewCollector validates the configuration.
func NewCollector(cfg Config) (*Collector, error) {
	for _, f := range []struct {
		name  string
		value int64
	}{{"MaxRequests", int64(cfg.MaxRequests)}, {"MaxMethods", int64(cfg.MaxMethods)}, {"Window", int64(cfg.Window)},
		{"MinSaving", int64(cfg.MinSaving)}} {
		if f.value < 0 {
			return nil, fmt.Errorf("observe: %s is negative; want 0 for the default, or more", f.name)
		}
	}
	if cfg.MaxRequests == 0 {
		cfg.MaxRequests = 32
	}
	if cfg.MaxMethods == 0 {
		cfg.MaxMethods = 16
	}
	if cfg.Window == 0 {
		cfg.Window = 5 * time.Minute
	}
	if cfg.MinSaving == 0 {
		cfg.MinSaving = 100 * time.Microsecond
	}
	c := &Collector{cfg: cfg, since: time.Now(), kinds: make(map[string]*kind)}
	c.works.New = func() any { return new(work) }
	return c, nil
}

// Record takes a request in: it belongs into control.Config.OnRequest. It keeps nothing of
// the record.
func (c *Collector) Record(r *control.RequestRecord) {
	c.missed.Add(int64(r.Missed))
	w := c.works.Get().(*work)
	defer c.works.Put(w)
	if !w.read(r) {
		c.broken.Add(1)
		return
	}
	k := c.kind(r.Name)
	if !k.enter(r, w) {
		return
	}
	if err := w.replay(r.Duration); err != nil {
		c.broken.Add(1)
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.foreseen(r, w)
}

// kind returns the sums of a kind of request.
func (c *Collector) kind(name string) *kind {
	if len(name) > maxName {
		name = name[:maxName]
	}
	c.mu.RLock()
	k := c.kinds[name]
	c.mu.RUnlock()
	if k != nil {
		return k
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if k := c.kinds[name]; k != nil {
		return k
	}
	if len(c.kinds) >= c.cfg.MaxRequests {
		name = Other
		if k := c.kinds[name]; k != nil {
			return k
		}
	}
	k = &kind{cfg: &c.cfg, name: strings.Clone(name), methods: make(map[string]*method)}
	k.windowed = time.Now()
	c.kinds[k.name] = k
	return k
}

// kind is what is kept of one kind of request.
type kind struct {
	cfg  *Config
	name string

	mu       sync.Mutex
	methods  map[string]*method
	order    []*method
	total    kindSums
	now, was kindSums // of the current window, and of the one before
	windowed time.Time
	debt     float64 // of work, see afford
	paid     time.Time
	turns    int // the method to weigh next, where a request has too many

	observed, without histogram // requests that were worked out: as they were, and as they would have been
	ifReads           histogram // and as they would have been if methods only read whose names say so
	ifPlain           histogram // and if servers that are not known to do so take no calls on a guess
	stops             stops
	unworked          histogram // not worked out
	speculated        histogram // requests with speculated calls
	arms              [2]arm    // off, on
}

// kindSums are a kind's sums.
type kindSums struct {
	requests, failed   int64
	duration           time.Duration
	worked, skipped    int64
	calls, extra       int64 // of the requests that were worked out
	beside             int64 // of them, see besides
	saved              time.Duration
	readsSaved         time.Duration
	readsExtra         int64
	plainSaved         time.Duration
	plainExtra         int64
	speculated         int64 // requests with speculated calls, and what became of their tasks
	tasks, wasted      int64
	taskSaved          time.Duration
	callsOfSpeculation int64
}

// method is what is kept of one method that a kind of request calls.
type method struct {
	name   string
	effect control.Effect
	reads  bool // its name says that it only reads
	other  bool // it is several methods
	// predicted: it has predictors. Without, what is guessed is the last response, which for a
	// method with side effects nobody would take.
	predicted bool
	loses     bool // experience says that its predictions do not pay

	total    methodSums
	now, was methodSums
	latency  histogram
}

// methodSums are a method's sums.
type methodSums struct {
	calls, failed, asked, guessed, right int64
	sharedGuessed, sharedRight           int64   // if all callers get the same response
	sharedSaved                          float64 // then, in milliseconds
	// Of requests that were worked out, numbers and milliseconds, weighted: see work.weight.
	workedGuessed, workedRight, alone, saved, gain, cost, aloneExtra float64
}

// arm is one side of a canary, times in milliseconds.
type arm struct {
	moments
	failed  int64
	canary  int64 // requests that a canary put there
	latency histogram
}

// enter adds a request to the sums, and reports whether it is still to be worked out.
func (k *kind) enter(r *control.RequestRecord, w *work) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	now := r.Start.Add(r.Duration)
	k.turn(now)
	for i := range r.Calls {
		c := &r.Calls[i]
		m := k.method(c.CallSite, c.Effect)
		for _, s := range []*methodSums{&m.total, &m.now} {
			s.calls++
			s.failed += count(c.Failed)
			s.asked += count(c.Mode != control.ModeOff)
			s.guessed += count(c.Guessed)
			s.right += count(c.Guessed && c.Right)
			s.sharedGuessed += count(c.SharedGuessed)
			s.sharedRight += count(c.SharedGuessed && c.SharedRight)
		}
		m.predicted = m.predicted || c.Guessed && !c.Digest
		m.latency.add(c.End - c.Start)
		w.assign(i, m)
	}
	if r.Arm != control.ArmNone {
		a := &k.arms[r.Arm-control.ArmOff]
		a.add(milliseconds(r.Duration))
		a.failed += count(r.Failed)
		a.canary += count(r.Canary)
		a.latency.add(r.Duration)
	}
	worth := !w.speculated && k.afford(w, now)
	for _, s := range []*kindSums{&k.total, &k.now} {
		s.requests++
		s.failed += count(r.Failed)
		s.duration += r.Duration
		if w.speculated {
			s.speculated++
			s.callsOfSpeculation += int64(len(r.Calls))
			s.taskSaved += w.saved
			for _, t := range r.Tasks {
				s.tasks++
				s.wasted += int64(t.Wasted)
			}
		} else if !worth {
			s.skipped++
		}
	}
	switch {
	case w.speculated:
		k.speculated.add(r.Duration)
	case !worth:
		k.unworked.add(r.Duration)
	}
	if worth && w.simple(r.Duration) {
		k.foreseen(r, w)
		return false
	}
	return worth
}

// foreseen adds what a request would have been. Under mu.
func (k *kind) foreseen(r *control.RequestRecord, w *work) {
	saved, beside := r.Duration-w.together.End, besides(w.calls)
	for _, s := range []*kindSums{&k.total, &k.now} {
		s.worked++
		s.beside += count(beside)
		s.calls += int64(len(r.Calls))
		s.saved += saved
		s.extra += int64(w.together.Extra)
		s.readsSaved += r.Duration - w.ifReads.End
		s.readsExtra += int64(w.ifReads.Extra)
		s.plainSaved += r.Duration - w.ifPlain.End
		s.plainExtra += int64(w.ifPlain.Extra)
	}
	k.stops.add(r, w)
	k.observed.add(r.Duration)
	k.without.add(w.together.End)
	if w.unsureReads {
		k.ifReads.add(w.ifReads.End)
	}
	if slices.Contains(w.unknown, true) {
		k.ifPlain.add(w.ifPlain.End)
	}
	for i := range w.used {
		u := &w.used[i]
		u.method.total.sharedSaved += milliseconds(u.sharedSaved)
		if !u.weighed {
			continue
		}
		for _, s := range []*methodSums{&u.method.total, &u.method.now} {
			s.workedGuessed += float64(u.guessed) * w.weight
			s.workedRight += float64(u.right) * w.weight
			s.alone += milliseconds(u.alone) * w.weight
			s.saved += milliseconds(u.saved) * w.weight
			s.gain += milliseconds(u.gain) * w.weight
			s.cost += milliseconds(u.cost) * w.weight
			s.aloneExtra += float64(u.aloneExtra) * w.weight
		}
		u.method.learn()
	}
}

// method returns the sums of a method. Under mu.
func (k *kind) method(name string, effect control.Effect) *method {
	if m := k.methods[name]; m != nil {
		if !m.other {
			m.effect = effect
		}
		return m
	}
	m := &method{name: Other, effect: control.EffectImmediate, other: true}
	if len(k.order) < k.cfg.MaxMethods {
		m = &method{name: strings.Clone(name), effect: effect, reads: readsByName(name)}
	} else if other := k.methods[Other]; other != nil {
		return other
	}
	k.methods[m.name] = m
	k.order = append(k.order, m)
	return m
}

// turn begins a new window if the current one is over. Under mu.
func (k *kind) turn(now time.Time) {
	age := now.Sub(k.windowed)
	if age < k.cfg.Window {
		return
	}
	if k.was = k.now; age >= 2*k.cfg.Window {
		k.was = kindSums{}
	}
	k.now = kindSums{}
	for _, m := range k.order {
		if m.was = m.now; age >= 2*k.cfg.Window {
			m.was = methodSums{}
		}
		m.now = methodSums{}
	}
	k.windowed = now
}

// enoughGuesses is how many guesses there must be before a method is judged, as for the fuse of a
// call site.
const enoughGuesses = 20

// learn notes whether experience says that the method's predictions do not pay: such methods would
// not be predicted.
func (m *method) learn() {
	s := m.now
	if s.workedGuessed+m.was.workedGuessed < enoughGuesses {
		s = m.total
	} else {
		s.add(&m.was)
	}
	hit := wilson(float64(s.right), float64(s.guessed))
	m.loses = s.guessed >= enoughGuesses && hit.High < s.breakEven()
}

// leastBreakEven is the hit rate below which predictions never pay, as for the fuse of a call site.
const leastBreakEven = 0.05

// breakEven returns the hit rate from which on guesses pay: a second of wasted calls weighs as
// much as one saved.
func (s *methodSums) breakEven() float64 {
	if s.cost <= 0 {
		return leastBreakEven
	}
	return max(leastBreakEven, s.cost/(s.cost+s.gainOfRight()))
}

// gainOfRight is what all guesses would have saved if they were right: with the other predictions
// there, or alone, whichever is more.
func (s *methodSums) gainOfRight() float64 {
	if s.workedRight == 0 {
		return s.gain
	}
	return max(s.gain, s.alone*s.workedGuessed/s.workedRight)
}

func (s *methodSums) add(o *methodSums) {
	s.calls += o.calls
	s.failed += o.failed
	s.asked += o.asked
	s.guessed += o.guessed
	s.right += o.right
	s.workedGuessed += o.workedGuessed
	s.workedRight += o.workedRight
	s.alone += o.alone
	s.saved += o.saved
	s.gain += o.gain
	s.cost += o.cost
	s.aloneExtra += o.aloneExtra
}

func count(b bool) int64 {
	if b {
		return 1
	}
	return 0
}

// readsByName reports whether a method's name says that it only reads. It is a hint for a person,
// never a reason to send a call.
func readsByName(method string) bool {
	name := strings.TrimPrefix(method[strings.LastIndexAny(method, "/.")+1:], "Batch")
	word := name
	for i, r := range name {
		if i > 0 && !unicode.IsLower(r) {
			word = name[:i]
			break
		}
	}
	switch word {
	case "Get", "List", "Read", "Check", "Find", "Lookup", "Look", "Search", "Query", "Select", "Fetch", "Describe",
		"Count", "Has",
		"Is", "Exists", "Can", "Show", "View", "Scan", "Resolve", "Verify", "Validate":
		return true
	}
	return false
}

// besides reports whether the calls of a request are other than steps that follow each other, each
// a call or calls side by side: whether one began while another was under way, after a third had
// ended that the other did not wait for. It is not known which of the two the one waited for.
func besides(calls []critpath.Call) bool {
	byStart := func(a, b critpath.Call) int { return cmp.Or(cmp.Compare(a.Start, b.Start), cmp.Compare(a.End, b.End)) }
	if !slices.IsSortedFunc(calls, byStart) {
		calls = slices.SortedFunc(slices.Values(calls), byStart)
	}
	var first, last time.Duration // when the first and the last call of the step end
	for i := range calls {
		switch c := &calls[i]; {
		case i == 0 || c.Start >= last:
			first, last = c.End, c.End
		case c.Start >= first:
			return true
		default:
			first, last = min(first, c.End), max(last, c.End)
		}
	}
	return false
}
