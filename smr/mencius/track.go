package mencius

import (
	"fmt"
	"slices"

	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/quorum"
	"github.com/foresay/foresay/smr/kit"
)

// track is what a replica knows of the slots of one member.
type track struct {
	index    uint32
	owner    protocol.ID
	promised kit.Ballot // nothing below it is accepted any more
	base     pos        // positions up to it are done with and forgotten
	votes    []vote     // votes[i] is what was accepted for position base+1+i
	// matched is the last position up to which the votes are those of the promised ballot's leader.
	// Invariant: commit <= matched <= end().
	matched pos
	commit  pos // positions up to it are decided, as are those that were skipped. Invariant: base <= commit.
	// skips is how far skipped positions count as decided. In a track of others that is all: they
	// were told when they were on the owner's disk. In the own track it is what is on disk: an
	// owner that forgets in a crash what it has skipped may propose there, in front of what was
	// executed already.
	skips pos
	acks  []ack // what members have on disk, in their order

	lead  *leading   // nil if the replica does not lead the track
	cand  *candidacy // nil if it does not try to
	rest  int        // beats, until it may try again
	tries int        // to lead the track, since something in it was decided

	above   kit.Ballot // the next attempt is in a ballot above it
	silent  int        // beats since the leader was heard
	blocked int        // beats for which the execution has waited for the track
	missing pos        // what was asked for last, in this beat; 0: nothing
	tell    teller
}

// ack is how far a member has the leader's positions of a ballot on disk.
type ack struct {
	ballot kit.Ballot
	match  pos
}

// leading is a leader's view of the others.
type leading struct {
	flows []kit.Flow[pos] // to each member, in their order
}

// teller is who hears at the end of a call what was accepted in a track.
type teller uint8

const (
	tellNobody teller = iota
	tellLeader
	tellAll
)

func (l *track) end() pos { return l.base + pos(len(l.votes)) }

func (l *track) at(p pos) *vote { return &l.votes[p-l.base-1] }

// decided reports whether no other than the position's vote will ever be chosen there: what is
// skipped needs no majority, as its owner alone could have proposed.
func (l *track) decided(p pos) bool {
	return p <= l.commit || p <= min(l.end(), l.skips) && l.at(p).Skip
}

// leader returns to whom the promised ballot belongs.
func (l *track) leader() protocol.ID { return l.leaderOf(l.promised) }

func (l *track) leaderOf(b kit.Ballot) protocol.ID {
	if b == 0 {
		return l.owner
	}
	return b.Owner()
}

// set puts a vote in a position that is at most one beyond the last.
func (l *track) set(p pos, v vote) {
	switch {
	case p <= l.base:
	case p <= l.end():
		*l.at(p) = v
	case p == l.end()+1:
		l.votes = append(l.votes, v)
	default:
		panic(fmt.Sprintf("mencius: position %d leaves a gap after %d", p, l.end()))
	}
}

// rematch finds how far the votes are those of the promised ballot's leader. Up to commit they are,
// in whatever ballots they were cast: each later ballot proposes a decided entry again. Above that,
// a vote of a lower ballot may be for another entry than the leader's, like an uncommitted entry of
// an earlier term in Raft.
func (l *track) rematch() {
	l.matched = l.commit
	for l.matched < l.end() && l.at(l.matched+1).Ballot == l.promised {
		l.matched++
	}
}

// raise promises a higher ballot, as a Raft server does that hears of a higher term: it accepts
// nothing in lower ones any more, and ends its own leadership of the track, and its attempt at one
// in a lower ballot. Nobody may be told before the promise is on disk. The record of it is the
// caller's affair.
func (l *track) raise(b kit.Ballot) {
	l.promised, l.lead, l.silent, l.blocked, l.missing = b, nil, 0, 0, 0
	l.rest = max(l.rest, courtesy) // whoever asked for it has to have the time to lead
	if l.cand != nil && l.cand.ballot < b {
		l.cand = nil
	}
	l.rematch()
}

// advance decides what a majority has accepted in the promised ballot and the replica has too. All
// members count acknowledgements, not only the leader, so each learns what is decided one message
// earlier. Those of other ballots are left out: two members that have positions 1 to 7, each of
// another ballot, may have different entries there.
func (l *track) advance(majority int) {
	var match []pos
	for _, a := range l.acks {
		if a.ballot == l.promised {
			match = append(match, a.match)
		}
	}
	l.decide(quorum.KthLargest(match, majority))
}

// decide takes note that the promised ballot's positions up to one are decided. What the replica
// has beyond matched is not that ballot's, so it must not be taken for decided, whoever says how
// far the decisions go: it is asked for again.
func (l *track) decide(to pos) {
	if to = min(to, l.matched); to > l.commit {
		l.commit, l.tries = to, 0
	}
}

// acked notes what a member has on disk. Messages overtake each other, so within a ballot only the
// highest position counts: what is on disk stays there.
func (l *track) acked(member int, a ack) {
	if old := &l.acks[member]; a.ballot > old.ballot || a.ballot == old.ballot && a.match > old.match {
		*old = a
	}
}

// cut forgets the positions up to one, which are decided and in a snapshot.
func (l *track) cut(to pos) {
	if to <= l.base {
		return
	}
	l.votes = slices.Delete(l.votes, 0, int(min(to-l.base, pos(len(l.votes)))))
	l.base = to
	l.commit = max(l.commit, to)
	l.rematch()
}

// items returns what was accepted from one position to another, or as much as fits in a message,
// and the position after it.
func (l *track) items(from, to pos) ([]item, pos) {
	votes := l.votes[from-l.base-1 : to-l.base]
	items, n := pack(votes)
	return items, from + pos(n)
}

// suspects reports whether a track's leader was silent, or the execution has waited for the track,
// for some beats. Silence alone is not enough: a leader may be heard and yet make no progress, for
// instance because nobody can reach it, and each replica executes only as fast as the slowest
// track.
func (l *track) suspects(beats int) bool { return l.silent >= beats || l.blocked >= beats<<l.tries }

// pack returns votes as items, as many as fit in a message, and how many that are.
func pack(votes []vote) (items []item, n int) {
	var page kit.Page
	var skips uint64
	for _, v := range votes {
		if v.Skip {
			skips++
		} else {
			if !page.Takes(v.Entry) {
				break
			}
			items = append(items, item{skips, v.Entry})
			skips = 0
		}
		n++
	}
	if skips > 0 {
		items = append(items, item{Skips: skips})
	}
	return items, n
}

// sizeOf returns how many bytes the commands of items have.
func sizeOf(items []item) (n int) {
	for _, it := range items {
		n += len(it.Entry.Command)
	}
	return n
}

// unpack returns items as votes in a ballot, without the first ones; ok is false if there are more
// than a window of them.
func unpack(items []item, b kit.Ballot, without pos) (votes []vote, ok bool) {
	n := uint64(0)
	for _, it := range items {
		if it.Skips > window {
			return nil, false
		}
		n += it.Skips
		if it.Entry.Kind != 0 {
			n++
		}
		if n > window {
			return nil, false
		}
	}
	if n <= uint64(without) {
		return nil, true
	}
	votes = make([]vote, 0, n)
	for _, it := range items {
		for range it.Skips {
			votes = append(votes, vote{b, true, kit.Entry{Kind: kit.NoOp}})
		}
		if it.Entry.Kind != 0 {
			votes = append(votes, vote{b, false, it.Entry})
		}
	}
	return votes[without:], true
}
