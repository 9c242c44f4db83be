package proof

import (
	"context"
	"slices"
	"sync"

	"github.com/foresay/foresay/store"
	"github.com/foresay/foresay/store/client"
)

// A bug stands between a client and its watch, and does what the client must not.
type bug struct {
	client.Backend
	watch *watch
	kind  bugKind
	mu    sync.Mutex
	runs  map[int]map[store.Key]store.Write // by transaction: what its function wrote in any run
}

type bugKind int

const (
	noBug           bugKind = iota
	bugByValue              // a guess is right if the value is
	bugNoBarrier            // the commit does not wait for the quorum
	bugTwice                // a commit without an answer is sent again, as another one
	bugNoValidation         // what only reads is not validated
	bugLeak                 // what discarded runs wrote is committed too
	bugAbortIsCommit
	bugUnknownIsAbort // and tried again
	bugAllSettled     // what reads one key is never validated
)

// A bugged attempt is one of a client with a bug.
type bugged struct {
	client.Attempt
	*bug
}

// Begin implements client.Backend.
func (b *bug) Begin(x client.Beginning) client.Attempt { return bugged{b.Backend.Begin(x), b} }

func (b bugged) Read(ctx context.Context, key store.Key, first func(client.Answer)) (client.Answer, error) {
	guess := make(chan client.Answer, 1)
	know := func(a client.Answer) {
		guess <- a
		if first != nil {
			first(a)
		}
	}
	switch b.kind {
	case bugByValue:
		a, err := b.Attempt.Read(ctx, key, know)
		select {
		case g := <-guess:
			if err == nil && a.Value.Present == g.Value.Present && string(a.Value.Bytes) == string(g.Value.Bytes) {
				return g, nil
			}
		default:
		}
		return a, err
	case bugNoBarrier:
		type answer struct {
			client.Answer
			error
		}
		quorum := make(chan answer, 1)
		go func() {
			a, err := b.Attempt.Read(ctx, key, know)
			quorum <- answer{a, err}
		}()
		select {
		case g := <-guess:
			return g, nil
		case r := <-quorum:
			return r.Answer, r.error
		}
	default:
		a, err := b.Attempt.Read(ctx, key, first)
		a.Settled = a.Settled || b.kind == bugAllSettled
		return a, err
	}
}

func (b bugged) Commit(ctx context.Context, s client.Submission) client.Decision {
	if b.kind == bugNoValidation && len(s.Writes) == 0 {
		return b.watch.pretend(ctx, s.Reads)
	}
	if b.kind == bugLeak && len(s.Writes) > 0 {
		n, _ := txnOf(ctx)
		b.mu.Lock()
		for _, w := range b.runs[n] {
			if i, ok := slices.BinarySearchFunc(s.Writes, w, compareWrites); !ok {
				s.Writes = slices.Insert(slices.Clone(s.Writes), i, w)
			}
		}
		delete(b.runs, n) // those of the next attempt are others
		b.mu.Unlock()
	}
	d := b.Attempt.Commit(ctx, s)
	switch {
	case b.kind == bugTwice && d.Outcome.Verdict == store.Unknown:
		again := b.Backend.Begin(client.Beginning{Priority: d.Txn.Priority})
		defer again.End()
		return again.Commit(ctx, s)
	case b.kind == bugAbortIsCommit && d.Outcome.Verdict == store.Aborted,
		b.kind == bugUnknownIsAbort && d.Outcome.Verdict == store.Unknown:
		d.Outcome.Verdict = map[bugKind]store.Verdict{bugAbortIsCommit: store.Committed,
			bugUnknownIsAbort: store.Aborted}[b.kind]
	}
	return d
}

// wrote is told what a run of a transaction's function writes.
func (b *bug) wrote(n int, w store.Write) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.runs == nil {
		b.runs = map[int]map[store.Key]store.Write{}
	}
	if b.runs[n] == nil {
		b.runs[n] = map[store.Key]store.Write{}
	}
	b.runs[n][w.Key] = w
}

func compareWrites(a, b store.Write) int {
	switch {
	case a.Key < b.Key:
		return -1
	case a.Key > b.Key:
		return 1
	}
	return 0
}
