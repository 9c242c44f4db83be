package smrtest

import (
	"reflect"
	"testing"

	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/smr"
	"github.com/foresay/foresay/smr/kit"
)

// FromDisk has groups live under faults, and fails the test if a replica lets a message of one of
// these kinds leave before its disk has what the replica has written, or never sends one. These are
// what others rely on even if the sender crashes: votes, promises, proposals in its name. Seeds
// alone seldom notice, as it takes that just those who voted lose it, and those who have heard of
// it too.
func FromDisk(t *testing.T, p smr.Protocol, kinds ...smr.Message) {
	t.Helper()
	sent, ahead := map[reflect.Type]bool{}, map[reflect.Type]bool{}
	watched := p
	watched.NewReplica = func(cfg smr.ReplicaConfig) (protocol.Node[smr.Message], error) {
		n, err := p.NewReplica(cfg)
		if err != nil {
			return nil, err
		}
		return &watcher{n, sent, ahead}, nil
	}
	missing := func() (out []reflect.Type) {
		for _, k := range kinds {
			if kind := reflect.TypeOf(k); !sent[kind] && !ahead[kind] {
				out = append(out, kind)
			}
		}
		return out
	}
	for seed := uint64(1); seed <= 10 && (seed <= 2 || len(missing()) > 0); seed++ {
		if _, err := Play(Swarm(watched, seed)); err != nil {
			t.Fatal(err)
		}
	}
	for _, kind := range missing() {
		t.Errorf("no %v was sent", kind)
	}
	for _, k := range kinds {
		if kind := reflect.TypeOf(k); ahead[kind] {
			t.Errorf("a %v has left before the disk had what it relies on", kind)
		}
	}
}

// watcher is a replica that is looked at after each call.
type watcher struct {
	protocol.Node[smr.Message]
	sent, ahead map[reflect.Type]bool
}

func (w *watcher) look(env *protocol.Env[smr.Message]) {
	for i := range env.Out {
		switch e := &env.Out[i]; e.Kind {
		case protocol.KindSend:
			w.sent[reflect.TypeOf(kit.Inside(e.Msg))] = true
		case protocol.KindSendAhead:
			w.ahead[reflect.TypeOf(kit.Inside(e.Msg))] = true
		}
	}
}

func (w *watcher) Start(env *protocol.Env[smr.Message], log []protocol.Record[smr.Message]) {
	w.Node.Start(env, log)
	w.look(env)
}

func (w *watcher) Receive(env *protocol.Env[smr.Message], from protocol.ID, msg smr.Message) {
	w.Node.Receive(env, from, msg)
	w.look(env)
}

func (w *watcher) Expire(env *protocol.Env[smr.Message], t protocol.Timer) {
	w.Node.Expire(env, t)
	w.look(env)
}

// Broken is part of protocol.Linked.
func (w *watcher) Broken(env *protocol.Env[smr.Message], from protocol.ID) {
	if l, ok := w.Node.(protocol.Linked[smr.Message]); ok {
		l.Broken(env, from)
		w.look(env)
	}
}

// Unheard has the time pass for which a replica that was started again waits for members to say
// whether they know that its disk was further: nobody does, and it takes part.
func Unheard(n protocol.Node[smr.Message], env *protocol.Env[smr.Message]) {
	for range 5 {
		n.Expire(env, kit.AdmissionTimer{})
	}
}
