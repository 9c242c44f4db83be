package tapir

import (
	"slices"

	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/quorum"
	"github.com/foresay/foresay/store"
)

// Say all three servers of a shard have voted yes to T, and its coordinator, which took that for
// the result, crashes after it has told the client. The next coordinator hears from two of them.
// Both have voted yes, and the third may have: it must come to a yes. Where one of the two has
// voted no, no fast quorum can have been, and it is free to have a no accepted.
//
// The rule: the first coordinator may go by a fast quorum without another round, and a later one
// comes to a no of its own only if the votes that it sees rule one out (plant "a later ballot takes
// it that there was no fast quorum"). A fast quorum is more than a majority for that reason: of
// votes by a bare majority, a later majority might see just one (plant "a majority is a fast
// quorum"). With five servers a majority can see two yeses and a no, two servers being silent: that
// may be a fast quorum of four, or not even a majority. Then votes do not tell, and only a view
// change does.

// stage is how far a coordinator is with a shard's result.
type stage uint8

const (
	asking    stage = iota // for votes
	accepting              // it has a result, which a majority is to accept
	chosen                 // nobody can come to another result
)

// part is what a coordinator knows of a shard that takes part in a transaction: it is the client of
// IR that invokes the consensus operation Prepare there.
type part struct {
	shard      uint32
	group      []protocol.ID
	slow, fast int
	has        bool
	txn        store.Txn

	stage     stage
	yes       bool         // the result, when it is not asked for any more
	reason    store.Reason // of a no
	hint      uint64
	view      viewNumber             // the latest that a server has answered in
	answers   map[protocol.ID]answer // of that view, to this ballot
	confirm   map[protocol.ID]bool
	carried   map[protocol.ID]bool // who has carried out the decision and said so in the view below
	carriedIn viewNumber           // Invariant: the latest that a server has said so in
	members   []protocol.ID        // of that view
	forgot    map[protocol.ID]bool // who has forgotten the part, if it was there
}

func newPart(l store.Layout, shard uint32) *part {
	p := &part{shard: shard, group: l.ServersOf(int(shard)), carried: map[protocol.ID]bool{},
		forgot: map[protocol.ID]bool{}}
	p.slow, p.fast = quorum.Majority(len(p.group)), quorum.Fast(len(p.group))
	p.ask()
	return p
}

// ask forgets the answers, as they are to be asked for anew.
func (p *part) ask() {
	p.stage, p.answers, p.confirm = asking, map[protocol.ID]answer{}, map[protocol.ID]bool{}
}

// carry notes that a server has carried out the decision. What others have said in earlier views
// does not count any more: see DESIGN.md, "Forgetting".
func (p *part) carry(from protocol.ID, m carried) {
	if m.View > p.carriedIn || p.members == nil {
		p.carriedIn, p.members = m.View, m.Members
		clear(p.carried)
	}
	if m.View == p.carriedIn {
		p.carried[from] = true
	}
}

// done reports whether nobody needs the part any more: all members of a view have carried it out in
// that view. With four servers and more a merge may go by less than a majority of votes, and all
// have to be members.
func (p *part) done() bool {
	if p.members == nil || p.least() < p.slow && len(p.members) < len(p.group) {
		return false
	}
	return !slices.ContainsFunc(p.members, func(id protocol.ID) bool { return !p.carried[id] })
}

// stuck reports whether the part would be done in a view without the members that do not answer.
func (p *part) stuck() bool { return !p.done() && p.least() >= p.slow && len(p.carried) >= p.slow }

// known reports whether the part is, or a majority has carried it out and forgotten it: if anybody
// had it who is needed to commit, he would be among them.
func (p *part) known() bool { return p.has || len(p.forgot) >= p.slow }

// next is what a part is to do.
type next uint8

const (
	wait       next = iota
	goAccept        // a result is to be accepted
	goChosen        // the result is there
	changeView      // the servers have to put their records together
)

// choose goes by the answers. first says that the ballot is that of the transaction's first
// coordinator, which alone may go by a fast quorum; late that no more answers are waited for.
//
// A majority that was asked by a later ballot, all of which have promised not to listen to earlier
// ones, tells what earlier ones can have come to: the result of the latest ballot that somebody has
// accepted, or else a yes by a fast quorum, if there are so many votes for it that a fast quorum
// can be among all.
func (p *part) choose(b ballot, first, late bool) next {
	var accepted answer
	yes, own, no := 0, 0, 0
	stale := false
	for _, id := range p.group {
		a, ok := p.answers[id]
		if !ok {
			continue
		}
		if a.Accepted.compare(accepted.Accepted) > 0 {
			accepted = a
		}
		if a.Forgot || a.Reason == store.Old {
			p.reason = store.Old // it may have been committed, and forgotten
		}
		switch a.Vote {
		case prepared:
			if yes++; a.VotedAt == b {
				own++
			}
		case unvoted:
		default:
			no++
			p.refusal(a)
			stale = stale || a.Vote == refused
		}
	}
	silent := len(p.group) - len(p.answers)
	switch {
	case accepted.Accepted != (ballot{}):
		if len(p.answers) < p.slow {
			return wait
		}
		return p.result(accepted.Yes, goAccept)
	case first && own >= p.fast:
		return p.result(true, goChosen)
	case no > len(p.group)-p.least():
		return p.result(false, goChosen) // no majority has so many votes for a yes
	case len(p.answers) < p.slow || len(p.answers) < len(p.group) && !late:
		return wait
	case first && own == yes: // nobody else can have come to a result
		return p.result(yes >= p.slow && !stale, goAccept)
	case yes >= p.slow:
		return p.result(true, goAccept)
	case yes+silent >= p.fast:
		return changeView // all who are silent may have voted for it
	}
	return p.result(false, goAccept)
}

// least is how many of a majority have voted for a yes that a fast quorum has agreed on.
func (p *part) least() int { return p.fast + p.slow - len(p.group) }

func (p *part) result(yes bool, n next) next {
	if p.yes = yes; !yes && p.reason == store.NoReason {
		p.reason = store.Fenced
	}
	if p.stage = accepting; n == goChosen {
		p.stage = chosen
	}
	return n
}

// refusal remembers why a server has refused: that a later timestamp may do counts most, but for
// what no timestamp mends.
func (p *part) refusal(a answer) {
	switch {
	case a.Vote == retry:
		p.hint = max(p.hint, a.Hint)
		if p.reason == store.NoReason || p.reason == store.Fenced || p.reason == store.Locked {
			p.reason = a.Reason
		}
	case a.Vote == refused && p.reason != store.Old:
		p.reason = a.Reason
	case p.reason == store.NoReason:
		p.reason = a.Reason
	}
}

// missing returns the servers that have not answered what they were asked last.
func (p *part) missing() []protocol.ID {
	return slices.DeleteFunc(slices.Clone(p.group), func(id protocol.ID) bool {
		_, answered := p.answers[id]
		return p.stage == asking && answered || p.stage == accepting && p.confirm[id] || p.stage == chosen
	})
}
