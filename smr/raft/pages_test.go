package raft

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"go.etcd.io/raft/v3/raftpb"

	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/smr"
	"github.com/foresay/foresay/smr/kit"
	"github.com/foresay/foresay/smr/smrtest"
)

// noted is a machine whose state has each entry under its index.
type noted struct{}

func (noted) Load(protocol.Keys) {}

func (noted) Apply(state State, at Position, entry []byte) {
	state.Put(fmt.Appendf(nil, "%03d", at.Index), entry)
}

// byHand is an embedded replica 1 of three that a test talks to in the others' place.
type byHand struct {
	*replica
	t    *testing.T
	disk *smrtest.Disk
	env  *protocol.Env[smr.Message]
	out  []protocol.Effect[smr.Message] // of the last call
	// told is what the owner would be told.
	told []event
}

func newByHand(t *testing.T) *byHand {
	b := &byHand{t: t, disk: new(smrtest.Disk)}
	b.restart()
	return b
}

// restart has the replica begin with what is on its disk.
func (b *byHand) restart() {
	b.t.Helper()
	r, err := newReplica(smr.ReplicaConfig{ID: 1, Members: []smr.Member{{ID: 1}, {ID: 2}, {ID: 3}}, Machine: nothing{},
		SnapshotEvery: 100, LogBytes: 64 << 10, RoundTrip: 10 * time.Millisecond})
	if err != nil {
		b.t.Fatal(err)
	}
	r.embed(noted{})
	b.replica, b.env = r, b.disk.Env()
	b.env.Begin(time.Minute)
	b.do(func() {
		r.Start(b.env, slices.Clone(b.disk.Log))
		for _, id := range []protocol.ID{2, 3} {
			r.Receive(b.env, id, kit.Welcome{Disk: kit.Incarnation(id), Asked: r.Admission.Own(), Known: r.Admission.Own()})
		}
		smrtest.Unheard(r, b.env)
	})
	if r.Over() {
		b.t.Fatal("the replica does not begin")
	}
}

// do makes a call, and then has the replica get what it has sent itself.
func (b *byHand) do(call func()) {
	b.t.Helper()
	call()
	b.out = slices.Clone(b.env.Out)
	b.told = append(b.told, b.part.events...)
	b.part.events = nil
	carryOut(b.replica, b.env, b.disk, b.env.Now)
	b.told = append(b.told, b.part.events...)
	b.part.events = nil
	if err := b.Check(); err != nil {
		b.t.Fatal(err)
	}
}

func (b *byHand) receive(from protocol.ID, msg smr.Message) {
	b.t.Helper()
	b.do(func() { b.Receive(b.env, from, kit.Letter{Disk: kit.Incarnation(from), Msg: msg}) })
}

// follow has the replica hear of the leader of a term.
func (b *byHand) follow(leader protocol.ID, term uint64) {
	b.t.Helper()
	b.receive(leader, rpc{&raftpb.Message{Type: raftpb.MsgHeartbeat.Enum(), From: new(uint64(leader)), To: new(uint64(1)),
		Term: &term, Commit: new(uint64(1))}})
	if got := b.core.leader(); got != leader {
		b.t.Fatalf("replica %d leads, want %d", got, leader)
	}
}

// entries gives the replica commands of a term behind an entry, in a message of a term.
func (b *byHand) entries(from protocol.ID, term uint64, behind Position, of uint64, commit uint64, commands ...string) {
	b.t.Helper()
	m := &raftpb.Message{Type: raftpb.MsgApp.Enum(), From: new(uint64(from)), To: new(uint64(1)), Term: &term,
		Index: &behind.Index, LogTerm: &behind.Term, Commit: &commit}
	for i, c := range commands {
		m.Entries = append(m.Entries, &raftpb.Entry{Index: new(behind.Index + 1 + uint64(i)), Term: &of,
			Data: entryLayout.Encode(kit.Entry{Kind: kit.Command, Command: []byte(c)})})
	}
	b.receive(from, rpc{m})
}

// page gives the replica a page with values under keys, and returns how many pages it has then.
func (b *byHand) page(copy, number uint64, end *pageEnd, values ...string) (have uint64) {
	b.t.Helper()
	m := page{Copy: copy, Number: number, End: end}
	for _, v := range values {
		key, value, _ := strings.Cut(v, "=")
		m.Writes = append(m.Writes, pageWrite{Key: []byte(key), Value: []byte(value)})
	}
	b.receive(2, m)
	answers := 0
	for _, e := range b.out {
		if a, ok := kit.Inside(e.Msg).(paged); ok {
			if e.Kind != protocol.KindSend {
				b.t.Error("a page is acknowledged before it is on disk")
			}
			answers, have = answers+1, a.Have
		}
	}
	if answers != 1 {
		b.t.Fatalf("page %d has %d answers", number, answers)
	}
	return have
}

// end is that of a copy.
func (b *byHand) end(at Position) *pageEnd { return &pageEnd{at, b.State.EncodeMembers()} }

// state returns what the replica's state is on disk.
func (b *byHand) state() map[string]string {
	out := map[string]string{}
	for k, v := range protocol.Prefixed(b.disk, areaPrefix(b.part.head.area)).Scan(nil, nil) {
		out[string(k)] = string(v)
	}
	return out
}

func (b *byHand) wantState(when string, want map[string]string) {
	b.t.Helper()
	if got := b.state(); !maps.Equal(got, want) {
		b.t.Errorf("%s: the state is %v, want %v", when, got, want)
	}
}

// TestPages has a replica take pages in orders that seldom come about by chance, with crashes
// between them.
func TestPages(t *testing.T) {
	b := newByHand(t)
	b.follow(2, 5)
	take := func(when string, want uint64, copy, number uint64, end *pageEnd, values ...string) {
		t.Helper()
		if have := b.page(copy, number, end, values...); have != want {
			t.Errorf("%s: it has %d pages, want %d", when, have, want)
		}
	}
	take("the first", 1, 7, 1, nil, "a=1", "b=1")
	take("the first once more", 1, 7, 1, nil, "a=other")
	take("the third before the second", 1, 7, 3, nil, "c=1")
	b.restart()
	b.follow(2, 5)
	take("after a crash", 2, 7, 2, nil, "a=2")
	take("another copy, from its middle", 0, 8, 2, nil, "d=1")
	b.wantState("before the last page", map[string]string{})
	at := Position{9, 5}
	take("the last", 3, 7, 3, b.end(at), "c=1")
	want := map[string]string{"a": "2", "b": "1", "c": "1"}
	b.wantState("with the last page", want)
	take("the last once more", 3, 7, 3, b.end(at), "c=other")
	b.restart()
	b.wantState("after a crash", want)
	if got := b.part.head.applied; got != at {
		t.Errorf("the state is that of %v, want %v", got, at)
	}
	b.follow(2, 5)
	b.entries(2, 5, at, 5, 10, "next")
	want["010"] = "next"
	b.wantState("after the next entry", want)
}

// TestCopyTakesThePlaceOfALog: what a log had that was never decided is gone when a copy has come,
// also after a crash.
func TestCopyTakesThePlaceOfALog(t *testing.T) {
	b := newByHand(t)
	b.follow(2, 2)
	b.entries(2, 2, Position{1, 1}, 2, 1, "x2", "x3", "x4", "x5", "x6")
	b.follow(2, 5)
	b.page(7, 1, b.end(Position{4, 5}), "a=1")
	for range 2 {
		if last := b.core.last; last != 4 {
			t.Errorf("the log ends at %d, want 4", last)
		}
		b.restart()
	}
	b.wantState("after a crash", map[string]string{"a": "1"})
}

// TestCopiesApart: a copy is never written where another one has left something.
func TestCopiesApart(t *testing.T) {
	b := newByHand(t)
	b.follow(2, 5)
	var many []string
	for i := range 2 * sweepKeys {
		many = append(many, fmt.Sprintf("left%03d=1", i))
	}
	b.page(7, 1, nil, many...)
	for until := b.env.Now + b.Tempo.Times(2*copyPatience); b.env.Now < until; {
		b.env.Begin(b.env.Now + b.beat())
		b.follow(2, 5)
	}
	b.entries(2, 5, Position{1, 1}, 5, 2, "one") // the log has what is missing, so the copy is of no use
	if b.part.arriving.area != 0 {
		t.Fatal("a copy that nobody sends is not forgotten")
	}
	b.page(8, 1, b.end(Position{9, 5}), "a=1")
	b.wantState("with the other copy", map[string]string{"a": "1"})
	for range 2 * sweepKeys {
		b.do(func() { b.Expire(b.env, sweepTimer{}) })
	}
	for k := range b.disk.Scan([]byte(statePrefix), areaPrefix(1<<64-1)) {
		if areaOf(k) != b.part.head.area {
			t.Fatalf("%q is left of another state", k)
		}
	}
}

// TestStoredIsOfItsTerm: a majority that has an entry of an earlier term does not commit it [Raft
// §5.4.2, Figure 8], so nobody is told that it is stored.
func TestStoredIsOfItsTerm(t *testing.T) {
	b := newByHand(t)
	b.follow(2, 5)
	b.told = nil
	b.entries(2, 5, Position{1, 1}, 4, 1, "earlier")
	b.entries(2, 5, Position{2, 4}, 5, 1, "own")
	b.entries(2, 5, Position{3, 5}, 5, 3)
	var got []string
	for _, e := range b.told {
		got = append(got, fmt.Sprintf("%d %v %s", e.kind, e.at, e.entry))
	}
	want := []string{"0 {3 5} own", "1 {2 4} earlier", "1 {3 5} own"}
	if !slices.Equal(got, want) {
		t.Errorf("the owner is told %q, want %q", got, want)
	}
}

// TestLogIsCut: a log has at most as many bytes as it may, and what is left of it after a crash has
// the term, and the vote.
func TestLogIsCut(t *testing.T) {
	b := newByHand(t)
	b.follow(2, 5)
	b.env.Begin(b.env.Now + time.Minute) // the leader is silent
	b.replica.Expire(b.env, missedTimer{})
	if !vote(b.replica, b.env, 3, 7) {
		t.Fatal("no vote")
	}
	carryOut(b.replica, b.env, b.disk, b.env.Now)
	behind := Position{1, 1}
	large := strings.Repeat("x", 20<<10)
	for range 40 {
		b.entries(3, 7, behind, 6, behind.Index+1, large)
		behind = Position{behind.Index + 1, 6}
		size := 0
		for _, e := range b.core.log.entries {
			size += entryBytes(e)
		}
		if limit := b.Cfg.LogBytes + 21<<10; size > limit {
			t.Fatalf("the log has %d bytes, want at most %d", size, limit)
		}
	}
	if n := len(b.core.log.entries); n == 0 || n > 4 {
		t.Errorf("the log has %d entries", n)
	}
	// One that is too large to be kept leaves none.
	b.entries(3, 7, behind, 6, behind.Index+1, strings.Repeat("x", 70<<10))
	if n := len(b.core.log.entries); n != 0 {
		t.Errorf("the log has %d entries, want none", n)
	}
	b.restart()
	if got := b.core.hard; got.term != 7 || got.vote != 3 {
		t.Errorf("after a crash the term is %d, and the vote %d, want 7 and 3", got.term, got.vote)
	}
	if vote(b.replica, b.env, 2, 7) {
		t.Error("two votes in a term")
	}
}

// TestPagesAreSmall: pages hold what a page may, and together all keys.
func TestPagesAreSmall(t *testing.T) {
	env := new(smrtest.Disk).Env()
	keys := map[string]bool{}
	for i := range 100 {
		key := fmt.Sprintf("%03d", i)
		env.Put([]byte(key), make([]byte, 97))
		keys[key] = true
	}
	for name, next := range map[string]func(*outgoing, *page){
		"the state":        func(o *outgoing, m *page) { o.read(m, env, 450) },
		"what has changed": func(o *outgoing, m *page) { o.readAgain(m, env, 450) },
	} {
		o, seen := &outgoing{changes: maps.Clone(keys)}, map[string]bool{}
		for pages := 1; len(seen) < len(keys); pages++ {
			var m page
			next(o, &m)
			if len(m.Writes) != 4 || pages > 25 {
				t.Fatalf("%s: page %d has %d keys, want 4", name, pages, len(m.Writes))
			}
			for _, w := range m.Writes {
				seen[string(w.Key)] = true
			}
		}
	}
}

// lead has the replica elected, by replica 2.
func (b *byHand) lead() {
	b.t.Helper()
	b.do(func() { b.Expire(b.env, electionTimer{}) })
	for _, kind := range []raftpb.MessageType{raftpb.MsgPreVoteResp, raftpb.MsgVoteResp} {
		b.receive(2, rpc{&raftpb.Message{Type: kind.Enum(), From: new(uint64(2)), To: new(uint64(1)), Term: new(uint64(2))}})
	}
	if !b.led {
		b.t.Fatal("the replica does not lead")
	}
}

// pages returns the numbers of the pages that went to replica 2 with the last call.
func (b *byHand) pages() (numbers []uint64) {
	for _, e := range b.out {
		if m, ok := kit.Inside(e.Msg).(page); ok && e.To == 2 {
			numbers = append(numbers, m.Number)
		}
	}
	return numbers
}

// TestCopyIsSent has replica 2 answer pages late, or not at all.
func TestCopyIsSent(t *testing.T) {
	begin := func() (b *byHand, copy uint64) {
		b = newByHand(t)
		for i := range 100 {
			b.do(func() { b.part.state(b.env).Put(fmt.Appendf(nil, "%03d", i), make([]byte, b.Cfg.SnapshotPartBytes/2)) })
		}
		b.lead()
		b.do(func() { b.part.sendState(b.env, &raftpb.Message{Type: raftpb.MsgSnap.Enum(), To: new(uint64(2))}) })
		if got := b.pages(); !slices.Equal(got, []uint64{1, 2, 3, 4, 5, 6, 7, 8}) {
			t.Fatalf("pages %d are sent first", got)
		}
		return b, b.part.copies[2].copy
	}
	after := func(b *byHand, d time.Duration) {
		b.env.Begin(b.env.Now + d)
		b.do(func() { b.part.continueCopies(b.env) })
	}

	b, copy := begin()
	b.receive(2, paged{copy, 3})
	if got := b.pages(); !slices.Equal(got, []uint64{9, 10, 11}) {
		t.Errorf("after an answer to page 3 pages %d are sent", got)
	}
	if after(b, time.Millisecond); len(b.pages()) > 0 {
		t.Errorf("pages %d are sent again at once", b.pages())
	}
	if after(b, b.Tempo.Times(kit.ChunkPatience)); !slices.Equal(b.pages(), []uint64{4, 5, 6, 7, 8, 9, 10, 11}) {
		t.Errorf("without an answer pages %d are sent again", b.pages())
	}
	if after(b, b.Tempo.Times(copyPatience)+time.Second); b.part.copies[2] != nil {
		t.Error("a copy that stands still does not end")
	}

	b, copy = begin()
	b.receive(2, paged{copy, 3})
	for i := range 100 { // it has lost its disk, or what it says is late
		if b.receive(2, paged{copy, 0}); b.part.copies[2] == nil {
			if i < 2 {
				t.Error("a copy ends with one late answer")
			}
			break
		}
	}
	if b.part.copies[2] != nil {
		t.Error("a copy of which the receiver has nothing does not end")
	}
}

// TestOneChangeAtATime: a leader says so if a change has to wait.
func TestOneChangeAtATime(t *testing.T) {
	b := newByHand(t)
	b.lead()
	change := func(c smr.Change) (reason string) {
		b.do(func() { reason = b.part.proposeChange(b.env, c) })
		return reason
	}
	first := smr.Change{Remove: 3}
	if why := change(first); !strings.Contains(why, "new") {
		t.Errorf("a leader that does not know what was decided before says %q", why)
	}
	at := Position{b.core.last, 2}
	b.receive(2, rpc{&raftpb.Message{Type: raftpb.MsgAppResp.Enum(), From: new(uint64(2)), To: new(uint64(1)),
		Term: &at.Term, Index: &at.Index}})
	if why := change(smr.Change{}); !strings.Contains(why, "neither") {
		t.Errorf("to a change that changes nothing it says %q", why)
	}
	if why := change(first); why != "" {
		t.Errorf("the first change is not made: %s", why)
	}
	if why := change(smr.Change{Remove: 2}); !strings.Contains(why, "another change") {
		t.Errorf("to a change during another one it says %q", why)
	}
	b.follow(2, 5)
	if why := change(first); !strings.Contains(why, "does not lead") {
		t.Errorf("a follower says %q", why)
	}
}
