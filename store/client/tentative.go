package client

import (
	"context"
	"maps"
	"sync"
	"time"

	"github.com/foresay/foresay/driver"

	"github.com/foresay/foresay/internal/usercode"
	"github.com/foresay/foresay/store"
)

// Tentative is an [Option] for code that is to go on before its transaction is final, and that can
// take back what it has said: the store's users hear of it when the transaction is committed
// locally, and of what became of it later [STR §4, Listing 1]. [Client.Txn] returns nil at the
// local commit then. A transaction that is refused before is tried again as others are.
//
// Each function is called once at most, without others of the same transaction beside it, and may
// be nil. Those that come after Txn has returned are called by a goroutine of the client's, and
// must not wait for long; a panic of theirs is logged. It takes a store whose protocol has local
// commits, STR in mode internal. Code of a task of package foresay needs nothing of this: it goes
// on at local commits by itself, and nothing of that is seen outside too early.
type Tentative struct {
	// Allow is asked when the transaction's function has returned. If it says no, there is no local
	// commit to be told: Txn returns when the transaction is final, and calls Final. nil: yes.
	Allow func(TentativeInfo) bool
	// Speculated is called when the transaction is committed locally, before Txn returns.
	Speculated func()
	// Final is called when it is committed for good.
	Final func()
	// Apology is called, after Speculated, when it is not: with an AbortedError; or with an
	// UnknownError once the connection is closed, as nobody can be asked any more. As long as it is
	// open, the client goes on asking.
	Apology func(error)
}

// TentativeInfo is what is known of a transaction that may be told before it is final.
type TentativeInfo struct {
	// Notes are what its function has noted: see [Tx.Note].
	Notes map[string]any
	// CommitRate is the share of transactions of its class (WithClass) that became final, of those
	// that were told before, with the latest ones counting most; 1 if there were none. Told is how
	// many there were.
	CommitRate float64
	Told       uint64
}

func (t Tentative) apply(o *options) { o.tentative = &t }

// Note keeps something about the transaction, for Tentative.Allow. What other attempts have noted
// does not count.
func (tx *Tx) Note(name string, value any) {
	tx.mu.Lock()
	defer tx.mu.Unlock()
	if tx.notes == nil {
		tx.notes = map[string]any{}
	}
	tx.notes[name] = value
}

func (tx *Tx) noted() map[string]any {
	tx.mu.Lock()
	defer tx.mu.Unlock()
	return maps.Clone(tx.notes)
}

// rates is how often transactions became final that were told before, by class. Its zero value is
// ready.
type rates struct {
	mu sync.Mutex
	of map[string]*rate
}

type rate struct {
	told  uint64
	final float64 // an average that forgets
}

// get returns what is known of a class.
func (r *rates) get(class string) (final float64, told uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if k := r.of[class]; k != nil {
		return k.final, k.told
	}
	return 1, 0
}

// saw learns from the end of one.
func (r *rates) saw(class string, final bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.of == nil {
		r.of = map[string]*rate{}
	}
	k := r.of[class]
	if k == nil && len(r.of) >= maxClasses {
		return
	}
	if k == nil {
		k = &rate{}
		r.of[class] = k
	}
	k.told++
	share := 0.0
	if final {
		share = 1
	}
	k.final += max(weight, 1/float64(k.told)) * (share - k.final)
}

// tentative is what a transaction's attempts know of its Tentative.
type tentative struct {
	Tentative
	client *Client
	class  string
	told   bool // it was committed locally, and Txn returns
}

// newTentative returns that of a transaction; nil if it has none. What cannot be is the options'
// error.
func newTentative(ctx context.Context, c *Client, o *options) *tentative {
	switch {
	case o.tentative == nil:
		return nil
	case driver.InTask(ctx):
		o.reject("it is tentative, and its task goes on at local commits by itself")
	case !speculates(c.cfg.Backend):
		o.reject("it is tentative, and the store's protocol has no local commits")
	}
	return &tentative{Tentative: *o.tentative, client: c, class: classOf(ctx)}
}

// speculates reports whether a store has local commits.
func speculates(b Backend) bool {
	s, ok := b.(interface{ Speculates() bool })
	return ok && s.Speculates()
}

// allows asks whether a transaction may be told before it is final.
func (t *tentative) allows(notes map[string]any) (yes bool) {
	if t.Allow == nil {
		return true
	}
	info := TentativeInfo{Notes: notes}
	info.CommitRate, info.Told = t.client.rates.get(t.class)
	t.call("Allow", func() { yes = t.Allow(info) })
	return yes
}

func (t *tentative) call(what string, f func()) { usercode.Contain("client.Tentative", nil, what, f) }

// commit commits a transaction, and returns at its local commit if that comes first. What becomes
// of it then, the context of the code has nothing to do with.
func (t *tentative) commit(ctx context.Context, sites Speculator, s Submission) Decision {
	local, ended := make(chan Decision, 1), make(chan Decision, 1)
	going, cancel := context.WithCancel(context.WithoutCancel(ctx))
	go func() {
		ended <- sites.Speculate(going, s, Speculation{Local: func(id store.TxnID) {
			local <- Decision{Txn: store.Txn{ID: id, Reads: s.Reads, Writes: s.Writes},
				Outcome: store.Outcome{Verdict: store.Committed}}
		}})
	}()
	for {
		select {
		case d := <-ended:
			cancel()
			return d
		case d := <-local:
			t.told = true
			if t.Speculated != nil {
				t.call("Speculated", t.Speculated)
			}
			go func() {
				defer cancel()
				t.conclude(going, <-ended)
			}()
			return d
		case <-ctx.Done():
			cancel()
			ctx = context.Background()
		}
	}
}

// askAgain is how long a client waits until it asks again for an outcome that nobody knew.
const askAgain = 250 * time.Millisecond

// conclude tells the user what became of a transaction that was told before.
func (t *tentative) conclude(ctx context.Context, d Decision) {
	for wait := askAgain; d.Outcome.Verdict == store.Unknown || d.Outcome.Verdict == store.Blocked; wait *= 2 {
		if closed, ok := t.client.cfg.Backend.(interface{ Closed() bool }); ok && closed.Closed() || d.Txn.ID.IsZero() {
			break
		}
		time.Sleep(min(wait, 20*askAgain))
		d = t.client.cfg.Backend.Resolve(ctx, d.Txn)
	}
	t.client.rates.saw(t.class, d.Outcome.Verdict == store.Committed)
	switch {
	case d.Outcome.Verdict == store.Committed:
		t.final()
	case t.Apology != nil:
		err := unsure(ctx, failure(d, 1))
		if d.Outcome.Verdict == store.Aborted {
			err = &AbortedError{Reason: d.Outcome.Reason, Attempts: 1}
		}
		t.call("Apology", func() { t.Apology(err) })
	}
}

// final tells the user that a transaction is committed for good.
func (t *tentative) final() {
	if t.Final != nil {
		t.call("Final", t.Final)
	}
}
