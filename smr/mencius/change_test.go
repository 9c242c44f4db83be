package mencius

import (
	"slices"
	"testing"

	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/smr"
	"github.com/foresay/foresay/smr/kit"
)

// TestChangeIsAnsweredInForce: until an epoch has ended its members are needed. Whoever is told
// before that one is removed may stop it, and then the next one: too few would be left.
func TestChangeIsAnsweredInForce(t *testing.T) {
	r, env, disk := begun(t)
	l := r.epoch.tracks[0]
	open := kit.Entry{Kind: kit.OpenSession, Client: 77, Seq: 5, Open: &kit.Open{MaxSessions: 10, Window: 100}}
	r.extend(env, l, []vote{{Entry: open}})
	r.apply(env, 1, l, 1)
	request := kit.ChangeRequest{Session: 1, Acked: 1, Seq: 1, Change: smr.Change{Remove: 3}}
	r.Receive(env, 77, request)
	if len(r.queue) != 1 {
		t.Fatalf("%d changes are to be proposed", len(r.queue))
	}
	r.extend(env, l, []vote{{Entry: r.queue[0]}})
	r.queue = nil
	answered := func() bool {
		r.Desk.Flush(env)
		out := slices.Clone(env.Out)
		disk.Write(env, 0)
		return slices.ContainsFunc(out, func(e protocol.Effect[smr.Message]) bool {
			m, ok := e.Msg.(kit.Replies)
			return ok && e.To == 77 && m.Items[0].Seq == 1
		})
	}
	disk.Write(env, 0)
	if r.apply(env, 4, l, 2); r.epoch.last == 0 || answered() {
		t.Errorf("answered when it was applied; the epoch ends with slot %d", r.epoch.last)
	}
	if r.Receive(env, 77, request); answered() || len(r.queue) != 0 {
		t.Error("answered before the epoch has ended, when asked again")
	}
	if r.beginEpoch(env); !answered() {
		t.Error("not answered when the next epoch began")
	}
	if r.Receive(env, 77, request); !answered() {
		t.Error("not answered when asked again in the next epoch")
	}
}
