package replicatedcommit

import (
	"maps"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/store"
)

// TestCopyIsResumed: a server that stops while it copies what it is owed goes on where it was, and
// pays what the copy was for.
func TestCopyIsResumed(t *testing.T) {
	b := newServerBench(t)
	asked := func(call func()) (m askPage) {
		b.do(call)
		for _, e := range b.env.Out {
			if c, ok := e.Msg.(askPage); ok && e.To == 21 {
				m = c
			}
		}
		return m
	}
	page := func(round uint64, from, next string) page {
		version := store.TxnID{Time: 1001, Client: 1}
		return page{Stage: copyValues, Round: round, From: from, Next: next,
			Values: []keyValue{{store.Key("k" + from), store.Value{Version: version, Present: true}}}}
	}
	b.give(21, owing{Serial: 5, Since: 1000, To: 1})
	first := asked(func() { b.server.Expire(b.env, catchUpTimer{}) })
	b.give(21, page(first.Round, "", "m"))

	s, err := newServer(b.server.cfg)
	if err != nil {
		t.Fatal(err)
	}
	s.admission.admitted = true
	b.server = s
	b.do(func() { s.Start(b.env, nil) })
	b.give(21, owing{Serial: 5, Since: 1000, To: 1})
	again := asked(func() { s.Expire(b.env, catchUpTimer{}) })
	if again.From != "m" || again.Since != 1000 || again.Round == first.Round {
		t.Fatalf("after a restart it asks for %+v, before for %+v", again, first)
	}
	b.give(21, page(again.Round, "m", ""))
	payments := false
	for _, e := range b.env.Out {
		m, ok := e.Msg.(paid)
		payments = payments || ok && e.To == protocol.ID(21) && m.Serial == 5
	}
	if _, kept := b.disk[catchUpKey]; !payments || kept {
		t.Errorf("the debt is paid: %v; the copy is still on disk: %v", payments, kept)
	}
}

// TestSeveralAreCopied: who owes something to servers of all sites cannot say which of them has it
// all. So one of each majority is copied before that is paid.
func TestSeveralAreCopied(t *testing.T) {
	n, err := newServer(store.Config{ID: 11, Layout: layout(5, 2)})
	if err != nil {
		t.Fatal(err)
	}
	n.admission.admitted = true
	env := protocol.NewEnv[message](nil, 11, rand.New(rand.NewPCG(1, 1)))
	step := func(call func()) (source protocol.ID, asked askPage, payments bool) {
		env.Begin(time.Hour)
		call()
		for _, e := range env.Out {
			switch m := e.Msg.(type) {
			case askPage:
				source, asked = e.To, m
			case paid:
				payments = payments || m.Serial == 5
			}
		}
		if err := n.Check(); err != nil {
			t.Fatal(err)
		}
		return source, asked, payments
	}
	step(func() { n.Start(env, nil) })
	step(func() { n.Receive(env, 22, owing{Serial: 5, Since: 1000, To: 1<<5 - 1}) })
	copied := map[protocol.ID]bool{}
	for paid := false; !paid; {
		source, asked, _ := step(func() { n.Expire(env, catchUpTimer{}) })
		if source == 0 || copied[source] {
			t.Fatalf("after %v it asks server %d", copied, source)
		}
		copied[source] = true
		_, _, paid = step(func() { n.Receive(env, source, page{Stage: copyValues, Round: asked.Round}) })
	}
	if len(copied) != 2 {
		t.Errorf("it is paid when of four other sites %v are copied, want 2", copied)
	}
}

// TestSourcesAreAskedAgain: where several are to be copied, and after the first one nobody answers
// for long, those that are left are asked again.
func TestSourcesAreAskedAgain(t *testing.T) {
	n, err := newServer(store.Config{ID: 11, Layout: layout(5, 2)})
	if err != nil {
		t.Fatal(err)
	}
	n.admission.admitted = true
	env := protocol.NewEnv[message](nil, 11, rand.New(rand.NewPCG(1, 1)))
	asked := map[protocol.ID]int{}
	var last askPage
	step := func(call func()) {
		t.Helper()
		env.Begin(time.Hour)
		call()
		for _, e := range env.Out {
			if m, ok := e.Msg.(askPage); ok {
				asked[e.To]++
				last = m
			}
		}
		if err := n.Check(); err != nil {
			t.Fatal(err)
		}
	}
	owing := owing{Serial: 5, Since: 1000, To: 1<<5 - 1}
	step(func() { n.Start(env, nil) })
	step(func() { n.Receive(env, 22, owing) })
	step(func() { n.Expire(env, catchUpTimer{}) })
	for first := range maps.Clone(asked) {
		step(func() { n.Receive(env, first, page{Stage: copyValues, Round: last.Round}) })
	}
	for range 40 {
		step(func() { n.Receive(env, 22, owing) })
		for range 7 {
			step(func() { n.Expire(env, catchUpTimer{}) })
		}
	}
	if len(asked) != 4 {
		t.Errorf("of four others %v were asked", asked)
	}
	for id, times := range asked {
		if times > 1 && times < 12 {
			t.Errorf("server %d was asked %d times, and then no more", id, times)
		}
	}
}
