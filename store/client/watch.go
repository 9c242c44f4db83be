package client

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/foresay/foresay"
	"github.com/foresay/foresay/store"
)

// Each read of a transaction is right by itself, but until the commit nobody knows whether they go
// together, and a function may loop for ever on values that do not. So an attempt whose function
// goes on for long is validated meanwhile, as if it only read, and given up if that fails.

// errStale ends an attempt whose reads do not go together.
var errStale = fmt.Errorf("client: what the transaction has read is not valid any more: %w", foresay.ErrAbandoned)

// watch looks after an attempt. A nil one does not.
type watch struct {
	attempt *attempt
	cancel  context.CancelCauseFunc
	tx      atomic.Pointer[Tx] // of the latest run
	stale   atomic.Bool

	mu    sync.Mutex
	timer *time.Timer // nil: it is over
	pause time.Duration
}

// begin returns a context for the attempt, and what is to be called when it is over.
func (w *watch) begin(ctx context.Context) (context.Context, func()) {
	if w == nil {
		return ctx, func() {}
	}
	ctx, w.cancel = context.WithCancelCause(ctx)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.pause = 4 * w.attempt.client.cfg.QuorumAfter
	w.timer = time.AfterFunc(w.pause, func() {
		if w.look(ctx) {
			w.comeAgain()
		}
	})
	return ctx, w.end
}

func (w *watch) comeAgain() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.timer != nil {
		w.pause *= 2
		w.timer.Reset(w.pause)
	}
}

func (w *watch) end() {
	w.mu.Lock()
	if w.timer != nil {
		w.timer.Stop()
		w.timer = nil
	}
	w.mu.Unlock()
	w.cancel(nil)
}

func (w *watch) isOver() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.timer == nil
}

// look validates what the attempt has read so far. It returns false if there is no need to come
// again.
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
	if w.attempt.sites.Stale(ctx, reads) && !w.isOver() && w.attempt.validation.forestall() {
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

// failed reports whether the attempt was given up.
func (w *watch) failed() bool { return w != nil && w.stale.Load() }
