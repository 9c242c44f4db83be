package control

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/foresay/foresay/internal/usercode"
)

// Request is one incoming request of a service: what calls and tasks made under
// its context belong to. Its methods are safe for concurrent use.
type Request struct {
	control *Control
	name    string
	id      string
	start   time.Time
	// compared: some requests like this one are left without speculation in mode on.
	compared bool
	lot      atomic.Uint64 // what shares are compared with, 0 before it is drawn
	always   atomic.Bool   // it took a guess that it would have taken whatever its lot

	mu     sync.Mutex
	ended  bool
	took   time.Duration // until Answered, 0 before
	arm    Arm
	canary bool    // that decided it, and not mode on
	drawn  float64 // how probable ArmOn was
	calls  []CallRecord
	tasks  []TaskRecord
	waited []WaitRecord
	begun  int // tasks
	missed int
	few    [4]CallRecord // where calls begins
}

// Arm is on which side of a canary a request was.
type Arm uint8

const (
	// ArmNone: the request called no call site for which its lot decided, or took a guess that it
	// would have taken whatever its lot: there is no other side to compare it with.
	ArmNone Arm = iota
	// ArmOff: it called some, and took no guess.
	ArmOff
	// ArmOn: it called some and its lot was to speculate.
	ArmOn
)

// Peer is what is known of a call's server: whether it takes the call of a caller
// that stands on a guess, or has it wait until that is confirmed.
type Peer uint8

const (
	// PeerUnknown: no such call was tried.
	PeerUnknown Peer = iota
	// PeerPlain: it takes none.
	PeerPlain
	// PeerSpeculative: it takes such calls.
	PeerSpeculative
	// PeerNever: whatever the server, the call waits: its caller looks at the
	// transport, or its messages cannot travel so.
	PeerNever
)

// RequestRecord is what happened in a request. Times are offsets from its start.
type RequestRecord struct {
	Name     string
	ID       string
	Start    time.Time
	Duration time.Duration
	Failed   bool
	Arm      Arm
	Canary   bool         // a canary put it there; else mode on did, which leaves a few without speculation
	Calls    []CallRecord // in the order in which they ended
	Tasks    []TaskRecord // in the order in which they ended
	Waits    []WaitRecord // in the order in which they ended
	// Missed is how many calls, tasks and waits are left out, because they were too many.
	Missed int
}

// CallRecord is one call that counts: made in plain code, or by the run of a
// task that was confirmed.
type CallRecord struct {
	CallSite string // its name, the full gRPC method
	Effect   Effect
	// Mode is what was done about predictions: ModeOff, ModeObserve, ModeShadow
	// or ModeOn.
	Mode Mode
	// Start is when it was sent, End when it was answered.
	Start, End time.Duration
	Guessed    bool // there was a prediction
	Digest     bool // but only whether the last response to the same request would be right
	Right      bool // one of them was the actual response
	Failed     bool
	// SharedGuessed and SharedRight are Guessed and Right if the last response to the
	// same request counts that anybody got, where that is compared.
	SharedGuessed, SharedRight bool
	// Peer is what is known of the call's server.
	Peer Peer
	// Ordered and SendPlainly are those of its call site.
	Ordered, SendPlainly bool
	// Task is the number of the task that made the call, 0 if plain code did.
	Task int
}

// TaskRecord is one task of the request's.
type TaskRecord struct {
	// Number counts the request's tasks from 1, in the order in which they began.
	Number     int
	Name       string
	Start, End time.Duration
	// Saved is what the task would have taken longer without speculation, by what
	// its code waited for and how long that took: less than nothing if it cost time.
	// Tasks may run beside each other: then theirs do not add up to the request's.
	Saved time.Duration
	// Wasted is how many calls it made in vain.
	Wasted int
}

// maxRecords bounds the calls and the tasks that a request keeps.
const maxRecords = 1024

// scopeKey is the key of what a context belongs to: a *Request, or a *scope.
type scopeKey struct{}

// scope is a Control within a request of perhaps another one.
type scope struct {
	control *Control
	request *Request
}

// Of returns the Control whose tasks those of ctx are, and the request that ctx belongs to; nil
// where there is none.
func Of(ctx context.Context) (*Control, *Request) {
	switch s := ctx.Value(scopeKey{}).(type) {
	case *Request:
		return s.control, s
	case *scope:
		if s != nil {
			return s.control, s.request
		}
	}
	return nil, nil
}

// Detach returns ctx as that of no Control and no request.
func (engine) Detach(ctx context.Context) context.Context {
	return context.WithValue(ctx, scopeKey{}, (*scope)(nil))
}

// OwnKey reports whether a key of context values is this package's.
func (engine) OwnKey(key any) bool { return key == (scopeKey{}) }

// Begin begins a request: calls and tasks under the returned context belong to
// it, and tasks are the Control's. The name is that of the kind of request, such
// as the full method; the id decides which side of a canary the request is on, in
// every service to which it goes with the request. Without one, that is left to
// chance. A request that is never ended costs nothing, and does not count.
func (c *Control) Begin(ctx context.Context, name, id string) (context.Context, *Request) {
	r := &requestContext{Context: ctx}
	r.request.control, r.request.name, r.request.id, r.request.start = c, name, id, time.Now()
	r.request.calls = r.request.few[:0]
	r.request.compared = c.begun.Add(1) > controlAfter && c.cfg.ControlShare > 0
	return r, &r.request
}

// requestContext is the context of a request.
type requestContext struct {
	context.Context
	request Request
}

func (c *requestContext) Value(key any) any {
	if key == (scopeKey{}) {
		return &c.request
	}
	return c.Context.Value(key)
}

// RequestOf returns the request that ctx belongs to, or nil.
func RequestOf(ctx context.Context) *Request {
	_, r := Of(ctx)
	return r
}

// ID returns the id that the request began with.
func (r *Request) ID() string { return r.id }

// Luck returns the request's lot.
func (r *engineRequest) Luck() uint64 {
	if lot := r.lot.Load(); lot != 0 {
		return lot
	}
	r.lot.CompareAndSwap(0, max(luckOf(r.id), 1))
	return r.lot.Load()
}

// luckOf returns a number that is the same for equal ids, everywhere.
func luckOf(id string) uint64 {
	if id == "" {
		return rand.Uint64()
	}
	sum := sha256.Sum256([]byte("foresay canary\x00" + id))
	return binary.BigEndian.Uint64(sum[:])
}

// within reports whether a number drawn by luckOf is in a share of all.
func within(luck uint64, share float64) bool {
	return float64(luck>>11)/(1<<53) < share
}

// End tells that the request has been answered, and whether it failed. Calls and
// tasks that end later do not count any more. Only the first End counts.
func (r *Request) End(err error) {
	r.mu.Lock()
	if r.ended {
		r.mu.Unlock()
		return
	}
	r.ended = true
	rec := RequestRecord{
		Name: r.name, ID: r.id, Start: r.start, Duration: cmp.Or(r.took, time.Since(r.start)), Failed: err != nil,
		Arm: r.arm, Canary: r.canary, Calls: r.calls, Tasks: r.tasks, Waits: r.waited, Missed: r.missed,
	}
	drawn := r.drawn
	r.mu.Unlock()
	r.control.weigh(&rec, drawn)
	if r.always.Load() {
		rec.Arm = ArmNone
	}
	for _, f := range r.control.cfg.OnRequest {
		usercode.Contain(r.name, r.control.cfg.Logger, "request observer", func() { f(&rec) })
	}
}

// Answered notes that the response is ready: the request's duration ends here,
// however late End comes. Only the first Answered counts.
func (r *Request) Answered() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.took == 0 {
		r.took = max(time.Since(r.start), 1)
	}
}

// chose notes which side the request is on, how probable it was to be on that with
// speculation, and whether a canary decided that.
func (r *Request) chose(on bool, share float64, canary bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.canary = r.canary || canary
	r.drawn = max(r.drawn, share)
	if on {
		r.arm = ArmOn
	} else {
		r.arm = max(r.arm, ArmOff)
	}
}

// AddCall adds a call that has ended.
func (r *engineRequest) AddCall(c CallRecord) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case r.ended:
	case len(r.calls) >= maxRecords:
		r.missed++
	default:
		r.calls = append(r.calls, c)
	}
}

// Number returns the number of another task.
func (r *engineRequest) Number() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.begun++
	return r.begun
}

// AddTask adds a task that has ended.
func (r *engineRequest) AddTask(t TaskRecord) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case r.ended:
	case len(r.tasks) >= maxRecords:
		r.missed++
	default:
		r.tasks = append(r.tasks, t)
	}
}
