package layered

import (
	"bytes"
	"testing"

	"github.com/foresay/foresay/store"
)

// TestShard has a shard take commands in orders that seldom come about by chance. Each is also made
// by one that was restored from a snapshot before.
func TestShard(t *testing.T) {
	id := store.TxnID{Time: 5, Client: 1}
	part := prepare{Txn: store.Txn{ID: id, Writes: []store.Write{{Key: "k", Bytes: []byte("v")}}}, Shards: []uint32{0, 1}}
	other := prepare{Txn: store.Txn{ID: store.TxnID{Time: 6, Client: 2}, Reads: []store.Read{{Key: "k"}}},
		Shards: []uint32{0}, Only: true}
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
		{"all have carried it out", []any{part, end(true), done{id}, end(false)}, []result{{prepared, 0}, {committed, 0},
			{committed, 0}, {committed, 0}}},
		{"all have carried out what nobody remembers", []any{done{id}}, []result{{forgotten, store.Old}}},
	} {
		for _, restored := range []bool{false, true} {
			s := newShard(nil)
			for i, c := range tc.commands {
				if restored {
					var b bytes.Buffer
					next := newShard(nil)
					if err := s.Snapshot(&b); err != nil {
						t.Fatal(err)
					}
					if err := next.Restore(&b); err != nil {
						t.Fatal(err)
					}
					s = next
				}
				b, err := s.format.Append(nil, c)
				if err != nil {
					t.Fatal(err)
				}
				got, err := s.format.Decode(s.Apply(b))
				if err != nil || got != any(tc.want[i]) {
					t.Errorf("%s, restored %v: command %d has the result %+v (%v), want %+v", tc.name, restored, i, got, err,
						tc.want[i])
				}
			}
			if n := len(s.locks); n > 0 {
				t.Errorf("%s: %d keys are locked", tc.name, n)
			}
		}
	}
}
