package sim

import (
	"testing"
	"time"

	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/wan"
)

// A relay hands a call on to the nodes that it names, after a pause if it has one, and answers when
// it has come back from all.
type relay struct {
	next  []protocol.ID
	lasts int // of how many nodes it waits for the last, side by side; 0: it hands on
	heard int
	pause time.Duration
	puts  bool
}

func (r *relay) Start(*protocol.Env[string], []protocol.Record[string]) {}

func (r *relay) Receive(env *protocol.Env[string], from protocol.ID, msg string) {
	switch {
	case from != protocol.App && len(r.next) == 0 && r.lasts == 0: // the last one answers
		if r.puts {
			env.Put([]byte("k"), []byte(msg))
		}
		env.Send(from, msg)
	case from == protocol.App && r.pause > 0:
		env.After(r.pause, msg)
	case from == protocol.App:
		for _, id := range r.next {
			env.Send(id, msg)
		}
	default:
		if r.heard++; r.heard >= max(r.lasts, 1) {
			r.heard = 0
			env.Send(protocol.App, msg)
		}
	}
}

func (r *relay) Expire(env *protocol.Env[string], t protocol.Timer) {
	for _, id := range r.next {
		env.Send(id, t.(string))
	}
}

// TestChain: an answer has waited for the messages that it has come by, also for a disk and for a
// timer, and of several that it needs for the last one.
func TestChain(t *testing.T) {
	network := wan.Uniform(100*time.Millisecond, "a", "b", "c").WithRTT("a", "c", 300*time.Millisecond)
	var got []Chain
	var s *Sim[string]
	s, err := New(Config[string]{WAN: network, Disk: Disk{Latency: time.Millisecond},
		App: func(protocol.ID, string) { got = append(got, s.Chain()) }})
	if err != nil {
		t.Fatal(err)
	}
	for id, n := range map[protocol.ID]struct {
		site wan.Site
		node relay
	}{
		1: {"a", relay{next: []protocol.ID{2}}}, 2: {"a", relay{}}, // next door
		3: {"a", relay{next: []protocol.ID{4}, pause: time.Second}}, 4: {"b", relay{puts: true}},
		5: {"a", relay{next: []protocol.ID{2, 4, 6}, lasts: 3}}, 6: {"c", relay{}},
	} {
		build := func() protocol.Node[string] { r := n.node; return &r }
		if err := s.Add(Node[string]{ID: id, Site: n.site, New: build}); err != nil {
			t.Fatal(err)
		}
	}
	for i, want := range map[protocol.ID]int{1: 0, 3: 2, 5: 2} {
		got = nil
		s.Deliver(i, "x")
		if err := s.Run(5 * time.Second); err != nil {
			t.Fatal(err)
		}
		if len(got) != 1 || got[0] != (Chain{Call: s.Delivered(), Hops: want}) {
			t.Errorf("node %d: the answer has come about by %v, want %d hops of call %d", i, got, want, s.Delivered())
		}
	}
	if s.Chain() != (Chain{}) {
		t.Errorf("outside of events the chain is %v", s.Chain())
	}
}
