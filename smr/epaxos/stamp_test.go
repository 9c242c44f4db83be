package epaxos

import (
	"testing"

	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/smr"
	"github.com/foresay/foresay/smr/kit"
	"github.com/foresay/foresay/smr/smrtest"
)

// TestWhatIsKnownComesBefore has a command that was decided, and another one whose proposer knew
// that; a third one, which is under way all the time, puts them in one component. The later one is
// executed later, though its proposer had a lower stamp of its own.
func TestWhatIsKnownComesBefore(t *testing.T) {
	th := newTheatre(t, 3)
	th.propose(1, &command{Kind: work, Entries: []kit.Entry{{Kind: kit.OpenSession, Client: 99, Seq: 1,
		Open: &kit.Open{MaxSessions: 1, Window: 1000}}}})
	th.deliver(nil)
	c := th.propose(3, workOn("c", "k"))
	th.deliver(func(m mail) bool { _, ask := kit.Inside(m.msg).(preAccept); return ask && m.to == 1 })
	th.nodes[1].stamp = 100 // it has proposed much that commutes with these
	a := th.propose(1, workOn("aa", "k"))
	th.deliver(among(1, 2))
	b := th.propose(2, workOn("bbb", "k"))
	th.deliver(among(1, 2))
	for id := range protocol.ID(2) {
		if i := th.nodes[id+1].find(b); !th.nodes[id+1].find(a).decided() || !i.decided() || i.executed {
			t.Fatalf("replica %d: %v is %v, executed %v", id+1, b, i.phase, i.executed)
		}
	}
	th.do(3, func(r *replica, env *protocol.Env[smr.Message]) { r.sendPreAccepts(env, r.find(c), nil) })
	th.deliver(among(2, 3))
	th.do(3, func(r *replica, env *protocol.Env[smr.Message]) { r.sendCommit(env, 1, r.find(c)) })
	th.deliver(nil)
	for id := range protocol.ID(2) {
		r := th.nodes[id+1]
		for _, x := range []instanceID{a, b, c} {
			if !r.find(x).executed {
				t.Fatalf("replica %d has not executed %v: it is %v", id+1, x, r.find(x).phase)
			}
		}
		if i := r.find(c); !i.deps.has(r.find(b)) || !r.find(a).deps.has(i) {
			t.Fatalf("%v, %v and %v do not depend on each other", a, b, c)
		}
		if got := string(r.State.Read(get("k"))); got != "bbb" {
			t.Errorf("replica %d ends with %q, want what was proposed last, by one who knew the others", id+1, got)
		}
	}
}

// TestStampsSurvive: a proposal is above all stamps that its proposer has heard of, in whichever
// message, and after a crash.
func TestStampsSurvive(t *testing.T) {
	high := workOn("high", "other")
	high.Stamp = 500
	from := head{Generation: 1}
	for name, m := range map[string]smr.Message{
		"PreAccept": preAccept{head: from, ID: instanceID{1, 1}, Cmd: high, Deps: make(deps, 3)},
		"Accept":    accept{head: from, ID: instanceID{1, 1}, Cmd: high, Deps: make(deps, 3)},
		"Commit":    commit{head: from, ID: instanceID{1, 1}, Cmd: high, Deps: make(deps, 3)},
	} {
		for _, crash := range []bool{false, true} {
			var disk smrtest.Disk
			r, env := onDisk(t, &disk)
			r.Receive(env, 1, kit.Letter{Disk: 1, Msg: m})
			disk.Write(env, 0)
			if crash {
				r, env = onDisk(t, &disk)
			}
			c := workOn("v", "k")
			r.begin(env, c, &proposal{entries: c.Entries})
			if c.Stamp <= high.Stamp {
				t.Errorf("%s of a command with the stamp %d, crash %v: the next one's is %d", name, high.Stamp, crash, c.Stamp)
			}
		}
	}
}

// TestAllDependsOnTheCheckpoint: what came before a checkpoint is forgotten, so what comes to a
// replica's ears later must depend on the checkpoint: after a restart too, and in one that got the
// state from another.
func TestAllDependsOnTheCheckpoint(t *testing.T) {
	var disk smrtest.Disk
	executed, env := onDisk(t, &disk)
	at := instanceID{1, 1}
	executed.Receive(env, 1, kit.Letter{Disk: 1, Msg: commit{head: head{Generation: 1}, ID: at,
		Cmd: &command{Kind: checkpoint, Stamp: 1}, Deps: make(deps, 3)}})
	disk.Write(env, 0)
	if executed.checkpoint != at {
		t.Fatalf("the checkpoint is %v, want %v", executed.checkpoint, at)
	}
	image, err := executed.image()
	if err != nil {
		t.Fatal(err)
	}
	restarted, _ := onDisk(t, &disk)
	var blank smrtest.Disk
	installed, env := onDisk(t, &blank)
	snap := kit.Snapshot{Slot: executed.State.Applied(), Data: image}
	if !installed.Install(env, smrtest.Arrive(t, env, installed.State, snap, placeLayout.Length)) {
		t.Fatal("the image was not installed")
	}
	for name, r := range map[string]*replica{"that has executed it": executed, "restarted": restarted,
		"that got the state": installed} {
		env := protocol.NewEnv[smr.Message](nil, 100, nil)
		env.Begin(0)
		id := instanceID{3, 1}
		r.Receive(env, 3, kit.Letter{Disk: 3, Msg: preAccept{head: head{Generation: 1}, ID: id, Cmd: workOn("c", "k"),
			Deps: make(deps, 3)}})
		if d := r.find(id).deps; d[0] < at.Index {
			t.Errorf("a replica %s has a command depend on %v, want on the checkpoint %v", name, d, at)
		}
		own := workOn("own", "other")
		r.begin(env, own, &proposal{entries: own.Entries})
		if i := r.find(instanceID{2, 1}); i.cmd != own || i.deps[0] < at.Index {
			t.Errorf("a replica %s proposes after %v, want after the checkpoint %v", name, i.deps, at)
		}
	}
}
