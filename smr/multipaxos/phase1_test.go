package multipaxos

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/smr"
	"github.com/foresay/foresay/smr/kit"
	"github.com/foresay/foresay/smr/kv"
	"github.com/foresay/foresay/smr/smrtest"
)

func value(n int) kit.Entry {
	return kit.Entry{Kind: kit.Command, Client: 9, Session: 1, Seq: kit.Seq(n), Acked: 1, Command: []byte{byte(n)}}
}

func change(remove protocol.ID) kit.Entry {
	return kit.Entry{Kind: kit.ChangeMembers, Client: 9, Session: 1, Seq: 99, Acked: 1,
		Members: &kit.MemberChange{Change: smr.Change{Remove: remove}}}
}

// script runs one replica, of five, whose peers are written down.
type script struct {
	t   *testing.T
	r   *replica
	env *protocol.Env[smr.Message]
	out []protocol.Effect[smr.Message]
}

func newScript(t *testing.T, log ...acceptRecord) *script {
	t.Helper()
	var group []smr.Member
	for id := range protocol.ID(5) {
		group = append(group, smr.Member{ID: id + 1})
	}
	r, err := newReplica(smr.ReplicaConfig{ID: 1, Members: group, Machine: kv.New()})
	if err != nil {
		t.Fatal(err)
	}
	s := &script{t: t, r: r, env: protocol.NewEnv[smr.Message](nil, 1, rand.New(rand.NewPCG(1, 1)))}
	s.do(func() { r.Start(s.env, nil) })
	for _, rec := range log {
		s.do(func() {
			r.promised = max(r.promised, rec.Ballot)
			r.log.write(s.env, rec)
			r.decide(s.env, rec.Commit)
			r.rematch()
		})
	}
	for id := protocol.ID(2); id <= 5; id++ {
		s.receive(id, kit.Welcome{Disk: kit.Incarnation(id), Asked: r.Admission.Own(), Known: r.Admission.Own()})
	}
	if r.role != follower {
		t.Fatalf("the replica is %v", r.role)
	}
	return s
}

// do makes a call, and delivers what the replica sends to itself.
func (s *script) do(call func()) {
	s.t.Helper()
	s.env.Begin(0)
	call()
	if err := s.r.Check(); err != nil {
		s.t.Fatal(err)
	}
	s.out = append(s.out, s.env.Out...)
	for _, e := range slices.Clone(s.env.Out) {
		if e.Kind == protocol.KindSend && e.To == s.r.Cfg.ID {
			s.do(func() { s.r.Receive(s.env, e.To, e.Msg) })
		}
	}
}

func (s *script) receive(from protocol.ID, msg smr.Message) {
	s.t.Helper()
	s.do(func() { s.r.Receive(s.env, from, msg) })
}

// campaign brings the replica to phase 1 and returns its ballot.
func (s *script) campaign() kit.Ballot {
	s.t.Helper()
	s.do(func() { s.r.Expire(s.env, campaignTimer{}) })
	b := s.r.candidacy.ballot
	s.receive(2, kit.Letter{Disk: 2, Msg: preVoteReply{Ballot: b, Granted: true}})
	s.receive(3, kit.Letter{Disk: 3, Msg: preVoteReply{Ballot: b, Granted: true}})
	if s.r.candidacy.pre || s.r.promised != b {
		s.t.Fatalf("phase 1 of ballot %v has not begun", b)
	}
	return b
}

// proposed returns what the leader sent to a peer with its first Accept.
func (s *script) proposed(to protocol.ID) (first smr.Slot, entries []kit.Entry) {
	for _, e := range s.out {
		if a, ok := kit.Inside(e.Msg).(accept); ok && e.To == to && len(a.Entries) > 0 {
			return a.First, a.Entries
		}
	}
	return 0, nil
}

func (s *script) want(first smr.Slot, want ...kit.Entry) {
	s.t.Helper()
	if s.r.role != leader {
		s.t.Fatalf("the replica is %v", s.r.role)
	}
	at, got := s.proposed(2)
	if at != first || !slices.EqualFunc(got, want, kit.Entry.Equal) {
		s.t.Errorf("proposed from slot %d on: %v, want from slot %d on: %v", at, got, first, want)
	}
}

// TestPhase1TakesTheHighestBallot [Paxos Made Simple §2.2, P2c]: slot 2 was accepted in three
// ballots, slot 3 by one acceptor only.
func TestPhase1TakesTheHighestBallot(t *testing.T) {
	s := newScript(t, acceptRecord{Ballot: 1<<32 | 2, First: 1, Commit: 1, Entries: []kit.Entry{value(1), value(20)}})
	b := s.campaign()
	s.receive(2, kit.Letter{Disk: 2, Msg: promise{Ballot: b, Low: 2, Commit: 1, Last: true,
		Slots: []vote{{3<<32 | 4, value(21)}, {2<<32 | 3, value(30)}}}})
	if s.r.role == leader {
		t.Fatal("two promises of five are enough")
	}
	s.receive(2, kit.Letter{Disk: 2, Msg: promise{Ballot: b, Low: 2, Commit: 1, Last: true,
		Slots: []vote{{4<<32 | 4, value(66)}}}})
	if s.r.role == leader {
		t.Fatal("a promise that came twice counts twice")
	}
	s.receive(3, kit.Letter{Disk: 3, Msg: promise{Ballot: b, Low: 2, Commit: 0, Last: true,
		Slots: []vote{{2<<32 | 3, value(22)}}}})
	s.want(2, value(21), value(30))
}

// TestPhase1ComparesNeighbours: of two votes for a slot the one of the next ballot wins, whether
// another member has it in the same round or the round is one higher, and whoever tells first.
func TestPhase1ComparesNeighbours(t *testing.T) {
	low := kit.Ballot(1<<32 | 4)
	for _, high := range []kit.Ballot{1<<32 | 5, 2<<32 | 2, 2<<32 | 4, 2<<32 | 5} {
		for _, first := range []bool{false, true} {
			s := newScript(t)
			b := s.campaign()
			votes := []vote{{low, value(1)}, {high, value(2)}}
			if first {
				slices.Reverse(votes)
			}
			for i, v := range votes {
				s.receive(protocol.ID(i+2), kit.Letter{Disk: kit.Incarnation(i + 2), Msg: promise{Ballot: b, Low: 1, Last: true,
					Slots: []vote{v}}})
			}
			s.want(1, value(2))
		}
	}
}

// TestPhase1AgreesWithItsTwin: acceptors tell what they have accepted in neighbouring ballots, at
// random, some of them after they have thrown away what the candidate lacks. It leads when a
// majority's promises count, and proposes what a plain search for the highest ballots of these
// finds.
func TestPhase1AgreesWithItsTwin(t *testing.T) {
	const slots = 6
	ballots := []kit.Ballot{1<<32 | 2, 1<<32 | 3, 2<<32 | 2, 2<<32 | 4, 3<<32 | 3}
	for seed := range uint64(300) {
		rnd := rand.New(rand.NewPCG(seed, 8))
		votes := func() []vote { // of the slots from 1 on; a ballot has one value in a slot
			out := make([]vote, rnd.IntN(slots+1))
			for i := range out {
				b := rnd.IntN(len(ballots))
				out[i] = vote{ballots[b], value(i*len(ballots) + b)}
			}
			return out
		}
		best := map[smr.Slot]vote{}
		count := func(told []vote) {
			for i, v := range told {
				if s := smr.Slot(i + 1); v.Ballot > best[s].Ballot {
					best[s] = v
				}
			}
		}
		own := votes()
		var log []acceptRecord
		for i, v := range own {
			log = append(log, acceptRecord{Ballot: v.Ballot, First: smr.Slot(i + 1), Entries: []kit.Entry{v.Entry}})
		}
		s := newScript(t, log...)
		b := s.campaign()
		count(own)
		counted := 1
		for _, id := range rnd.Perm(4) {
			from := protocol.ID(id + 2)
			m := promise{Ballot: b, Low: 1, Last: true, Slots: votes()}
			if rnd.IntN(4) == 0 {
				m.Base = 1 + smr.Slot(rnd.IntN(3)) // all that was accepted there is decided, and not told
				m.Slots = nil
			} else if counted < 3 {
				counted++
				count(m.Slots)
			}
			s.receive(from, kit.Letter{Disk: kit.Incarnation(from), Msg: m})
			if leads := s.r.role == leader; leads != (counted == 3) {
				t.Fatalf("seed %d: %d promises count, and it is %v", seed, counted, s.r.role)
			}
		}
		if counted < 3 {
			continue
		}
		var want []kit.Entry
		for s := smr.Slot(1); best[s].Ballot != 0; s++ {
			want = append(want, best[s].Entry)
		}
		if first, got := s.proposed(2); len(want) > 0 && first != 1 || !slices.EqualFunc(got, want, kit.Entry.Equal) {
			t.Fatalf("seed %d: proposed from slot %d on %v, want %v", seed, first, got, want)
		}
	}
}

// TestPhase1InParts has an acceptor whose votes take three messages.
func TestPhase1InParts(t *testing.T) {
	s := newScript(t)
	b := s.campaign()
	s.receive(3, kit.Letter{Disk: 3, Msg: promise{Ballot: b, Low: 1, Last: true}})
	for slot := smr.Slot(1); slot <= 3; slot++ {
		if s.r.role == leader {
			t.Fatalf("it leads before slot %d is told", slot)
		}
		s.receive(2, kit.Letter{Disk: 2, Msg: promise{Ballot: b, Low: slot, Last: slot == 3,
			Slots: []vote{{1<<32 | 2, value(int(slot))}}}})
		asked := slices.ContainsFunc(s.out, func(e protocol.Effect[smr.Message]) bool {
			m, ok := kit.Inside(e.Msg).(prepare)
			return ok && e.To == 2 && m.Low == slot+1
		})
		if asked != (slot < 3) {
			t.Errorf("after slot %d more is asked for: %v", slot, asked)
		}
	}
	s.want(1, value(1), value(2), value(3))
}

// TestPhase1LearnsWhatIsDecided: acceptor 2 knows slot 1 to be decided as value 10, whatever was
// accepted in higher ballots elsewhere.
func TestPhase1LearnsWhatIsDecided(t *testing.T) {
	s := newScript(t)
	b := s.campaign()
	s.receive(3, kit.Letter{Disk: 3, Msg: promise{Ballot: b, Low: 1, Last: true,
		Slots: []vote{{5<<32 | 3, value(10)}, {5<<32 | 3, value(20)}}}})
	s.receive(2, kit.Letter{Disk: 2, Msg: promise{Ballot: b, Low: 1, Commit: 1, Last: true,
		Slots: []vote{{1<<32 | 2, value(10)}}}})
	s.want(2, value(20))
	if s.r.commit != 1 {
		t.Errorf("%d slots are decided, want 1", s.r.commit)
	}
}

// TestPhase1AppliesDecidedChanges: slot 1 removed replica 5, so that three of the four that are
// left are a majority, with whoever was asked already.
func TestPhase1AppliesDecidedChanges(t *testing.T) {
	s := newScript(t)
	open := kit.Entry{Kind: kit.OpenSession, Client: 9, Seq: 1, Open: &kit.Open{MaxSessions: 1, Window: 1000}}
	b := s.campaign()
	s.receive(5, kit.Letter{Disk: 5, Msg: promise{Ballot: b, Low: 1, Last: true}})
	s.receive(2, kit.Letter{Disk: 2, Msg: promise{Ballot: b, Low: 1, Commit: 2, Last: true,
		Slots: []vote{{1<<32 | 2, open}, {1<<32 | 2, change(5)}, {1<<32 | 2, value(3)}}}})
	if s.r.role == leader {
		t.Fatal("the promise of a removed replica counts")
	}
	if s.r.commit != 2 || len(s.r.State.Members()) != 4 {
		t.Fatalf("%d slots are decided, and there are %d members", s.r.commit, len(s.r.State.Members()))
	}
	s.receive(3, kit.Letter{Disk: 3, Msg: promise{Ballot: b, Low: 1, Last: true}})
	s.want(3, value(3))
}

// TestPhase1EndsWithAChange: what lies above a change that is not decided was accepted in lower
// ballots and is not decided, so it is dropped. Nothing new is proposed above the change before it
// is decided.
func TestPhase1EndsWithAChange(t *testing.T) {
	s := newScript(t)
	b := s.campaign()
	s.receive(2, kit.Letter{Disk: 2, Msg: promise{Ballot: b, Low: 1, Last: true,
		Slots: []vote{{2<<32 | 2, value(1)}, {2<<32 | 2, change(5)}, {1<<32 | 3, value(3)}}}})
	s.receive(3, kit.Letter{Disk: 3, Msg: promise{Ballot: b, Low: 1, Last: true}})
	s.want(1, value(1), change(5))
	s.out = nil
	s.receive(9, kit.OpenRequest{Nonce: 1})
	s.do(func() { s.r.Expire(s.env, kit.FlushTimer{}) })
	if _, entries := s.proposed(2); entries != nil {
		t.Errorf("proposed %v above a change that is not decided", entries)
	}
	s.receive(2, kit.Letter{Disk: 2, Msg: accepted{Ballot: b, Match: 2}})
	s.receive(3, kit.Letter{Disk: 3, Msg: accepted{Ballot: b, Match: 2}})
	s.do(func() { s.r.Expire(s.env, kit.FlushTimer{}) })
	if first, entries := s.proposed(2); first != 3 || len(entries) != 1 {
		t.Errorf("after the change was decided: from slot %d on %v", first, entries)
	}
}

// TestVotesOfEarlierBallotsDoNotCount: a majority has accepted slot 1, in different ballots. It is
// decided only when a majority has it in the leader's.
func TestVotesOfEarlierBallotsDoNotCount(t *testing.T) {
	s := newScript(t, acceptRecord{Ballot: 1<<32 | 2, First: 1, Entries: []kit.Entry{value(1)}})
	b := s.campaign()
	s.receive(2, kit.Letter{Disk: 2, Msg: promise{Ballot: b, Low: 1, Last: true, Slots: []vote{{1<<32 | 2, value(1)}}}})
	s.receive(3, kit.Letter{Disk: 3, Msg: promise{Ballot: b, Low: 1, Last: true, Slots: []vote{{1<<32 | 2, value(1)}}}})
	s.receive(4, kit.Letter{Disk: 4, Msg: accepted{Ballot: 1<<32 | 2, Match: 1}})
	s.receive(5, kit.Letter{Disk: 5, Msg: accepted{Ballot: b, Match: 0}})
	s.receive(2, kit.Letter{Disk: 2, Msg: accepted{Ballot: b, Match: 1}})
	if s.r.commit != 0 {
		t.Fatal("two votes of the leader's ballot decide, of five")
	}
	s.receive(3, kit.Letter{Disk: 3, Msg: accepted{Ballot: b, Match: 1}})
	if s.r.commit != 1 {
		t.Error("three votes of the leader's ballot do not decide")
	}
}

// TestFollowerDecidesOnlyWhatItHas: the leader says that three slots are decided; the follower has
// the third one from an earlier ballot.
func TestFollowerDecidesOnlyWhatItHas(t *testing.T) {
	s := newScript(t, acceptRecord{Ballot: 1<<32 | 2, First: 1, Entries: []kit.Entry{value(1), value(2), value(33)}})
	b := kit.Ballot(2<<32 | 3)
	s.receive(3, kit.Letter{Disk: 3, Msg: accept{Ballot: b, First: 1, Commit: 3,
		Entries: []kit.Entry{value(1), value(2)}}})
	if s.r.commit != 2 || s.r.matched != 2 {
		t.Errorf("decided %d, matched %d, want 2", s.r.commit, s.r.matched)
	}
	s.receive(3, kit.Letter{Disk: 3, Msg: accept{Ballot: b, First: 5, Commit: 3}})
	missing := slices.ContainsFunc(s.out, func(e protocol.Effect[smr.Message]) bool {
		m, ok := kit.Inside(e.Msg).(missing)
		return ok && e.To == 3 && m.Want == 3
	})
	if !missing || s.r.commit != 2 {
		t.Errorf("decided %d; slot 3 is asked for: %v", s.r.commit, missing)
	}
	s.receive(2, kit.Letter{Disk: 2, Msg: accept{Ballot: 1<<32 | 2, First: 3, Commit: 3, Entries: []kit.Entry{value(33)}}})
	if s.r.commit != 2 {
		t.Error("an Accept below the promise was taken")
	}
}

// answers returns what was sent to a peer, and forgets it.
func (s *script) answers(to protocol.ID) []smr.Message {
	var out []smr.Message
	for _, e := range s.out {
		if e.To == to && (e.Kind == protocol.KindSend || e.Kind == protocol.KindSendAhead) {
			out = append(out, kit.Inside(e.Msg))
		}
	}
	s.out = nil
	return out
}

// TestPromiseIsKept [Paxos Made Simple §2.2, P1a]: below the ballot that was promised nothing is
// promised or accepted; the same ballot's question is answered again.
func TestPromiseIsKept(t *testing.T) {
	s := newScript(t)
	b := kit.Ballot(5<<32 | 3)
	for range 2 {
		s.answers(3)
		s.receive(3, kit.Letter{Disk: 3, Msg: prepare{Ballot: b, Low: 1}})
		if got := s.answers(3); len(got) != 1 || got[0].(promise).Ballot != b {
			t.Fatalf("the answer to a Prepare is %v", got)
		}
	}
	s.answers(2)
	s.receive(2, kit.Letter{Disk: 2, Msg: prepare{Ballot: 4<<32 | 2, Low: 1}})
	s.receive(2, kit.Letter{Disk: 2, Msg: accept{Ballot: 4<<32 | 2, First: 1, Entries: []kit.Entry{value(1)}}})
	for _, m := range s.answers(2) {
		if r, ok := m.(refusal); !ok || r.Promised != b {
			t.Errorf("a lower ballot is answered with %#v", m)
		}
	}
	if s.r.promised != b || s.r.log.last() != 0 {
		t.Errorf("promised %v, accepted %d slots", s.r.promised, s.r.log.last())
	}
}

// TestWrongDiskIsNotHeard has a message from a replica's other disk, and one that says to be of a
// ballot that is not its sender's.
func TestWrongDiskIsNotHeard(t *testing.T) {
	s := newScript(t)
	s.receive(3, kit.Letter{Disk: 3, Msg: prepare{Ballot: 1<<32 | 3, Low: 1}})
	s.answers(3)
	s.receive(3, kit.Letter{Disk: 33, Msg: prepare{Ballot: 2<<32 | 3, Low: 1}})
	s.receive(3, kit.Letter{Disk: 3, Msg: prepare{Ballot: 2<<32 | 4, Low: 1}})
	s.receive(3, kit.Letter{Disk: 3, Msg: accept{Ballot: 2<<32 | 4, First: 1, Entries: []kit.Entry{value(1)}}})
	s.receive(3, prepare{Ballot: 2<<32 | 3, Low: 1})
	if got := s.answers(3); len(got) != 0 || s.r.promised != 1<<32|3 {
		t.Errorf("answered %v, promised %v", got, s.r.promised)
	}
}

// TestRestartRemembers starts a replica from the records of another one. What was promised,
// accepted and known to be decided is there.
func TestRestartRemembers(t *testing.T) {
	s := newScript(t)
	s.receive(3, kit.Letter{Disk: 3, Msg: accept{Ballot: 1<<32 | 3, First: 1, Commit: 2,
		Entries: []kit.Entry{value(1), value(2), value(3)}}})
	restart := func() (*replica, error) {
		var disk smrtest.Disk
		env := disk.Env()
		env.Out = slices.Clone(s.out)
		disk.Write(env, 0)
		r, err := newReplica(smr.ReplicaConfig{ID: 1, Members: s.r.Cfg.Members, Machine: kv.New()})
		if err != nil {
			t.Fatal(err)
		}
		_, err = r.load(env, disk.Log)
		return r, err
	}
	for _, c := range []struct {
		promised kit.Ballot
		matched  smr.Slot
	}{{1<<32 | 3, 3}, {2<<32 | 2, 2}} {
		r, err := restart()
		if err != nil {
			t.Fatal(err)
		}
		if r.promised != c.promised || r.log.last() != 3 || r.commit != 2 || r.matched != c.matched ||
			r.State.Applied() != 2 {
			t.Errorf("promised %v, accepted %d, decided %d, matched %d, applied %d", r.promised, r.log.last(), r.commit,
				r.matched, r.State.Applied())
		}
		s.receive(2, kit.Letter{Disk: 2, Msg: prepare{Ballot: 2<<32 | 2, Low: 1}})
	}
	s.out = append(s.out, protocol.Effect[smr.Message]{Kind: protocol.KindAppend, Index: 99, Msg: acceptRecord{First: 7}})
	if _, err := restart(); err == nil || !strings.Contains(err.Error(), "after a gap behind 3") {
		t.Errorf("a log with a gap was loaded, or refused for something else: %v", err)
	}
}

// TestJoinerWaitsForItsWelcome: a new disk does not answer as an acceptor before a member has said
// that its ID is free.
func TestJoinerWaitsForItsWelcome(t *testing.T) {
	s := newScript(t)
	r, err := newReplica(smr.ReplicaConfig{ID: 6, Members: s.r.Cfg.Members, Machine: kv.New(), Join: true})
	if err != nil {
		t.Fatal(err)
	}
	j := &script{t: t, r: r, env: protocol.NewEnv[smr.Message](nil, 1, rand.New(rand.NewPCG(2, 2)))}
	j.do(func() { r.Start(j.env, nil) })
	for want := range 2 {
		j.answers(3)
		j.receive(3, kit.Letter{Disk: 3, Msg: prepare{Ballot: 1<<32 | 3, Low: 1}})
		if got := j.answers(3); len(got) != want {
			t.Errorf("a Prepare is answered with %v", got)
		}
		j.receive(2, kit.Welcome{Disk: 2, Asked: r.Admission.Own(), Known: r.Admission.Own(), Members: s.r.Cfg.Members})
	}
}

// TestLogSurvives accepts, cuts and reads a log again at random, and compares it with a plain map.
func TestLogSurvives(t *testing.T) {
	rnd := rand.New(rand.NewPCG(2, 3))
	for range 200 {
		env := protocol.NewEnv[smr.Message](nil, 1, nil)
		var l slotLog
		var disk []protocol.Record[smr.Message]
		twin := map[smr.Slot]vote{}
		for n := range 60 {
			env.Begin(0)
			b := kit.Ballot(n + 1)
			switch rnd.IntN(4) {
			case 0:
				l.promise(env, promiseRecord{Ballot: b})
			case 1:
				l.cut(env, l.base+smr.Slot(rnd.IntN(int(l.last()-l.base)+1)), promiseRecord{Ballot: b})
			default:
				first := l.last() + 1 - smr.Slot(rnd.IntN(int(min(l.last()-l.base, 3))+1))
				rec := acceptRecord{Ballot: b, First: first}
				for i := range 1 + rnd.IntN(4) {
					rec.Entries = append(rec.Entries, value(n*10+i))
					twin[first+smr.Slot(i)] = vote{b, rec.Entries[i]}
				}
				l.write(env, rec)
			}
			for _, e := range env.Out {
				if e.Kind == protocol.KindAppend {
					disk = append(disk, protocol.Record[smr.Message]{Index: e.Index, Msg: e.Msg})
				} else {
					disk = slices.DeleteFunc(disk, func(r protocol.Record[smr.Message]) bool { return r.Index < e.Index })
				}
			}
			again := slotLog{}
			for _, rec := range disk {
				if err := again.load(rec); err != nil {
					t.Fatal(err)
				}
			}
			if again.slots.Len() == 0 {
				again.base = max(again.base, l.base)
			}
			if again.base > l.base || again.last() < l.last() {
				t.Fatalf("slots %d to %d are on disk, %d to %d in memory", again.base+1, again.last(), l.base+1, l.last())
			}
			for s := l.base + 1; s <= l.last(); s++ {
				for _, v := range []vote{l.at(s), again.at(s)} {
					if v.Ballot != twin[s].Ballot || !v.Entry.Equal(twin[s].Entry) {
						t.Fatalf("slot %d is %v in ballot %v, want %v in ballot %v", s, v.Entry, v.Ballot, twin[s].Entry, twin[s].Ballot)
					}
				}
			}
			if len(disk) != l.journal.Records() {
				t.Fatalf("%d records are on disk, %d are known", len(disk), l.journal.Records())
			}
		}
	}
}
