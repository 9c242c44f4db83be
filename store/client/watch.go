package client

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/foresay/foresay"
	"github.com/foresay/foresay/store"
)

// Each read of a transaction is right by itself, but until the commit nobody knows whether they go together, and a function may loop for ever on values that do not. So an
// attempt whose function goes on for long is validated meanwhile, as if it only read, and given up if that fails.

// errStale ends an attempt whose reads do not go together.
var errStale = errors.New("client: what the transaction has read is not valid any more")

// watch is an attempt that is looked after.
type watch struct {
	txn    *txn
	commit *validation // nil: it is sent when the attempt is over
	cancel context.CancelCauseFunc
	tx     atomic.Pointer[Tx] // of the latest run
	stale  atomic.Bool
	timer  *time.Timer
	over   atomic.Bool
}

// watched returns a context for an attempt, and what is to be called when it is over.
func (t *txn) watched(ctx context.Context) (context.Context, func()) {
	t.watch = nil
	if foresay.InTask(ctx) {
		return ctx, func() {} // how long something takes must make no difference to a task
	}
	ctx, cancel := context.WithCancelCause(ctx)
	w := &watch{txn: t, commit: t.validation, cancel: cancel}
	t.watch = w
	pause := 4 * t.client.cfg.QuorumAfter
	look := func() {
		if w.look(ctx) && !w.over.Load() {
			pause *= 2
			w.timer.Reset(pause)
		}
	}
	ready := make(chan struct{})
	w.timer = time.AfterFunc(pause, func() {
		<-ready // w.timer is set
		look()
	})
	close(ready)
	return ctx, func() {
		w.over.Store(true)
		w.timer.Stop()
		cancel(nil)
	}
}

// look validates what the attempt has read so far. It returns false if there is no need to come again.
func (w *watch) look(ctx context.Context) bool {
	tx := w.tx.Load()
	if tx == nil {
		return true
	}
	tx.mu.Lock()
	reads, _ := tx.buffer.Accesses()
	reads = append([]store.Read(nil), reads...)
	over := tx.err != nil
	tx.mu.Unlock()
	if over || len(reads) == 0 {
		return true
	}
	if w.txn.client.cfg.Backend.Stale(ctx, reads) && !w.over.Load() && w.commit.forestall() {
		w.stale.Store(true)
		w.cancel(errStale)
		return false
	}
	return true
}

// note tells which run is the latest.
func (w *watch) note(tx *Tx) {
	if w != nil {
		w.tx.Store(tx)
	}
}

// failed tells whether the attempt was given up.
func (w *watch) failed() bool { return w != nil && w.stale.Load() }
