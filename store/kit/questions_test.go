package kit

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/smr/raft"
	"github.com/foresay/foresay/store"
)

// TestQuestions has a server that leads no more send those elsewhere whom it has not answered.
func TestQuestions(t *testing.T) {
	q := Questions{}
	for i := range uint64(5) {
		q[raft.Position{Index: i, Term: 1}] = Question{From: protocol.ID(9 - i/2), Ref: i}
	}
	if x, ok := q.Carried(raft.Position{Index: 2, Term: 1}); !ok || x != (Question{From: 8, Ref: 2}) {
		t.Errorf("the third command was asked for by %+v, %v", x, ok)
	}
	if x, ok := q.Carried(raft.Position{Index: 2, Term: 1}); ok {
		t.Errorf("it is answered a second time: %+v", x)
	}
	env := protocol.NewEnv[store.Message](nil, 1, nil)
	q.Elsewhere(env, 4, Question{From: 1, Ref: 8}, Question{From: 9, Ref: 7})
	var got []Question
	for _, e := range env.Out {
		if m, ok := e.Msg.(Elsewhere); !ok || m.Leader != 4 {
			t.Errorf("%d is told %+v", e.To, e.Msg)
		} else {
			got = append(got, Question{From: e.To, Ref: m.Ref})
		}
	}
	want := []Question{{1, 8}, {7, 4}, {8, 3}, {9, 0}, {9, 1}, {9, 7}}
	if diff := cmp.Diff(want, got); diff != "" || len(q) > 0 {
		t.Errorf("%d are left, and sent elsewhere are (-want +got):\n%s", len(q), diff)
	}
}
