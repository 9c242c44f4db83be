package pbft

import (
	"slices"

	"github.com/foresay/foresay/bft"
	"github.com/foresay/foresay/bft/kit"
)

// lawfulPrepared reports whether a quorum has accepted an order: its primary and the backups that
// voted for it.
func lawfulPrepared(d *kit.Epoch, p *preparedProof) bool {
	o, primary := *p.Order.Body(), d.Primary(p.Order.Body().View)
	backup := func(k bft.Key) bool { return k != primary.Key && d.IsMember(k) }
	return p.Order.By(primary.Key) && orderBody(p.Votes.Body()) == o && p.Votes.Count(backup) >= d.Quorum()-1
}

// lawfulChange reports whether what a Change says is proven. Who signed it is another question.
func lawfulChange(d *kit.Epoch, c *changeBody, window bft.Seq) bool {
	if !kit.LawfulStable(d, &c.Stable) || c.View.Epoch() != d.Epoch || bft.Seq(len(c.Prepared)) > window {
		return false
	}
	h := c.Stable.Body().Seq
	last := h
	for i := range c.Prepared {
		o := c.Prepared[i].Order.Body()
		if o.Seq <= last || o.Seq-h > window || o.View >= c.View || o.View < d.Epoch.First() ||
			!lawfulPrepared(d, &c.Prepared[i]) {
			return false
		}
		last = o.Seq
	}
	return true
}

// choose returns what a new view begins with: the highest stable checkpoint of the changes, and
// above it for each place up to the last one the batch that was prepared there in the highest view,
// or none. The changes are lawful, and a quorum's.
func choose(view bft.View, changes []*changeBody) (bft.Certificate[kit.Checkpoint], []orderBody) {
	var stable bft.Certificate[kit.Checkpoint]
	var last bft.Seq
	for _, c := range changes {
		if c.Stable.Body().Seq > stable.Body().Seq {
			stable = c.Stable
		}
		if n := len(c.Prepared); n > 0 {
			last = max(last, c.Prepared[n-1].Order.Body().Seq)
		}
	}
	var out []orderBody
	for seq := stable.Body().Seq + 1; seq <= last; seq++ {
		var best *orderBody
		for _, c := range changes {
			i, ok := slices.BinarySearchFunc(c.Prepared, seq, func(p preparedProof, s bft.Seq) int {
				return int(int64(p.Order.Body().Seq - s))
			})
			if ok && (best == nil || c.Prepared[i].Order.Body().View > best.View) {
				best = c.Prepared[i].Order.Body()
			}
		}
		o := orderBody{View: view, Seq: seq}
		if best != nil {
			o.Batch = best.Batch
		}
		out = append(out, o)
	}
	return stable, out
}

// lawfulStart reports whether a new view begins as it must: its primary says so, a quorum has given
// up what was before, and the orders are those that follow from their words.
func lawfulStart(d *kit.Epoch, s *bft.Signed[startBody], window bft.Seq) bool {
	b, primary := s.Body(), d.Primary(s.Body().View)
	if b.View <= d.Epoch.First() || !s.By(primary.Key) || len(b.Changes) > len(d.Members) {
		return false
	}
	signers := map[bft.Key]bool{}
	var changes []*changeBody
	for i := range b.Changes {
		c := &b.Changes[i]
		for _, m := range d.Members {
			if c.By(m.Key) {
				signers[m.Key] = true
			}
		}
		if len(signers) != i+1 || c.Body().View != b.View || !lawfulChange(d, c.Body(), window) {
			return false
		}
		changes = append(changes, c.Body())
	}
	if len(signers) < d.Quorum() {
		return false
	}
	_, orders := choose(b.View, changes)
	return slices.EqualFunc(b.Orders, orders, func(got bft.Signed[orderBody], want orderBody) bool {
		return got.By(primary.Key) && *got.Body() == want
	})
}
