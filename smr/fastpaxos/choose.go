package fastpaxos

import (
	"github.com/foresay/foresay/quorum"
	"github.com/foresay/foresay/smr/kit"
)

// choice is what may be proposed in a slot after the votes of some members.
type choice struct {
	bound bool      // only entry may
	entry kit.Entry // of the votes, the one that most have; Kind 0 if there are none
}

// choose looks at the votes of asked members, of n, in one slot: at least a majority was asked, and
// votes are those of the asked that have voted, at most one each. What may have been chosen is
// among the votes of the highest round: in a classic one there is only one value, and in a fast one
// a value has been chosen only if so many of the asked voted for it that the others can make a fast
// quorum of it. At most one value has [MSR-TR-2005-112, §2.2].
func choose(votes []vote, asked, n int) choice {
	var top vote
	for _, v := range votes {
		if v.Era > top.Era || v.Era == top.Era && v.Classic {
			top = vote{Era: v.Era, Classic: v.Classic}
		}
	}
	var best choice
	most := 0
	for i, v := range votes {
		if v.Era != top.Era || v.Classic != top.Classic {
			continue
		}
		if v.Classic {
			return choice{true, v.Entry}
		}
		same := 0
		for _, w := range votes[i:] {
			if w.Era == top.Era && !w.Classic && w.Entry.Equal(v.Entry) {
				same++
			}
		}
		if same > most {
			most, best.entry = same, v.Entry
		}
	}
	best.bound = most > 0 && most >= asked+quorum.Fast(n)-n
	return best
}

// wish names a command, however often it is proposed.
type wish struct {
	kind    kit.EntryKind
	client  uint32
	session kit.SessionID
	seq     kit.Seq
}

func wishFor(e kit.Entry) wish { return wish{e.Kind, uint32(e.Client), e.Session, e.Seq} }
