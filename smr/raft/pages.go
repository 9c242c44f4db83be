package raft

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"go.etcd.io/raft/v3"
	"go.etcd.io/raft/v3/raftpb"

	"github.com/foresay/foresay/internal/wirefmt"
	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/smr"
	"github.com/foresay/foresay/smr/kit"
)

type (
	// page is a part of a copy of a state, which goes to a replica that lags too far behind for the
	// log. What it has may be newer than what an earlier page of the copy had of the same keys.
	page struct {
		Copy   uint64 // random; names the copy
		Number uint64 // from 1 on, without gaps
		Writes []pageWrite
		End    *pageEnd // nil: more follow
	}

	// pageWrite is what is under a key.
	pageWrite struct {
		Key     []byte
		Deleted bool
		Value   []byte
	}

	// pageEnd is in the last page of a copy: which entry the whole is the state behind.
	pageEnd struct {
		At      Position
		Members []byte
	}

	// paged answers a page: all up to the one with that number are on disk.
	paged struct{ Copy, Have uint64 }

	// sweepTimer is when a part deletes some more of states that are not needed any more.
	sweepTimer struct{}
)

func pageFields(c *wirefmt.Coder, m *page) {
	wirefmt.Uint(c, &m.Copy)
	wirefmt.Uint(c, &m.Number)
	wirefmt.List(c, &m.Writes, 3, func(c *wirefmt.Coder, w *pageWrite) {
		wirefmt.Bytes(c, &w.Key)
		wirefmt.Bool(c, &w.Deleted)
		wirefmt.Bytes(c, &w.Value)
	})
	ends := m.End != nil
	if wirefmt.Bool(c, &ends); !ends {
		return
	}
	if c.Reading() {
		m.End = &pageEnd{}
	}
	positionFields(c, &m.End.At)
	wirefmt.Bytes(c, &m.End.Members)
}

func pagedFields(c *wirefmt.Coder, m *paged) {
	wirefmt.Uint(c, &m.Copy)
	wirefmt.Uint(c, &m.Have)
}

const (
	// pageWindow is how many pages are sent ahead of the answers.
	pageWindow = 8
	// maxChangedPages is how many pages of what has changed meanwhile are made as there is room for
	// them. Then writes are faster than pages, and the rest is made at once.
	maxChangedPages = 64
	// maxPageDenied is how often a replica says that it has nothing of a copy before that is given
	// up: an early answer may come late.
	maxPageDenied = 2 * pageWindow
	// copyPatience is for how many round trips a copy may stand still.
	copyPatience = 20
	// sweepKeys are deleted in one call, and calls have sweepPause between them.
	sweepKeys  = 256
	sweepPause = time.Millisecond
)

// An outgoing is a copy of the state on its way to one replica. The state is read a page at a time
// while entries are applied: what they write behind the place of reading is read again.
type outgoing struct {
	copy    uint64
	from    []byte          // the key to read on from
	all     bool            // each key was read once
	changes map[string]bool // keys that were written since they were read
	again   int             // pages that were made of these
	end     bool            // the last page was made
	at      Position        // of the last page

	made  uint64 // pages
	pages []page // made and not acknowledged. Invariant: the last one is number made.
	sent  uint64
	// denied is how many answers said that the replica has less than it had before.
	denied       int
	heard, moved time.Duration // when pages were sent anew, and when an answer came that said something new
}

func (o *outgoing) acked() uint64 { return o.made - uint64(len(o.pages)) }

// changed takes note that a key of the state was written.
func (p *part) changed(key []byte) {
	for _, o := range p.copies { //pure:ok each is on its own
		if !o.end && (o.all || string(key) < string(o.from)) {
			o.changes[string(key)] = true
		}
	}
}

// sendState begins a copy, in place of the library's message with a snapshot.
func (p *part) sendState(env *protocol.Env[smr.Message], m *raftpb.Message) bool {
	if m.GetType() != raftpb.MsgSnap {
		return false
	}
	to := protocol.ID(m.GetTo())
	o := &outgoing{copy: max(env.Rand.Uint64(), 1), changes: map[string]bool{}, moved: env.Now}
	p.copies[to] = o
	p.continueCopy(env, to, o)
	return true
}

// continueCopy makes and sends pages as far as there is room. If nothing was heard for a while it
// sends again what is not acknowledged.
func (p *part) continueCopy(env *protocol.Env[smr.Message], to protocol.ID, o *outgoing) {
	for len(o.pages) < pageWindow && !o.end {
		p.makePage(env, o)
	}
	if o.sent > o.acked() && env.Now-o.heard >= p.Tempo.Times(kit.ChunkPatience) {
		o.sent, o.heard = o.acked(), env.Now
	}
	for _, m := range o.pages[:min(len(o.pages), pageWindow)] {
		if m.Number > o.sent {
			p.Admission.SendAhead(env, to, m)
			o.sent, o.heard = m.Number, env.Now
		}
	}
}

// makePage reads the next page of the state, or of what has changed since it was read. If that
// leaves nothing, the copy is the state as it is now.
func (p *part) makePage(env *protocol.Env[smr.Message], o *outgoing) {
	o.made++
	m := page{Copy: o.copy, Number: o.made}
	state := protocol.Prefixed(env, areaPrefix(p.head.area))
	if !o.all {
		o.read(&m, state, p.Cfg.SnapshotPartBytes)
	} else {
		o.again++
		o.readAgain(&m, state, p.Cfg.SnapshotPartBytes)
	}
	if o.all && len(o.changes) == 0 {
		o.end, o.at = true, p.head.applied
		m.End = &pageEnd{o.at, p.members}
	}
	o.pages = append(o.pages, m)
	if o.again > maxChangedPages && !o.end {
		p.makePage(env, o)
	}
}

// read takes the next keys of a state.
func (o *outgoing) read(m *page, state protocol.Keys, maxBytes int) {
	size := 0
	for k, v := range state.Scan(o.from, nil) {
		if size > 0 && size+len(k)+len(v) > maxBytes {
			o.from = slices.Clone(k)
			return
		}
		size += len(k) + len(v)
		m.Writes = append(m.Writes, pageWrite{Key: slices.Clone(k), Value: slices.Clone(v)})
	}
	o.all = true
}

// readAgain takes keys that were written after they were read.
func (o *outgoing) readAgain(m *page, state protocol.Keys, maxBytes int) {
	size := 0
	for _, key := range slices.Sorted(maps.Keys(o.changes)) {
		v, ok := state.Get([]byte(key))
		if size > 0 && size+len(key)+len(v) > maxBytes {
			return
		}
		size += len(key) + len(v)
		m.Writes = append(m.Writes, pageWrite{Key: []byte(key), Deleted: !ok, Value: slices.Clone(v)})
		delete(o.changes, key)
	}
}

// continueCopies sends what got lost again. A copy that stands still begins anew.
func (p *part) continueCopies(env *protocol.Env[smr.Message]) {
	for _, id := range slices.Sorted(maps.Keys(p.copies)) {
		if o := p.copies[id]; env.Now-o.moved > p.Tempo.Times(copyPatience) {
			p.giveUpCopy(id)
		} else {
			p.continueCopy(env, id, o)
		}
	}
	p.core.flush(env)
}

// giveUpCopy has the library begin another one.
func (p *part) giveUpCopy(to protocol.ID) {
	delete(p.copies, to)
	p.core.node.ReportSnapshot(uint64(to), raft.SnapshotFailure)
}

// onPeer takes what other replicas say of copies.
func (p *part) onPeer(env *protocol.Env[smr.Message], from protocol.ID, letter kit.Letter) {
	switch m := letter.Msg.(type) {
	case page:
		p.onPage(env, from, m)
	case paged:
		p.onPaged(env, from, letter.Disk, m)
	}
}

func (p *part) onPaged(env *protocol.Env[smr.Message], from protocol.ID, disk kit.Incarnation, m paged) {
	o := p.copies[from]
	if o == nil || o.copy != m.Copy || m.Have > o.made || !p.core.leads() || p.stranger(from, disk) {
		return
	}
	p.heard[from] = env.Now
	switch acked := o.acked(); {
	case m.Have > acked:
		o.pages = slices.Delete(o.pages, 0, int(m.Have-acked))
		o.sent, o.moved, o.heard, o.denied = max(o.sent, m.Have), env.Now, env.Now, 0
	case m.Have < acked:
		if o.denied++; o.denied > maxPageDenied {
			p.giveUpCopy(from) // it has lost what it had
			p.core.flush(env)
			return
		}
	}
	if o.end && len(o.pages) == 0 {
		delete(p.copies, from)
		// It has all up to there, or the library had no use for it because it has more.
		p.core.step(env, &raftpb.Message{Type: raftpb.MsgAppResp.Enum(), From: new(uint64(from)), To: new(uint64(p.Cfg.ID)),
			Term: new(p.core.term()), Index: new(o.at.Index)})
		// If the log does not go back as far any more, another copy is needed.
		p.core.node.ReportSnapshot(uint64(from), raft.SnapshotFinish)
		p.core.flush(env)
		return
	}
	p.continueCopy(env, from, o)
}

// arriving is a copy of the leader's state that is being written beside the own.
type arriving struct {
	copy uint64 // 0: none
	have uint64 // pages
	area uint64 // that it is in; 0 if it is over

	heard time.Duration // when a page came, or the replica began; not on disk
}

var arrivingLayout = wirefmt.NewLayout("raft: a copy that arrives", func(c *wirefmt.Coder, a *arriving) {
	wirefmt.Uint(c, &a.copy)
	wirefmt.Uint(c, &a.have)
	wirefmt.Uint(c, &a.area)
})

func (p *part) recoverArriving(env *protocol.Env[smr.Message]) error {
	b, ok := env.Get([]byte(arrivingKey))
	if !ok {
		return nil
	}
	a, err := arrivingLayout.Decode(b)
	if err == nil && (a.area == 0 || a.area == p.head.area) {
		err = fmt.Errorf("raft: a copy arrives in area %d, and the state is in %d", a.area, p.head.area)
	}
	p.arriving, p.arriving.heard = a, env.Now
	return err
}

// dropArriving forgets a copy that nobody sends any more, as the replica gets what it lacks from
// the log.
func (p *part) dropArriving(env *protocol.Env[smr.Message]) {
	a := &p.arriving
	if a.area == 0 || env.Now-a.heard < p.Tempo.Times(copyPatience) {
		return
	}
	*a = arriving{}
	env.Delete([]byte(arrivingKey))
	p.sweep(env)
}

func (p *part) onPage(env *protocol.Env[smr.Message], from protocol.ID, m page) {
	if !p.Admission.Admitted() && !p.Cfg.Join || p.core.leader() != from || m.Copy == 0 {
		return
	}
	p.hears(env)
	a := &p.arriving
	if a.copy != m.Copy {
		if m.Number != 1 {
			p.Admission.Send(env, from, paged{Copy: m.Copy})
			return
		}
		*a = arriving{copy: m.Copy, area: p.freeArea(env)}
		p.sweep(env) // what another copy has left
	}
	a.heard = env.Now
	if m.Number == a.have+1 && a.area != 0 && !p.takePage(env, from, m) {
		return
	}
	p.Admission.Send(env, from, paged{m.Copy, a.have}) // when it is durable
}

// freeArea returns an area that has no keys.
func (p *part) freeArea(env *protocol.Env[smr.Message]) uint64 {
	for number := max(p.arriving.area, p.head.area) + 1; ; number++ {
		used := false
		for range env.Scan(areaPrefix(number), areaPrefix(number+1)) {
			used = true
			break
		}
		if !used {
			return number
		}
	}
}

// takePage writes the next page of a copy, and gives the library the state if that was the last.
func (p *part) takePage(env *protocol.Env[smr.Message], from protocol.ID, m page) bool {
	a := &p.arriving
	to := p.area(env, a.area, nil)
	for _, w := range m.Writes {
		p.arrivedBytes += uint64(len(w.Key) + len(w.Value))
		if w.Deleted {
			to.Delete(w.Key)
		} else {
			to.Put(w.Key, w.Value)
		}
	}
	if m.End == nil {
		a.have++
		env.Put([]byte(arrivingKey), arrivingLayout.Encode(*a))
		return true
	}
	there := kit.NewState(nothing{}, nil)
	if err := there.DecodeMembers(smr.Slot(m.End.At.Index), m.End.Members); err != nil || m.End.At.Term > p.core.term() {
		return false // no correct leader sends it
	}
	var voters []uint64
	for _, id := range there.MemberIDs() {
		voters = append(voters, uint64(id))
	}
	meta := metaOf(m.End.At, voters)
	p.learns(meta)
	p.end = m.End
	p.core.step(env, &raftpb.Message{Type: raftpb.MsgSnap.Enum(), From: new(uint64(from)), To: new(uint64(p.Cfg.ID)),
		Term: new(p.core.term()), Snapshot: &raftpb.Snapshot{Metadata: meta}})
	p.end = nil
	if p.Over() {
		return false
	}
	a.have++
	a.area = 0 // it is the state's now, or of no use
	env.Delete([]byte(arrivingKey))
	p.sweep(env)
	return true
}

// install makes the copy that has arrived the state.
func (p *part) install(env *protocol.Env[smr.Message], s *raftpb.Snapshot) bool {
	if p.end == nil || p.end.At.Index != s.GetMetadata().GetIndex() {
		panic("raft: the library installs a snapshot that it was not given")
	}
	p.head = head{applied: p.end.At, cut: p.end.At, area: p.arriving.area}
	p.weightBytes = 0
	if err := p.State.DecodeMembers(smr.Slot(p.end.At.Index), p.end.Members); err != nil {
		p.Fail(env, err)
		return false
	}
	p.writeMembers(env)
	p.writeHead(env)
	// What the log has is before that, or was never decided: it is not to come back with a restart.
	env.Truncate(env.NextIndex())
	p.machine.Load(p.state(env))
	p.MembersChanged(env)
	return true
}

// sweep deletes some keys of states that are neither the part's nor arriving, and goes on later if
// there are more.
func (p *part) sweep(env *protocol.Env[smr.Message]) {
	end := areaPrefix(1<<64 - 1)
	deleted := 0
	for from := []byte(statePrefix); from != nil; {
		lo := from
		from = nil
		for k := range env.Scan(lo, end) {
			number := areaOf(k)
			if number == p.head.area || number == p.arriving.area {
				from = areaPrefix(number + 1)
				break
			}
			if deleted++; deleted > sweepKeys {
				env.After(sweepPause, sweepTimer{})
				return
			}
			env.Delete(slices.Clone(k))
		}
	}
}
