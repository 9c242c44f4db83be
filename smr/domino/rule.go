package domino

import "github.com/foresay/foresay/quorum"

// A rule says how many acceptors decide a slot of DFP, and what the coordinator does with one that
// they have not decided. A slot is a command's if so many acceptors voted for it in ballot 0, and a
// no-op if so many passed it without a vote.
type rule struct {
	n       int // acceptors
	command int // votes that decide a command, in ballot 0
	noOp    int // that decide a no-op, in ballot 0
	classic int // that decide in later ballots, and that a coordinator has to hear
}

// fastPaxos returns the rule of Fast Paxos, in which any two clients may use the same slot [Fast
// Paxos §2.2].
//
// Two fast quorums and a majority always have an acceptor in common, so a majority's votes leave at
// most one value that may have been decided. With five acceptors, four have to agree and three are
// heard. If three were enough to decide, each of two commands with one vote heard could have got
// its other two from those who were not, and a coordinator would have to propose both.
func fastPaxos(n int) rule {
	return rule{n: n, command: quorum.Fast(n), noOp: quorum.Fast(n), classic: quorum.Majority(n)}
}

// choice is what a coordinator proposes for a slot.
type choice int

const noOp choice = -1

// choose returns what the coordinator may propose for a slot, given the final votes of at least
// classic acceptors: votes are those for each command, passed is how many have passed the slot
// without a vote, and never will vote. A vote that is missing is not one for a no-op.
//
// What may have been decided in ballot 0 is proposed again: that are at most n less the quorum's
// size acceptors who may have decided it and were not heard. Otherwise a command is proposed if it
// has the fewest votes with which it may be decided in some other case, and no fewer: so a command
// that reaches no more acceptors than that is never decided, which acknowledgements of kind ordered
// rely on; see closers.
func (r rule) choose(votes []int, passed int) choice {
	heard := passed
	for _, v := range votes {
		heard += v
	}
	unheard := r.n - heard
	best, most := noOp, 0
	for i, v := range votes {
		if v+unheard >= r.command && v > 0 {
			return choice(i)
		}
		if v > most {
			best, most = choice(i), v
		}
	}
	if passed+unheard >= r.noOp || most < r.threshold() {
		return noOp
	}
	// Neither the command nor the no-op can have been decided, so each would be safe. The command
	// saves its client another attempt.
	return best
}

// threshold returns the least votes with which a command is proposed again.
func (r rule) threshold() int { return max(1, r.classic+r.command-r.n) }

// closers returns how many acceptors have to have passed a slot so that no command that comes later
// is ever decided in it: with fewer than threshold votes left for it, a coordinator chooses the
// no-op.
//
// A majority is too few. Three of five have passed slot 100, in which A was acknowledged as
// ordered, and the other two vote for a later command B in slot 90. A coordinator that hears both
// of them and one of the three has to propose B, as the two it has not heard could make B's votes
// four. So B, though it was sent after A's acknowledgement, is executed before A.
func (r rule) closers() int { return r.n - r.threshold() + 1 }

// open reports whether the votes that are still missing can decide the slot in ballot 0.
//
// A coordinator that finds a slot open leaves it alone for a while, since votes that are on their
// way decide it sooner than a round trip of its own would.
func (r rule) open(votes []int, passed int) bool {
	heard, most := passed, 0
	for _, v := range votes {
		heard += v
		most = max(most, v)
	}
	unheard := r.n - heard
	return most+unheard >= r.command || passed+unheard >= r.noOp
}
