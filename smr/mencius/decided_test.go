package mencius

import (
	"slices"
	"testing"

	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/smr"
	"github.com/foresay/foresay/smr/kit"
)

// sends reports whether a call has sent something about a track that only its leader sends.
func sends(env *protocol.Env[smr.Message], track uint32) bool {
	return slices.ContainsFunc(env.Out, func(e protocol.Effect[smr.Message]) bool {
		a, ok := kit.Inside(e.Msg).(accept)
		return ok && a.Track == track
	})
}

// TestALeaderEndsWhereOthersDecided: an owner hears that others have decided on something else in
// its track, or on more than it has proposed: they have revoked the track. It does not lead any
// more, proposes nothing in its old ballot, and says that it does not serve, until it has taken the
// track back.
func TestALeaderEndsWhereOthersDecided(t *testing.T) {
	noOp := kit.Entry{Kind: kit.NoOp}
	for name, c := range map[string]struct {
		proposed kit.Entry // in slot 1; none if Kind is 0
		decided  []kit.Entry
		leads    bool
	}{
		"as it has proposed":          {work(1), []kit.Entry{work(1), noOp, noOp}, true},
		"otherwise":                   {work(1), []kit.Entry{noOp, noOp, noOp}, false},
		"more than it has proposed":   {kit.Entry{}, []kit.Entry{noOp, noOp, noOp}, false},
		"nothing about its own track": {work(1), nil, true},
	} {
		r, env, disk := begun(t)
		if c.proposed.Kind != 0 {
			r.queue = []kit.Entry{c.proposed}
			r.Expire(env, kit.FlushTimer{})
		}
		l := r.epoch.tracks[0]
		if l.lead == nil || l.end() != pos(min(c.proposed.Kind, 1)) {
			t.Fatalf("%s: leads its track: %v, proposed %d", name, l.lead != nil, l.end())
		}
		disk.Write(env, 0)
		r.Receive(env, 2, kit.Letter{Disk: 2, Msg: decided{Epoch: 1, First: 1, Entries: c.decided}})
		if leads := l.lead != nil; leads != c.leads || r.Status(0).Serves != c.leads {
			t.Errorf("decided is %s: leads %v, serves %v, want %v", name, leads, r.Status(0).Serves, c.leads)
		}
		disk.Write(env, 0)
		r.queue = append(r.queue, work(7))
		r.Expire(env, kit.FlushTimer{})
		if sends(env, 0) != c.leads {
			t.Errorf("decided is %s: it proposes %v, want %v", name, sends(env, 0), c.leads)
		}
		if err := r.Check(); err != nil {
			t.Error(err)
		}
	}
}

// TestCommitsEndWithTheBallot: a new leader says that three positions are decided, of which the
// replica has the first from it, and others from the leader before. Those are not what was decided.
func TestCommitsEndWithTheBallot(t *testing.T) {
	once := kit.NewBallot(0, 3)
	r, env, disk := begun(t)
	l := r.epoch.tracks[1]
	r.Receive(env, 2, kit.Letter{Disk: 2, Msg: accept{place: place{Epoch: 1, Track: 1}, First: 1,
		Items: []item{{Entry: work(1)}, {Entry: work(2)}, {Entry: work(3)}}}})
	disk.Write(env, 0)
	for name, say := range map[string]smr.Message{
		"Accept": kit.Letter{Disk: 3, Msg: accept{place: place{Epoch: 1, Track: 1, Ballot: once}, First: 1, Commit: 3,
			Items: []item{{Entry: work(1)}}}},
		"Beat": kit.Letter{Disk: 3, Msg: beat{Epoch: 1, Leads: []led{{Track: 1, Ballot: once, Commit: 3}}}},
	} {
		if name == "Beat" { // which has no entries of its own
			r.Receive(env, 3, kit.Letter{Disk: 3, Msg: accept{place: place{Epoch: 1, Track: 1, Ballot: once}, First: 1,
				Items: []item{{Entry: work(1)}}}})
			disk.Write(env, 0)
		}
		r.Receive(env, 3, say)
		disk.Write(env, 0)
		if l.commit > 1 || l.matched != 1 || l.promised != once {
			t.Errorf("%s: decided up to %d, the leader's up to %d in ballot %v; want at most 1, and 1 in %v", name, l.commit,
				l.matched, l.promised, once)
		}
	}
	r.Receive(env, 3, kit.Letter{Disk: 3, Msg: accept{place: place{Epoch: 1, Track: 1, Ballot: once}, First: 2, Commit: 3,
		Items: []item{{Entry: work(20)}, {Entry: work(30)}}}})
	if l.commit != 3 || !l.at(2).Entry.Equal(work(20)) {
		t.Errorf("decided up to %d with %v in the second position, want 3 and what the leader sent", l.commit, l.at(2).Entry)
	}
}

// TestEpochEndsBehindAllProposals: the members change in slot s. Whoever has not executed that may
// have proposed a window above what it has executed; a command there, which may be decided, belongs
// to the epoch.
func TestEpochEndsBehindAllProposals(t *testing.T) {
	const s = 5 // track 1's second position
	open := kit.Entry{Kind: kit.OpenSession, Client: 9, Seq: 1, Open: &kit.Open{MaxSessions: 1, Window: 1000}}
	remove := kit.Entry{Kind: kit.ChangeMembers, Client: 9, Session: 1, Seq: 1,
		Members: &kit.MemberChange{Change: smr.Change{Remove: 3}}}
	noOp := kit.Entry{Kind: kit.NoOp}
	before := []kit.Entry{noOp, open, noOp, noOp} // slots 1 to 4

	behind, env, disk := begun(t)
	behind.Receive(env, 2, kit.Letter{Disk: 2, Msg: decided{Epoch: 1, First: 1, Entries: before}})
	disk.Write(env, 0)
	own := behind.epoch.tracks[0]
	behind.leadFrom(env, own, own.end()+1)
	behind.above = behind.limit() - smr.Slot(len(behind.epoch.members))
	behind.queue = []kit.Entry{work(7)}
	behind.Expire(env, kit.FlushTimer{})
	proposed := behind.epoch.slot(own, own.end())
	if proposed+smr.Slot(len(behind.epoch.members)) <= behind.limit() || !own.at(own.end()).Entry.Equal(work(7)) {
		t.Fatalf("proposed %v in slot %d, want the command in the last one up to %d", own.at(own.end()).Entry, proposed,
			behind.limit())
	}
	room := behind.limit()

	ahead, env, _ := begun(t)
	ahead.Receive(env, 2, kit.Letter{Disk: 2, Msg: decided{Epoch: 1, First: 1, Entries: append(before, remove)}})
	if ahead.State.Applied() != s || len(ahead.State.Members()) != 2 {
		t.Fatalf("applied %d, %d members", ahead.State.Applied(), len(ahead.State.Members()))
	}
	if ahead.epoch.last < proposed || ahead.epoch.last < room {
		t.Errorf("the epoch ends with slot %d; who has not executed its last change proposes up to %d, and has done so in %d",
			ahead.epoch.last, room, proposed)
	}
}
