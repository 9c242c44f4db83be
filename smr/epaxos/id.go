package epaxos

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/quorum"
	"github.com/foresay/foresay/smr/kit"
)

// An instanceID names an instance: the Index-th one, from 1, that a replica proposes in a
// generation. A replica's instances are its row.
type instanceID struct {
	Row   protocol.ID
	Index uint64
}

func (i instanceID) String() string { return fmt.Sprintf("%d.%d", i.Row, i.Index) }

// byIndex is the order of instances of one row.
func byIndex(a, b instanceID) int { return cmp.Compare(a.Index, b.Index) }

// owns reports whether a ballot can be a replica's. That of the proposer is everybody's, and those
// that leave no room above are nobody's.
func owns(id protocol.ID, b kit.Ballot) bool { return b == 0 || b.Owner() == id && b < 1<<62 }

// deps are the instances that one depends on: of each row, in order of the members, all up to an
// index. More than those that it conflicts with are among them, which costs waiting and nothing
// else. It makes the set small, whatever conflicts with what.
type deps []uint64

// join makes d the union with o.
func (d deps) join(o deps) {
	for i, x := range o {
		d[i] = max(d[i], x)
	}
}

func (d deps) clone() deps { return slices.Clone(d) }

// has reports whether an instance is among them.
func (d deps) has(o *instance) bool { return o.row < len(d) && o.id.Index <= d[o.row] }

// slowQuorum is how many of n replicas have to accept.
func slowQuorum(n int) int { return quorum.Majority(n) }

// fastSlack is how many of n replicas may be silent on the fast path: the e of [EPaxos*], the most
// for which n >= 2e+f-1 and e <= f.
func fastSlack(n int) int {
	f := quorum.Tolerated(n)
	return min(f, (n-f+1)/2)
}

// fastQuorum is how many of n replicas, the proposer included, have to agree with the proposer at
// once: f + (f+1)/2 of 2f+1 [EPaxos §4.4], which is two of three, three of five.
func fastQuorum(n int) int { return n - fastSlack(n) }
