package history

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"
)

// Recorder collects operations while they happen. Its zero value is ready. It may be used by many
// goroutines at once, and must not be copied.
type Recorder[I, O any] struct {
	mu  sync.Mutex
	ops []Op[I, O] // in the order of Invoke
	// ended tells of each operation whether Return or Fail was called.
	ended []bool
	errs  []error
}

// KVRecorder collects operations on a key-value store.
type KVRecorder = Recorder[KVInput, KVOutput]

// Invocation is an operation that was called. Unless Return or Fail follows, its outcome stays
// Unknown: that is what a caller records that gives up waiting.
type Invocation[I, O any] struct {
	recorder *Recorder[I, O]
	index    int
}

// Invoke records that a client calls an operation.
func (r *Recorder[I, O]) Invoke(client Client, at time.Duration, input I) Invocation[I, O] {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ops = append(r.ops, Op[I, O]{Client: client, Call: at, Input: input})
	r.ended = append(r.ended, false)
	return Invocation[I, O]{r, len(r.ops) - 1}
}

// Return records that the operation returned with output.
func (i Invocation[I, O]) Return(at time.Duration, output O) {
	i.end(at, Returned, output)
}

// Fail records that the operation ended and certainly has no effect.
func (i Invocation[I, O]) Fail(at time.Duration) {
	var none O
	i.end(at, Failed, none)
}

func (i Invocation[I, O]) end(at time.Duration, outcome Outcome, output O) {
	r := i.recorder
	r.mu.Lock()
	defer r.mu.Unlock()
	op := &r.ops[i.index]
	err := checkTimes(op.Call, at, outcome)
	if r.ended[i.index] {
		err = errTwice
	}
	if err != nil {
		r.errs = append(r.errs, fmt.Errorf("history: operation %d of client %d, called at %v: %w", i.index, op.Client,
			op.Call, err))
		return
	}
	r.ended[i.index] = true
	op.Return, op.Outcome, op.Output = at, outcome, output
}

// Ops returns a copy of what was recorded so far, in the order of the calls to Invoke. The error
// tells of operations that ended twice or before they began; the first word on each is kept.
func (r *Recorder[I, O]) Ops() ([]Op[I, O], error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.ops), errors.Join(r.errs...)
}

// CheckKV returns an error unless what was recorded of a key-value store is linearizable, and known
// to be so within a time.
func CheckKV(r *KVRecorder, within time.Duration) error {
	ops, err := r.Ops()
	if err != nil {
		return err
	}
	lin, err := CheckLinearizable(ops, KVModel(), within)
	if err != nil {
		return err
	}
	if lin.Verdict != OK { // undecided is no pass
		return fmt.Errorf("linearizability: %v: %s: %s", lin.Verdict, lin.Part, lin.Explanation)
	}
	return nil
}
