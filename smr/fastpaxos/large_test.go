package fastpaxos

import (
	"testing"
	"time"

	"github.com/foresay/foresay/smr"
	"github.com/foresay/foresay/smr/kit"
	"github.com/foresay/foresay/smr/kv"
	"github.com/foresay/foresay/smr/smrtest"
)

// big is a command that is not sent again to those who have accepted it.
func big(seq kit.Seq) kit.Entry {
	e := work(seq)
	e.Command = kv.Put([]byte{byte(seq)}, make([]byte, 64<<10))
	return e
}

// TestDecidedNamesLargeCommands: acceptors learn what is decided from what they have accepted, if
// it is the same, and not otherwise.
func TestDecidedNamesLargeCommands(t *testing.T) {
	r, env, _ := begun(t, 3)
	era := kit.NewBallot(0, 2)
	h := head{Era: era, Generation: r.State.Generation()}
	r.Receive(env, 2, kit.Letter{Disk: 2, Msg: accept{h, []item{{1, big(1)}, {2, big(2)}, {3, big(3)}}}})
	small, names := split([]item{{1, big(1)}, {2, big(2)}, {3, big(3)}, {4, big(4)}, {5, work(5)}})
	if len(small) != 1 || len(names) != 4 || names[0].Entry.Command != nil {
		t.Fatalf("%d commands are told whole and %d named", len(small), len(names))
	}
	other := names[2]
	other.Sum++
	r.Receive(env, 2, kit.Letter{Disk: 2, Msg: decidedNames{h, []named{names[0], names[1], other, names[3]}}})
	if r.State.Applied() != 2 {
		t.Errorf("applied %d slots, want the 2 that were accepted as they were decided", r.State.Applied())
	}
	// What an earlier era's coordinator had accepted there may be another command.
	r.Receive(env, 2, kit.Letter{Disk: 2, Msg: accept{h, []item{{4, big(9)}}}})
	r.Receive(env, 2, kit.Letter{Disk: 2, Msg: decidedNames{h, names[2:]}})
	if r.State.Applied() != 3 {
		t.Errorf("applied %d slots, want 3: another command was accepted in slot 4", r.State.Applied())
	}
	r.Receive(env, 2, kit.Letter{Disk: 2, Msg: decided{head: h, Items: []item{{4, big(4)}}}})
	if r.State.Applied() != 4 {
		t.Errorf("applied %d slots, want 4, after the command came", r.State.Applied())
	}
}

// TestCoordinatorNamesLargeCommands: acceptors get a large command once.
func TestCoordinatorNamesLargeCommands(t *testing.T) {
	r, env, disk := begun(t, 3)
	lead(t, r, env, disk)
	disk.Write(env, 0)
	r.proposeIn(1, big(1))
	r.flush(env)
	r.Receive(env, 2, kit.Letter{Disk: 2, Msg: accepted{head{Era: r.promised, Generation: r.State.Generation()},
		[]smr.Slot{1}}})
	r.Receive(env, 3, kit.Letter{Disk: 3, Msg: accepted{head{Era: r.promised, Generation: r.State.Generation()},
		[]smr.Slot{1}}})
	bytes, named := 0, 0
	for _, e := range env.Out {
		switch m := kit.Inside(e.Msg).(type) {
		case accept:
			if e.To == 2 {
				bytes += len(m.Items[0].Entry.Command)
			}
		case decided:
			bytes += len(m.Items[0].Entry.Command)
		case decidedNames:
			named++
		}
	}
	if size := len(big(1).Command); bytes != size || named != 2 {
		t.Errorf("acceptor 2 is sent %d bytes of a command of %d, and %d are told what is decided", bytes, size, named)
	}
}

// TestCandidateWaitsForLargeVotes: a candidate goes on as long as members tell more of their votes,
// and does not ask for what it has just asked for.
func TestCandidateWaitsForLargeVotes(t *testing.T) {
	const pages = 100
	r, env, disk := begun(t, 3)
	r.campaign(env, false)
	era := r.cand.era
	h := head{Era: era, Generation: r.State.Generation()}
	for page := range smr.Slot(pages) {
		if r.cand == nil || r.cand.era != era {
			t.Fatalf("gave up after %d of %d parts", page, pages)
		}
		m := promise{head: h, Low: page + 1, Votes: []vote{{Slot: page + 1, Era: 1, Classic: true,
			Entry: big(kit.Seq(page + 1))}}, Next: page + 2}
		if page == pages-1 {
			m.Next = 0
		}
		disk.Write(env, 0)
		r.Receive(env, 2, kit.Letter{Disk: 2, Msg: m})
		r.onTick(env)
		asked := 0
		for _, e := range env.Out {
			if p, ok := kit.Inside(e.Msg).(prepare); ok && e.To == 2 && p.Low == page+2 {
				asked++
			}
		}
		if asked != 1 && m.Next != 0 {
			t.Fatalf("asked %d times for part %d", asked, page+2)
		}
	}
	if r.cand == nil && r.lead == nil {
		t.Error("gave up after all parts")
	}
}

// TestLaggardGetsPartsOfTheLog: who lags gets several megabytes of what was decided, and asks for
// the rest when it has the last of them.
func TestLaggardGetsPartsOfTheLog(t *testing.T) {
	const slots = 200
	r, env, disk := begun(t, 3)
	const bound = 2 << 20
	r.Cfg.MaxUnderwayBytes = bound
	h := head{Era: kit.NewBallot(0, 2), Generation: r.State.Generation()}
	for s := range smr.Slot(slots) {
		r.Receive(env, 2, kit.Letter{Disk: 2, Msg: decided{head: h, Items: []item{{s + 1, big(kit.Seq(s + 1))}}}})
	}
	for applied, turns := smr.Slot(0), 0; applied < slots; turns++ {
		disk.Write(env, 0)
		r.Receive(env, 3, kit.Letter{Disk: 3, Msg: fetch{head{Era: h.Era, Generation: h.Generation}, applied}})
		before, more := applied, false
		for _, e := range env.Out {
			if m, ok := kit.Inside(e.Msg).(decided); ok && e.To == 3 {
				if more || m.Items[0].Slot != applied+1 {
					t.Fatalf("slots from %d follow those up to %d, which ask for more: %v", m.Items[0].Slot, applied, more)
				}
				applied, more = m.Items[len(m.Items)-1].Slot, m.More
			}
		}
		if sent := int(applied-before) * (64 << 10); more != (applied < slots) || sent > bound || more &&
			sent < bound/3 {
			t.Fatalf("in turn %d up to slot %d of %d, %d bytes; asks for more: %v", turns, applied, slots, sent, more)
		}
	}
}

// TestLargeCommandsAreNotCopiedInVain: while members do not vote, clients send large commands to
// the coordinator only; small ones and, after a while, large ones to all.
func TestLargeCommandsAreNotCopiedInVain(t *testing.T) {
	r, env, _ := begun(t, 3)
	follow(r, env, kit.NewBallot(0, 2), 0)
	req := command(1)
	req.Commands[0].Command = big(1).Command
	r.Receive(env, 77, req)
	var said []cast
	for _, e := range env.Out {
		if m, ok := kit.Inside(e.Msg).(cast); ok && e.To == 77 {
			said = append(said, m)
		}
	}
	if len(said) != 1 || said[0].Need != 0 {
		t.Fatalf("a member that does not vote says %+v", said)
	}
	c, err := newClient(smr.ClientConfig{ID: 77, Members: []smr.Member{{ID: 1}, {ID: 2}, {ID: 3}},
		RoundTrip: 10 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	disk := &smrtest.Disk{}
	own := disk.Env()
	copies := func(now time.Duration, size int) (n int) {
		own.Begin(now)
		c.send(own, 1, kit.Request{Session: 1,
			Commands: []kit.RequestedCommand{{Seq: c.sent + 1, Command: make([]byte, size)}}})
		for _, e := range own.Out {
			if _, ok := kit.Inside(e.Msg).(requestCopy); ok {
				n++
			}
		}
		return n
	}
	before := copies(0, largeBytes)
	own.Begin(0)
	c.Receive(own, 2, said[0])
	got := [4]int{before, copies(0, largeBytes), copies(0, largeBytes-1), copies(40*time.Millisecond, largeBytes)}
	if want := [4]int{2, 0, 2, 2}; got != want {
		t.Errorf("copies are sent %v times, want %v: before, large, small, large later", got, want)
	}
}
