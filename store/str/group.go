package str

import (
	"slices"

	"github.com/foresay/foresay/clock"
	"github.com/foresay/foresay/internal/wirefmt"
	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/smr/raft"
	"github.com/foresay/foresay/store"
	"github.com/foresay/foresay/store/mvcc"
)

const (
	// remembered is how many ends a shard remembers at least. It is the same at all servers, as what
	// they remember is.
	remembered = 100_000
	// collected is how many versions are collected at most when the horizon rises.
	collected = 1000
)

// group is what a shard's group agrees on: a raft.Machine. What is prepared, and the books, are in
// memory too.
type group struct {
	format  *wirefmt.Format[store.Message]
	values  mvcc.Store
	open    map[store.TxnID]*heldPart
	locks   map[store.Key][]store.TxnID // who is prepared to write a key, the first one first
	books   books
	loaded  bool     // since the member has looked: the state was replaced
	results []result // of commands that were carried out, until the server takes them

	remembers uint64
	applied   func(store.Key, store.Value) // nil: nobody
	seen      func(event)                  // likewise
}

func newGroup(applied func(store.Key, store.Value), remembers uint64) *group {
	return &group{format: wirefmt.NewFormat("str", 1, commandKinds()...), values: mvcc.New([]byte(valuePrefix)),
		open: map[store.TxnID]*heldPart{}, locks: map[store.Key][]store.TxnID{}, remembers: remembers, applied: applied}
}

// Load implements raft.Machine.
func (g *group) Load(state protocol.Keys) {
	g.open, g.locks, g.books, g.loaded = map[store.TxnID]*heldPart{}, map[store.Key][]store.TxnID{}, books{}, true
	if b, ok := state.Get([]byte(booksKey)); ok {
		g.books = read(booksLayout, b)
	}
	var all []*heldPart
	for _, b := range state.Scan([]byte(openPrefix), []byte{openPrefix[0] + 1}) {
		h := read(openLayout, b)
		all = append(all, &h)
	}
	slices.SortFunc(all, func(a, b *heldPart) int { return int(a.at.Index) - int(b.at.Index) })
	for _, h := range all {
		g.hold(h)
	}
}

func (g *group) hold(h *heldPart) {
	g.open[h.part.ID] = h
	for _, w := range h.part.Writes {
		g.locks[w.Key] = append(g.locks[w.Key], h.part.ID)
	}
}

// Apply implements raft.Machine.
func (g *group) Apply(state raft.State, at raft.Position, command []byte) {
	r := result{State: aborted}
	before := g.books
	switch m, _ := g.format.Decode(command); m := m.(type) {
	case prepare:
		r = g.prepare(state, at, m.Part)
	case decide:
		r = g.decide(state, m)
	case fence:
		if r = g.known(state, m.ID); r.State == waiting {
			r = g.ended(state, m.ID, result{State: aborted, Reason: store.Fenced})
		}
	case confirm:
		r = g.confirm(state, m.ID)
	case done:
		r = g.done(state, m.ID)
	case ceil:
		g.ceil(state, m)
	case reader:
		g.reader(state, m)
	}
	if !before.equal(g.books) {
		state.Put([]byte(booksKey), booksLayout.Encode(g.books))
	}
	g.results = append(g.results, r)
}

func (b books) equal(c books) bool {
	return b.old == c.old && b.first == c.first && b.next == c.next && b.floor == c.floor &&
		slices.Equal(b.deaf, c.deaf) &&
		slices.Equal(b.leaving, c.leaving)
}

// known returns what the shard knows of a transaction: waiting if that is nothing.
func (g *group) known(state protocol.Keys, id store.TxnID) result {
	if h := g.open[id]; h != nil && h.part.Held {
		return result{State: prepared, Reason: store.Lapsed}
	} else if h != nil {
		return result{State: prepared}
	}
	for _, prefix := range []string{toldPrefix, endedPrefix} {
		if b, ok := state.Get(store.TxnKey(prefix, id)); ok {
			return read(endedLayout, b)
		}
	}
	if id.Time <= g.books.old {
		return result{State: forgotten, Reason: store.Old}
	}
	return result{State: waiting}
}

// prepare certifies a part. Its leader has done so before it proposed the entry, as of the entries
// before it, and so has found the same.
func (g *group) prepare(state raft.State, at raft.Position, p part) result {
	if r := g.known(state, p.ID); r.State != waiting {
		return r
	}
	if why := g.refuses(state, p); why != store.NoReason {
		return g.ended(state, p.ID, result{State: aborted, Reason: why})
	}
	h := &heldPart{part: p, at: at}
	g.hold(h)
	state.Put(store.TxnKey(openPrefix, p.ID), openLayout.Encode(*h))
	return g.known(state, p.ID)
}

// confirm lets a part be committed that was held. One that is not prepared yet is forgotten, as far
// as the answer goes.
func (g *group) confirm(state raft.State, id store.TxnID) result {
	if h := g.open[id]; h != nil && h.part.Held {
		h.part.Held = false
		state.Put(store.TxnKey(openPrefix, id), openLayout.Encode(*h))
	}
	r := g.known(state, id)
	if r.State == waiting {
		r = result{State: forgotten}
	}
	return r
}

// refuses returns why a part cannot be prepared: somebody whom its snapshot does not show has
// written one of its keys, or may yet.
func (g *group) refuses(state protocol.Keys, p part) store.Reason {
	if p.At < g.values.Horizon(state) {
		return store.Old
	}
	for _, w := range p.Writes {
		if clock.Stamp(g.values.Newest(state, w.Key).Version.Time) > p.At {
			return store.StaleWrite
		}
		for _, id := range g.locks[w.Key] {
			if !slices.Contains(p.Over, id) {
				return store.Locked
			}
		}
	}
	for _, id := range p.Over {
		switch r := g.known(state, id); {
		case r.State == prepared:
		case r.State != committed || r.At > p.At:
			return store.StaleRead
		}
	}
	return store.NoReason
}

// decide carries out a decision, or makes it. What was decided first stands.
func (g *group) decide(state raft.State, m decide) result {
	switch r := g.known(state, m.ID); r.State {
	case waiting:
		if m.Commit { // it was prepared: what is not known was forgotten
			return result{State: forgotten, Reason: store.Old}
		}
		return g.ended(state, m.ID, result{State: aborted, Reason: m.Reason})
	case prepared:
	default:
		return r
	}
	h := g.open[m.ID]
	if m.Held && !h.part.Held {
		return g.known(state, m.ID)
	}
	if m.Commit {
		g.values.RaiseCeiling(state, m.Read)
		for _, w := range h.part.Writes {
			v := store.Value{Version: store.Version{Time: uint64(m.At), Client: m.ID.Client}, Present: !w.Delete, Bytes: w.Bytes}
			if err := g.values.Put(state, w.Key, v); err != nil {
				panic(err) // the horizon is below all snapshots of what is prepared: runners stop at it
			}
			if g.applied != nil {
				g.applied(w.Key, v)
			}
		}
	}
	g.letGo(state, h)
	r := result{State: aborted, Reason: m.Reason}
	if m.Commit {
		r = result{State: committed, At: m.At}
		if g.seen != nil {
			g.seen(event{what: wasCarriedOut, id: m.ID, commit: m.At, writes: h.part.Writes})
		}
	}
	if m.Commit && m.Anchor {
		state.Put(store.TxnKey(toldPrefix, m.ID), endedLayout.Encode(r))
		return r
	}
	return g.ended(state, m.ID, r)
}

// letGo gives a part's keys free.
func (g *group) letGo(state raft.State, h *heldPart) {
	delete(g.open, h.part.ID)
	state.Delete(store.TxnKey(openPrefix, h.part.ID))
	for _, w := range h.part.Writes {
		left := slices.DeleteFunc(g.locks[w.Key], func(id store.TxnID) bool { return id == h.part.ID })
		if g.locks[w.Key] = left; len(left) == 0 {
			delete(g.locks, w.Key)
		}
	}
}

// done lets a commit be forgotten that all shards have carried out.
func (g *group) done(state raft.State, id store.TxnID) result {
	r := g.known(state, id)
	if key := store.TxnKey(toldPrefix, id); r.State == committed {
		if _, ok := state.Get(key); ok {
			state.Delete(key)
			return g.ended(state, id, r)
		}
	}
	return r
}

// ended keeps an end, and forgets the earliest one if there are enough others.
func (g *group) ended(state raft.State, id store.TxnID, r result) result {
	state.Put(store.TxnKey(endedPrefix, id), endedLayout.Encode(r))
	b := &g.books
	state.Put(orderKey(b.next), idLayout.Encode(id))
	b.next++
	if b.next-b.first > g.remembers {
		first, _ := state.Get(orderKey(b.first))
		id := read(idLayout, first)
		b.old = max(b.old, id.Time)
		state.Delete(store.TxnKey(endedPrefix, id))
		state.Delete(orderKey(b.first))
		b.first++
	}
	return r
}

// ceil raises the ceiling, and the horizon up to the snapshots of what is prepared: a transaction
// commits above its own.
func (g *group) ceil(state raft.State, m ceil) {
	g.values.RaiseCeiling(state, m.Ceiling)
	h := m.Horizon
	for _, p := range g.open { //pure:ok the least of all
		h = min(h, p.part.At)
	}
	if h > 0 {
		g.values.RaiseHorizon(state, h)
		g.values.CollectOverwritten(state, collected)
	}
}

// reader counts a server as a reader or not. A server that serves no more may not know it yet, and
// goes by an earlier ceiling.
func (g *group) reader(state raft.State, m reader) {
	without := func(ids []protocol.ID) []protocol.ID {
		return slices.DeleteFunc(slices.Clone(ids), func(id protocol.ID) bool { return id == m.Server })
	}
	b := &g.books
	switch {
	case m.Serves && !m.Leaves && slices.Contains(b.leaving, m.Server): // it asks, and is to leave
	case m.Serves:
		b.deaf, b.leaving = without(b.deaf), without(b.leaving)
	default:
		b.deaf = append(without(b.deaf), m.Server)
		slices.Sort(b.deaf)
		if m.Leaves {
			b.leaving = append(without(b.leaving), m.Server)
			slices.Sort(b.leaving)
		}
		b.floor = max(b.floor, g.values.Ceiling(state))
	}
}
