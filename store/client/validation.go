package client

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/foresay/foresay"
	"github.com/foresay/foresay/store"
)

// A validation has the commit of an attempt say whether its reads were right. The commit leaves
// when the function has returned, while all that it read is still a guess: it carries the versions,
// and takes effect only if they are those that count [PBFT-CS §3, predicated writes]. To the engine
// the verdict is the actual result of all reads at once.
type validation struct {
	attempt *attempt
	seeds   map[store.Key]store.Value
	late    chan struct{} // closed: the commit is long in coming, so a quorum is asked
	settled chan struct{} // closed: there is a verdict

	mu      sync.Mutex
	ctx     context.Context // of the attempt, outside of the task
	cancel  context.CancelCauseFunc
	open    map[store.Key]store.Value // reads that are guesses
	telling int                       // reads that are none any more, which the engine may not know yet
	told    chan struct{}             // closed once it knows all of them
	sent    bool                      // the commit has left: the verdict alone counts now
	carried []store.Read              // what it carries
	barred  bool                      // it leaves no more
	verdict *Decision
}

func newValidation(a *attempt, seeds map[store.Key]store.Value) *validation {
	return &validation{attempt: a, seeds: seeds, late: make(chan struct{}), settled: make(chan struct{}),
		open: map[store.Key]store.Value{}}
}

// begin is called before the task, and the function that it returns after it.
func (v *validation) begin(ctx context.Context, cancel context.CancelCauseFunc) (end func()) {
	v.ctx, v.cancel = ctx, cancel
	patience := time.AfterFunc(v.attempt.client.cfg.QuorumAfter, v.hurry)
	return func() { patience.Stop() }
}

// hurry has reads be asked of a quorum.
func (v *validation) hurry() {
	if v == nil {
		return
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if !v.isLateLocked() {
		close(v.late)
	}
}

func (v *validation) isLate() bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.isLateLocked()
}

func (v *validation) isLateLocked() bool {
	select {
	case <-v.late:
		return true
	default:
		return false
	}
}

// add notes a read that is about to be predicted.
func (v *validation) add(key store.Key, value store.Value) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.open[key] = value
}

// end forgets a read, and calls tell to tell its actual result. No commit leaves until the engine
// has it: the run stands on one guess more than are open. tell may call the program's hooks, so it
// has no lock. end returns false, and has done nothing, if the verdict counts instead.
func (v *validation) end(key store.Key, tell func()) bool {
	v.mu.Lock()
	if v.sent {
		v.mu.Unlock()
		return false
	}
	delete(v.open, key)
	if v.telling == 0 {
		v.told = make(chan struct{})
	}
	v.telling++
	v.mu.Unlock()
	tell()
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.telling--; v.telling == 0 {
		close(v.told)
	}
	return true
}

// submit sends the commit of a run that has returned, if it stands on no guesses but the
// transaction's own reads. Otherwise it leaves when the run is known to be right, as in mode Spec.
// It calls keep, with the lock held, before the commit leaves.
func (v *validation) submit(ctx context.Context, reads []store.Read, writes []store.Write, keep func()) {
	v.mu.Lock()
	defer v.mu.Unlock()
	for v.telling > 0 && ctx.Err() == nil { // else what the run stands on cannot be counted
		told := v.told
		v.mu.Unlock()
		select {
		case <-told:
		case <-ctx.Done():
		}
		v.mu.Lock()
	}
	state := foresay.State(ctx)
	if v.sent || v.barred || state.Discarded || !state.Speculative || ctx.Err() != nil {
		return
	}
	if store.ValidAccesses(reads, writes) != nil || state.Depth != len(v.open) || !v.covers(reads) {
		if !v.isLateLocked() {
			close(v.late)
		}
		return
	}
	v.sent, v.carried = true, reads
	keep()
	v.attempt.trace.commitBegins()
	go v.commit(reads, writes)
}

// covers reports whether all guesses are among what the run read.
func (v *validation) covers(reads []store.Read) bool {
	n := 0
	for _, r := range reads {
		if value, ok := v.open[r.Key]; ok {
			if value.Version != r.Version {
				return false
			}
			n++
		}
	}
	return n == len(v.open)
}

// forestall keeps the commit from leaving. It returns false if it has left.
func (v *validation) forestall() bool {
	if v == nil {
		return true
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	v.barred = !v.sent
	return v.barred
}

// errRefuted ends an attempt whose commit was not a success.
var errRefuted = fmt.Errorf("client: the transaction is not committed: %w", foresay.ErrAbandoned)

func (v *validation) commit(reads []store.Read, writes []store.Write) {
	d := v.attempt.sites.Commit(v.ctx, Submission{Reads: slices.Clone(reads), Writes: slices.Clone(writes), Hold: true})
	v.mu.Lock()
	v.verdict = &d
	v.mu.Unlock()
	close(v.settled)
	if d.Outcome.Verdict != store.Committed {
		v.cancel(errRefuted)
	}
}

// hasLeft reports whether the commit has left.
func (v *validation) hasLeft() bool {
	if v == nil {
		return false
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.sent
}

// wait returns the verdict, or nil if the commit has not left. It is called when the task has
// ended.
func (v *validation) wait() *Decision {
	if !v.hasLeft() {
		return nil
	}
	<-v.settled
	return v.verdict
}

// result reports whether the commit was a success, and if so whether it has confirmed a read.
func (v *validation) result(key store.Key, version store.Version) (committed, carried bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	committed = v.verdict != nil && v.verdict.Outcome.Verdict == store.Committed
	return committed, committed && slices.Contains(v.carried, store.Read{Key: key, Version: version})
}
