package client

import (
	"context"
	"slices"
	"sync"

	"github.com/foresay/foresay/store"
)

// A Preparer is an Attempt of a store that prepares keys while the transaction's function goes on,
// as Carousel does [Carousel §6.1]. What is prepared for runs that are discarded belongs to the
// attempt, as its reads do, and ends with it.
type Preparer interface {
	// Prepare has keys prepared that the function has reached, each in ascending order. It does not
	// wait; ctx has values only. took is called once at most, with what reads hold at the leaders that
	// prepare them, as far as they have said.
	Prepare(ctx context.Context, reads, writes []store.Key, took func(map[store.Key]Answer))
}

// prepares has an attempt's keys prepared as its function reaches them, once it is known to write:
// one that only reads needs nobody's lock. A step is what it has reached since the last one; it is
// made when the function is about to wait for a read, as whatever follows at once may go along.
type prepares struct {
	sites Preparer // nil: the store does not

	mu    sync.Mutex
	reads map[store.Key]*prepared
	// asked are the keys that are prepared, to read and to write them.
	asked, written map[store.Key]bool
}

// prepared is what is known of a key at who prepares it.
type prepared struct {
	done   chan struct{}
	answer Answer // once done is closed
}

// newPrepares is of an attempt that has begun, with keys that it has declared.
func newPrepares(sites Attempt, b Beginning, early bool) *prepares {
	p := &prepares{reads: map[store.Key]*prepared{}, asked: map[store.Key]bool{}, written: map[store.Key]bool{}}
	if early {
		p.sites, _ = sites.(Preparer)
	}
	if len(b.Writes) > 0 { // else what it has declared is read, and not prepared
		for _, k := range b.Reads {
			p.asked[k] = true
		}
	}
	for _, k := range b.Writes {
		p.written[k] = true
	}
	return p
}

// of returns what is known of a key, as soon as it is.
func (p *prepares) of(key store.Key) *prepared {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.ofLocked(key)
}

func (p *prepares) ofLocked(key store.Key) *prepared {
	k := p.reads[key]
	if k == nil {
		k = &prepared{done: make(chan struct{})}
		p.reads[key] = k
	}
	return k
}

// reached makes a step of what a run has read and written and is about to read, if it writes.
func (p *prepares) reached(ctx context.Context, tx *Tx, key store.Key) {
	if p.sites == nil {
		return
	}
	reads, writes := tx.touched()
	if len(writes) == 0 {
		return
	}
	if i, ok := slices.BinarySearch(reads, key); !ok {
		reads = slices.Insert(reads, i, key)
	}
	p.mu.Lock()
	reads, writes = fresh(p.asked, reads), fresh(p.written, writes)
	p.mu.Unlock()
	if len(reads)+len(writes) == 0 {
		return
	}
	p.sites.Prepare(ctx, reads, writes, p.took)
}

// fresh returns those of some keys that are in no set yet, and puts them into it.
func fresh(set map[store.Key]bool, keys []store.Key) (out []store.Key) {
	for _, k := range keys {
		if !set[k] {
			set[k] = true
			out = append(out, k)
		}
	}
	return out
}

func (p *prepares) took(values map[store.Key]Answer) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for k, a := range values {
		known := p.ofLocked(k)
		select {
		case <-known.done: // what was said first counts
		default:
			known.answer = a
			close(known.done)
		}
	}
}

// known calls f with what is known.
func (p *prepares) known(f func(store.Key, store.Value)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for k, known := range p.reads {
		select {
		case <-known.done:
			f(k, known.answer.Value)
		default:
		}
	}
}

// guess returns what the client's predictor says that a key holds.
func (c *Client) guess(ctx context.Context, key store.Key) (v store.Value, ok bool) {
	if c.cfg.Predictor == nil {
		return v, false
	}
	for _, guess := range c.cfg.Predictor.Predict(ctx, string(key)) {
		if v, ok = guess.(store.Value); ok {
			return v, true
		}
	}
	return v, false
}

// learn tells the predictor what a key holds, or did when a transaction was committed or refused.
func (c *Client) learn(ctx context.Context, key store.Key, v store.Value) {
	if c.cfg.Predictor != nil {
		c.cfg.Predictor.Learn(ctx, string(key), v)
	}
}

// learnFrom learns from what became of an attempt: of a committed one what it has read and written,
// of a refused one what it should have read.
func (t *txn) learnFrom(ctx context.Context, d Decision, values []store.Value) {
	switch d.Outcome.Verdict {
	case store.Committed:
		for i, r := range d.Txn.Reads {
			if i < len(values) && values[i].Version == r.Version {
				t.client.learn(ctx, r.Key, values[i])
			}
		}
		if d.Version.IsZero() {
			return
		}
		for _, w := range d.Txn.Writes {
			t.client.learn(ctx, w.Key, store.Value{Version: d.Version, Present: !w.Delete, Bytes: w.Bytes})
		}
	case store.Aborted:
		for key, v := range t.seeds {
			t.client.learn(ctx, key, v)
		}
	}
}
