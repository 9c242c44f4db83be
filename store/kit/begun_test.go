package kit

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/foresay/foresay/internal/plant"
	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/store"
	"github.com/foresay/foresay/store/storedeploy"
)

type ownOpened struct{ Opened }

// TestBegun: who has begun a transaction finds it, its coordinator is the one that hears of it, and
// when it goes, those who wait are told so, and nobody else.
func TestBegun(t *testing.T) {
	layout := storedeploy.Layout(3, 1)
	b := NewBegun(layout, func(env *protocol.Env[store.Message], own *ownOpened, s *Step) {
		env.Send(protocol.App, store.Declared{Ref: 100*own.Ref + s.Ref})
	})
	env := protocol.NewEnv[store.Message](nil, 99, rand.New(rand.NewPCG(1, 1)))
	first, second := store.TxnID{Time: 1, Client: 1}, store.TxnID{Time: 2, Client: 1}
	b.Add(first, &ownOpened{Opened{Ref: 7, Site: 1, Steps: []*Step{{Ref: 7, Answered: true}}}})
	b.Add(second, &ownOpened{Opened{Ref: 8, Site: 2, Steps: []*Step{{Ref: 8, Answered: true}, {Ref: 9}, {Ref: 10}}}})
	if id, own := b.By(8); id != second || own == nil || own != b.Of(second) || !own.Waits() || b.Of(first).Waits() {
		t.Errorf("8 has begun %v, %+v", id, own)
	}
	if id, own := b.By(9); own != nil {
		t.Errorf("9, which has begun nothing, has begun %v", id)
	}
	for _, step := range []struct {
		what string
		do   func()
		want string
		left int
	}{
		{"somebody abandons what was not begun", func() { b.Abandon(env, store.TxnID{Time: 3, Client: 1}) }, "[]", 2},
		{"one that waits for two steps is abandoned", func() { b.Abandon(env, second) },
			fmt.Sprint([]string{fmt.Sprint(layout.Coordinator(2, second), store.AbandonRequest{ID: second}), "stop 2",
				fmt.Sprint(protocol.App, store.Declared{Ref: 809}), fmt.Sprint(protocol.App, store.Declared{Ref: 810})}), 1},
		{"one that has all its answers goes", func() { b.Close(env, first) }, "[stop 1]", 0},
	} {
		env.Begin(time.Second)
		step.do()
		var said []string
		for _, e := range env.Out {
			if t, ok := e.Timer.(BeatTimer); ok && e.Kind == protocol.KindStop {
				said = append(said, fmt.Sprint("stop ", t.ID.Time))
			} else {
				said = append(said, fmt.Sprint(e.To, e.Msg))
			}
		}
		if got := fmt.Sprint(said); got != step.want || b.Len() != step.left {
			t.Errorf("%s: %s, want %s; %d are left, want %d", step.what, got, step.want, b.Len(), step.left)
		}
	}
	if len(b.refs) != 0 {
		t.Errorf("who has begun what is gone is remembered: %v", b.refs)
	}
}

// begunPlants leave out one rule of the books at a time.
func begunPlants() []plant.Bug {
	return []plant.Bug{
		{
			Name: "who has an answer is refused one", Test: "TestBegun",
			Old: "\t\tif !s.Answered {\n", New: "\t\tif !s.Answered || MUTANT {\n",
		},
		{
			Name: "a transaction that is abandoned goes on at its coordinator", Test: "TestBegun",
			Old: "\t\tb.Tell(env, id, store.AbandonRequest{ID: id})\n",
			New: "\t\tif !MUTANT {\n\t\t\tb.Tell(env, id, store.AbandonRequest{ID: id})\n\t\t}\n",
		},
		{
			Name: "who has begun a transaction that is gone is remembered", Test: "TestBegun",
			Old: "\tdelete(b.refs, own.opened().Ref)\n",
			New: "\tif !MUTANT {\n\t\tdelete(b.refs, own.opened().Ref)\n\t}\n",
		},
		{
			Name: "a coordinator is told for ever that the client is there", Test: "TestBegun",
			Old: "\tenv.Stop(BeatTimer{id})\n", New: "\tif !MUTANT {\n\t\tenv.Stop(BeatTimer{id})\n\t}\n",
		},
	}
}
