package kit

import (
	"bytes"
	"testing"

	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/smr"
)

// large is a state machine whose answers to queries have a MiB each.
type large struct{ journal }

func (*large) Read([]byte) []byte { return bytes.Repeat([]byte{1}, 1<<20) }

// TestAnswersInBytes: a client that asks for much at once gets what fits, and is told to ask again
// for the rest, as more would be lost on the way; one answer it always gets.
func TestAnswersInBytes(t *testing.T) {
	const asked = 20
	cfg := smr.ReplicaConfig{MaxPending: 2 * asked, MaxPendingBytes: 1 << 20}
	env := protocol.NewEnv[smr.Message](nil, 1, nil)
	env.Begin(0)
	var queries []Query
	for i := range uint64(asked) {
		queries = append(queries, Query{ID: i + 1, Body: []byte("q")})
	}
	var held HeldQueries
	s := NewState(&large{}, nil)
	for left := queries; len(left) > 0; {
		if !held.Take(env, cfg, 9, left) {
			t.Fatal("queries that were answered are held")
		}
		env.Begin(0)
		held.Answer(env, s, 9, left)
		answered, size := 0, 0
		var again []Query
		for _, e := range env.Out {
			switch m := e.Msg.(type) {
			case ReadReplies:
				for _, r := range m.Items {
					answered++
					size += len(r.Result)
				}
			case Busy:
				for _, id := range m.Queries {
					again = append(again, queries[id-1])
				}
			}
		}
		if answered == 0 || size > maxAnswersBytes || answered+len(again) != len(left) {
			t.Fatalf("of %d queries %d are answered, with %d bytes, and %d are refused", len(left), answered, size, len(again))
		}
		left = again
	}
	if held != (HeldQueries{}) {
		t.Errorf("%+v is held in the end", held)
	}
}
