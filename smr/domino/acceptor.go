package domino

import (
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/foresay/foresay/internal/wirefmt"
	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/smr"
	"github.com/foresay/foresay/smr/kit"
)

// acceptor is what a replica has promised and accepted. All of it is on disk before anybody is
// told.
type acceptor struct {
	// ceiling is a bound of all claims that were made. Invariant: closed <= ceiling and skipped <=
	// ceiling. After a restart both are taken to be the ceiling: the replica does not know how far
	// its claims went, and a vote below one of them would be one that others count as never cast.
	ceiling smr.Slot
	closed  smr.Slot // it votes for nothing in the shared track up to this slot
	skipped smr.Slot // it proposes nothing in its own track up to this slot
	own     stream[item]
	votes   bySlot // its own in the shared track, above what was executed
	// voteBytes are those of the commands in votes.
	voteBytes int

	tracks  map[protocol.ID]*accepted
	closes  map[trackID]*closes
	highest smr.Slot // of all items that it ever accepted, in whatever way: reads ask for it

	promised kit.Ballot // no lower one is accepted
	// count is how many decisions of that ballot's coordinator were accepted since the last start.
	// It is not on disk: after a start the coordinator sees a lower count, and sends them again.
	count uint64
	begun []closeSlots // those of them that are not learned yet, the last ones
	// generation is that of the members among whom the ballot holds, as its coordinator says.
	generation uint64

	// executed is what the disk says was executed and the acceptor has not accepted, in an earlier
	// run: see executedRecord.
	executed bySlot

	journal kit.Journal
	disk    kit.Decisions
}

// accepted is what was accepted in ballot 0 of one replica's track.
type accepted struct {
	items   bySlot   // above what was executed
	revoked smr.Slot // nothing more is accepted up to this slot
}

// closes is what was accepted from coordinators for one track.
type closes struct {
	spans []span // in order, without overlaps
	items bySlot // of each span's ballot
}

// A span is slots above low, up to high, for which what a ballot's coordinator said was accepted.
type span struct {
	ballot    kit.Ballot
	low, high smr.Slot
}

// The keys of the acceptor begin with these.
const (
	promisesKey = "domino/promises"
	streamKey   = "domino/stream"   // how long the own stream was when the log was cut
	revokedKey  = "domino/revoked/" // then the owner
)

type promises struct {
	ceiling smr.Slot
	ballot  kit.Ballot
}

// revokedRecord says up to which slot nothing more is accepted of an owner.
type revokedRecord struct {
	owner protocol.ID
	upTo  smr.Slot
}

var (
	promisesLayout = wirefmt.NewLayout("domino: promises on disk", func(c *wirefmt.Coder, p *promises) {
		wirefmt.Uint(c, &p.ceiling)
		wirefmt.Uint(c, &p.ballot)
	})
	streamLayout  = wirefmt.NewLayout("domino: the stream's length on disk", wirefmt.Uint[uint64])
	revokedLayout = wirefmt.NewLayout("domino: a revoked track on disk", func(c *wirefmt.Coder, r *revokedRecord) {
		wirefmt.Uint32(c, &r.owner)
		wirefmt.Uint(c, &r.upTo)
	})
)

func newAcceptor() acceptor {
	return acceptor{tracks: map[protocol.ID]*accepted{}, closes: map[trackID]*closes{}}
}

// begin makes the acceptor keep out of slots that are executed. It forgets its votes there, so it
// could not tell a second vote from a first one.
func (a *acceptor) begin(executed smr.Slot) {
	a.closed, a.skipped = max(a.closed, executed), max(a.skipped, executed)
	a.highest = max(a.highest, executed)
}

func (a *acceptor) track(owner protocol.ID) *accepted {
	l := a.tracks[owner]
	if l == nil {
		l = &accepted{}
		a.tracks[owner] = l
	}
	return l
}

func (a *acceptor) closesOf(l trackID) *closes {
	c := a.closes[l]
	if c == nil {
		c = &closes{}
		a.closes[l] = c
	}
	return c
}

// claim raises the promises that come with time, and makes a bound of them durable. The bound lies
// a lease ahead, so that it is written now and then and not with each claim. A restart costs the
// slots up to it, in which the replica does not vote.
func (a *acceptor) claim(env *protocol.Env[smr.Message], now, lease smr.Slot) {
	a.closed, a.skipped = max(a.closed, now), max(a.skipped, now)
	a.cover(env, max(a.closed, a.skipped), lease)
}

// cover makes the bound of claims lie above a slot.
func (a *acceptor) cover(env *protocol.Env[smr.Message], s, lease smr.Slot) {
	if s > a.ceiling {
		a.ceiling = s + lease
		a.savePromises(env)
	}
}

// close promises to vote for nothing in the shared track up to a slot, which may lie ahead of time.
func (a *acceptor) close(env *protocol.Env[smr.Message], to smr.Slot) {
	a.closed = max(a.closed, to)
	a.cover(env, a.closed, 0)
}

// revoke promises to accept nothing in ballot 0 of an owner's track up to a slot. That is the phase
// 1 which lets a coordinator decide there. It is on disk, as votes are: were it forgotten in a
// crash, the owner could still complete a majority for what the coordinator has taken for a no-op.
func (a *acceptor) revoke(env *protocol.Env[smr.Message], owner protocol.ID, to smr.Slot) {
	l := a.track(owner)
	if to <= l.revoked {
		return
	}
	l.revoked = to
	a.saveRevoked(env, owner)
}

func (a *acceptor) savePromises(env *protocol.Env[smr.Message]) {
	env.Put([]byte(promisesKey), promisesLayout.Encode(promises{a.ceiling, a.promised}))
}

func (a *acceptor) saveRevoked(env *protocol.Env[smr.Message], owner protocol.ID) {
	key := binary.BigEndian.AppendUint32([]byte(revokedKey), uint32(owner))
	env.Put(key, revokedLayout.Encode(revokedRecord{owner, a.track(owner).revoked}))
}

// add puts items at the end of the own stream.
func (a *acceptor) add(env *protocol.Env[smr.Message], items ...item) {
	rec := ownRecord{First: a.own.last() + 1, Items: items}
	a.own.add(items...)
	last := smr.Slot(0)
	for _, i := range items {
		last = max(last, i.Slot)
	}
	a.highest = max(a.highest, last)
	a.journal.Wrote(env.Append(rec), last)
}

// vote takes a vote in the shared track into memory.
func (a *acceptor) vote(i item) {
	before := len(a.votes)
	if a.votes.add(i); len(a.votes) > before {
		a.voteBytes += i.bytes()
	}
}

// full reports whether an item is too much beside those that were voted for and are not executed. A
// single larger one is not.
func (a *acceptor) full(i item, cfg smr.ReplicaConfig) bool {
	return len(a.votes) >= cfg.MaxPending || a.voteBytes > 0 && a.voteBytes+i.bytes() > cfg.MaxPendingBytes
}

// acceptTrack accepts items of another replica's track.
func (a *acceptor) acceptTrack(env *protocol.Env[smr.Message], owner protocol.ID, items []item) {
	last := smr.Slot(0)
	for _, i := range items {
		a.track(owner).items.add(i)
		last = max(last, i.Slot)
	}
	a.highest = max(a.highest, last)
	a.journal.Wrote(env.Append(trackRecord{owner, items}), last)
}

// acceptClose accepts a decision of a coordinator. Its ballot is not below that of anything that
// was accepted.
func (a *acceptor) acceptClose(env *protocol.Env[smr.Message], b kit.Ballot, c closeSlots) {
	a.closesOf(c.Track).accept(b, c)
	for _, i := range c.Items {
		a.highest = max(a.highest, i.Slot)
	}
	a.journal.Wrote(env.Append(closeRecord{part{b, c}}), c.High)
	// Whoever accepts in this ballot accepts in ballot 0 no more, in any slot of the span. An
	// acceptor that was not among those asked in phase 1 gives ballot 0 up here.
	switch {
	case c.Track == shared:
		a.close(env, c.High)
	case c.Track.owned():
		a.revoke(env, protocol.ID(c.Track), c.High)
	}
}

// accept puts a decision over what was accepted before: only the vote of the highest ballot binds a
// later coordinator. Of older spans the parts outside stay as they are, with their own ballots.
//
// Decisions need not cover the same slots. Of a span 0 to 10 in ballot 1, a decision about 4 to 6
// in ballot 2 leaves 0 to 4 and 6 to 10 in ballot 1. To raise the ballot of the whole span would
// let old votes win over what another majority accepted in between.
func (c *closes) accept(b kit.Ballot, m closeSlots) {
	var spans []span
	fresh := span{b, m.Low, m.High}
	placed := false
	for _, s := range c.spans {
		if s.low < m.Low { // the part before
			spans = append(spans, span{s.ballot, s.low, min(s.high, m.Low)})
		}
		if !placed && s.high > m.Low {
			spans, placed = append(spans, fresh), true
		}
		if s.high > m.High { // the part behind
			spans = append(spans, span{s.ballot, max(s.low, m.High), s.high})
		}
	}
	if !placed {
		spans = append(spans, fresh)
	}
	c.spans = joined(spans)
	c.items.remove(m.Low, m.High)
	for _, i := range m.Items {
		c.items.add(i)
	}
}

// joined makes one span of neighbours of the same ballot.
func joined(spans []span) []span {
	out := spans[:0]
	for _, s := range spans {
		if n := len(out); n > 0 && out[n-1].ballot == s.ballot && out[n-1].high == s.low {
			out[n-1].high = s.high
		} else {
			out = append(out, s)
		}
	}
	return out
}

// parts returns what was accepted for the track's slots above a slot.
func (c *closes) parts(l trackID, executed smr.Slot) []part {
	var out []part
	for _, s := range c.spans {
		if low := max(s.low, executed); low < s.high {
			out = append(out, part{s.ballot, closeSlots{l, low, s.high, slices.Clone(c.items.within(low, s.high))}})
		}
	}
	return out
}

// parts returns all that was accepted from coordinators above a slot.
func (a *acceptor) parts(executed smr.Slot) []part {
	var out []part
	for _, l := range a.closedTracks() {
		out = append(out, a.closes[l].parts(l, executed)...)
	}
	return out
}

func (a *acceptor) closedTracks() []trackID {
	tracks := make([]trackID, 0, len(a.closes))
	for l := range a.closes { //pure:ok they are sorted
		tracks = append(tracks, l)
	}
	slices.Sort(tracks)
	return tracks
}

// promise follows a ballot, which is higher than the one before. Its coordinator numbers its
// decisions from 1, so what was counted before does not count.
func (a *acceptor) promise(env *protocol.Env[smr.Message], b kit.Ballot) {
	a.promised, a.generation, a.count, a.begun = b, 0, 0, nil
	a.savePromises(env)
}

// forget drops from memory what is not needed when all up to a slot was executed. Items of the own
// stream that peers still need stay, up to so many bytes: a peer that lacks more gets what was
// executed instead. Votes need not outlive execution, as whoever asks is told the slot that was
// executed, and never that there was no vote.
func (a *acceptor) forget(executed smr.Slot, needed uint64, mostBytes int) {
	for len(a.own.tail) > 0 && a.own.tail[0].Slot <= executed && (a.own.base < needed || len(a.own.tail) > maxTail ||
		a.own.size > mostBytes) {
		a.own.drop(a.own.tail[0].Slot)
	}
	for _, i := range a.votes {
		if i.Slot > executed {
			break
		}
		a.voteBytes -= i.bytes()
	}
	a.votes.cut(executed)
	a.executed.cut(executed)
	for _, l := range a.tracks { //pure:ok each on its own
		l.items.cut(executed)
	}
	for _, c := range a.closes { //pure:ok each on its own
		c.items.cut(executed)
		n := 0
		for n < len(c.spans)-1 && c.spans[n].high <= executed {
			n++
		}
		c.spans = c.spans[n:]
	}
}

// maxTail bounds the items of the own stream that are kept for replicas that may be gone.
const maxTail = 8192

// cut drops the records that are not needed any more when all up to a slot is in a snapshot.
func (a *acceptor) cut(env *protocol.Env[smr.Message], to smr.Slot) {
	if a.journal.Cut(env, to, nil) {
		env.Put([]byte(streamKey), streamLayout.Encode(a.own.last()))
	}
	a.disk.Saved(env)
}

// load takes over what is on disk. All up to executed is in the snapshot.
func (a *acceptor) load(
	env *protocol.Env[smr.Message], log []protocol.Record[smr.Message], self protocol.ID, executed smr.Slot,
) error {
	if err := a.loadKeys(env); err != nil {
		return err
	}
	a.own.through = executed
	seen := false
	for _, rec := range log {
		last := smr.Slot(0)
		switch m := rec.Msg.(type) {
		case ownRecord:
			if !seen {
				seen, a.own.base = true, m.First-1
			}
			if m.First != a.own.last()+1 {
				return fmt.Errorf("record %d begins with number %d of the stream, after %d", rec.Index, m.First, a.own.last())
			}
			a.own.add(m.Items...)
			for _, i := range m.Items {
				last = max(last, i.Slot)
				if digitOf(i.Slot) == sharedDigit {
					a.vote(i)
				} else {
					a.track(self).items.add(i)
					a.skipped = max(a.skipped, i.Slot)
				}
			}
		case trackRecord:
			for _, i := range m.Items {
				a.track(m.Owner).items.add(i)
				last = max(last, i.Slot)
			}
		case closeRecord:
			last = m.High
			a.closesOf(m.Track).accept(m.Ballot, m.closeSlots)
		case executedRecord:
			for _, i := range m.Items {
				a.executed.add(i)
				last = max(last, i.Slot)
			}
		default:
			return fmt.Errorf("record %d is a %T, which is none of the protocol's", rec.Index, rec.Msg)
		}
		a.highest = max(a.highest, last)
		a.journal.Found(rec.Index, last)
	}
	// Before the crash it may have claimed to have passed slot 100, and others have taken slot 90
	// for a no-op. Going by a clock that shows 80 now, it would vote in 90.
	a.closed, a.skipped = max(a.closed, a.ceiling), max(a.skipped, a.ceiling)
	a.begin(executed)
	a.forget(executed, a.own.last(), 0)
	return nil
}

func (a *acceptor) loadKeys(env *protocol.Env[smr.Message]) error {
	if b, ok := env.Get([]byte(promisesKey)); ok {
		p, err := promisesLayout.Decode(b)
		if err != nil {
			return err
		}
		a.ceiling, a.promised = p.ceiling, p.ballot
	}
	if b, ok := env.Get([]byte(streamKey)); ok {
		base, err := streamLayout.Decode(b)
		if err != nil {
			return err
		}
		a.own.base = base
	}
	for _, b := range env.Scan([]byte(revokedKey), []byte(revokedKey+"\xff\xff\xff\xff\xff")) {
		r, err := revokedLayout.Decode(b)
		if err != nil {
			return err
		}
		a.track(r.owner).revoked = r.upTo
	}
	return nil
}
