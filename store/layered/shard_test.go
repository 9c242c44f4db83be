package layered

import (
	"maps"
	"testing"

	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/smr/raft"
	"github.com/foresay/foresay/store"
)

// TestShard has a shard take commands in orders that seldom come about by chance. Each is also
// taken by one that has loaded its state before.
func TestShard(t *testing.T) {
	id := store.TxnID{Time: 5, Client: 1}
	part := prepare{Txn: store.Txn{ID: id, Writes: []store.Write{{Key: "k", Bytes: []byte("v")}}}, Shards: []uint32{0, 1}}
	other := prepare{Txn: store.Txn{ID: store.TxnID{Time: 6, Client: 2}, Reads: []store.Read{{Key: "k"}}},
		Shards: []uint32{0}, Only: true}
	latest := prepare{Txn: store.Txn{ID: store.TxnID{Time: 9, Client: 1}, Writes: []store.Write{{Key: "l"}}},
		Shards: []uint32{0}, Only: true}
	refused := func(keys ...store.Key) prepare {
		m := aged(7, 7, keys...)
		m.Waits = false
		return m
	}
	end := func(commit bool) decide { return decide{ID: id, Shards: part.Shards, Commit: commit, Anchor: true} }
	for _, tc := range []struct {
		name     string
		commands []any
		want     []result
	}{
		{"an abort comes before the part", []any{end(false), part, end(true)},
			[]result{{aborted, 0}, {aborted, 0}, {aborted, 0}}},
		{"a part comes twice", []any{part, part, end(true), part, end(false)},
			[]result{{prepared, 0}, {prepared, 0}, {committed, 0}, {committed, 0}, {committed, 0}}},
		{"another one reads meanwhile", []any{part, other, end(false), other},
			[]result{{prepared, 0}, {aborted, store.Locked}, {aborted, 0}, {aborted, store.Locked}}},
		{"another one has read what is replaced", []any{part, end(true), other}, []result{{prepared, 0}, {committed, 0},
			{aborted, store.StaleRead}}},
		// What an earlier version has in its log is refused for what is first in its way.
		{"it has read what is locked, and another key that was replaced", []any{part, latest, refused("k?", "l?"),
			end(false)}, []result{{prepared, 0}, {committed, 0}, {aborted, store.Locked}, {aborted, 0}}},
		{"it writes what is locked, and another key that has a later version", []any{part, latest, refused("k", "l"),
			end(false)}, []result{{prepared, 0}, {committed, 0}, {aborted, store.Locked}, {aborted, 0}}},
		{"it has read what was replaced, and another key that is locked", []any{part, latest, refused("l?", "k?"),
			end(false)}, []result{{prepared, 0}, {committed, 0}, {aborted, store.StaleRead}, {aborted, 0}}},
		{"all have carried it out", []any{part, end(true), done{id}, end(false)}, []result{{prepared, 0}, {committed, 0},
			{committed, 0}, {committed, 0}}},
		{"all have carried out what nobody remembers", []any{done{id}}, []result{{forgotten, store.Old}}},
	} {
		for _, loaded := range []bool{false, true} {
			s := newShard(nil)
			env := protocol.NewEnv[store.Message](nil, 1, nil)
			for i, c := range tc.commands {
				if loaded {
					s = newShard(nil)
					s.Load(env)
				}
				b, err := s.format.Append(nil, c)
				if err != nil {
					t.Fatal(err)
				}
				s.Apply(env, raft.Position{Index: uint64(i) + 2, Term: 1}, b)
				if got := s.results; len(got) != 1 || got[0].result != tc.want[i] {
					t.Errorf("%s, loaded %v: command %d has the result %+v, want %+v", tc.name, loaded, i, got, tc.want[i])
				}
				s.results = nil
			}
			if n := len(s.locks); n > 0 {
				t.Errorf("%s: %d keys are locked", tc.name, n)
			}
		}
	}
}

// TestForgetting has a shard forget the transactions that were decided first, but for one that
// others wait for.
func TestForgetting(t *testing.T) {
	s := newShard(nil)
	disk := map[string]int{}
	env := protocol.NewEnv[store.Message](nil, 1, nil)
	apply := func(c any) result {
		b, err := s.format.Append(nil, c)
		if err != nil {
			t.Fatal(err)
		}
		s.Apply(env, raft.Position{}, b)
		defer func() { s.results = nil }()
		return s.results[0].result
	}
	awaited := store.TxnID{Time: 1, Client: 1}
	apply(prepare{Txn: store.Txn{ID: awaited, Writes: []store.Write{{Key: "k"}}}, Shards: []uint32{0, 1}})
	apply(decide{ID: awaited, Shards: []uint32{0, 1}, Commit: true, Anchor: true})
	const more = 5
	id := func(i int) store.TxnID { return store.TxnID{Time: uint64(i) + 10, Client: 1} }
	for i := range remembered + more {
		apply(decide{ID: id(i), Reason: store.Fenced})
	}
	for k := range env.Scan(nil, nil) {
		disk[string(k[:1])]++
	}
	if want := map[string]int{"b": 1, "o": 1, "p": remembered, "t": remembered, "v": 1}; !maps.Equal(disk, want) {
		t.Errorf("on disk are %v, want %v", disk, want)
	}
	next := newShard(nil)
	next.Load(env)
	s = next
	for _, tc := range []struct {
		id   store.TxnID
		want result
	}{
		{id(more - 1), result{forgotten, store.Old}}, {id(more), result{aborted, store.Fenced}},
		{awaited, result{committed, store.NoReason}},
	} {
		if got := apply(prepare{Txn: store.Txn{ID: tc.id, Writes: []store.Write{{Key: "l"}}}}); got != tc.want {
			t.Errorf("%v: %+v, want %+v", tc.id, got, tc.want)
		}
	}
	if s.size() != remembered+1 {
		t.Errorf("%d transactions are remembered, want %d", s.size(), remembered+1)
	}
}
