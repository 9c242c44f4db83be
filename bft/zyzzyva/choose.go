package zyzzyva

import (
	"crypto/sha256"

	"github.com/foresay/foresay/bft"
	"github.com/foresay/foresay/bft/kit"
)

// chain returns the history that a batch makes of the one before.
func chain(history, batch bft.Digest) bft.Digest {
	h := sha256.New()
	h.Write([]byte("foresay zyzzyva history"))
	h.Write(history[:])
	h.Write(batch[:])
	return bft.Digest(h.Sum(nil))
}

// contradict reports whether one primary cannot have signed two orders honestly.
func contradict(a, b *orderBody) bool {
	if a.View != b.View || *a == *b {
		return false
	}
	return a.Seq == b.Seq || b.Seq == a.Seq+1 && b.History != chain(a.History, b.Batch)
}

// lawfulProof reports whether a quorum has stamped a history.
func lawfulProof(d *kit.Epoch, c *bft.Certificate[stampBody]) bool {
	return c.Count(d.IsMember) >= d.Quorum()
}

// certifiedNothing reports whether there is no certificate, which is so in the first view of an
// epoch only.
func certifiedNothing(c *bft.Certificate[stampBody]) bool { return c.Body() == stampBody{} }

// last returns the end of the log.
func (c *changeBody) last() bft.Seq { return c.Stable.Body().Seq + bft.Seq(len(c.Batches)) }

// histories returns the history up to Stable, and those up to each place of the log.
func (c *changeBody) histories() []bft.Digest {
	out := []bft.Digest{c.Stable.Body().History}
	for i, b := range c.Batches {
		out = append(out, chain(out[i], b))
	}
	return out
}

// lawfulChange reports whether what a change says is proven. Who signed it is another question, and
// what its log has above the proof is its word alone.
func lawfulChange(d *kit.Epoch, c *changeBody, window bft.Seq) bool {
	if !kit.LawfulStable(d, &c.Stable) || bft.Seq(len(c.Batches)) > window || c.LogView >= c.View ||
		c.View.Epoch() != d.Epoch || c.LogView < d.Epoch.First() {
		return false
	}
	if certifiedNothing(&c.Proof) && c.LogView == d.Epoch.First() {
		return true
	}
	p, h := c.Proof.Body(), c.Stable.Body().Seq
	if p.View != c.LogView || p.Seq > c.last() || !lawfulProof(d, &c.Proof) {
		return false
	}
	return p.Seq < h || c.histories()[p.Seq-h] == p.History
}

// beginning is what a view begins with: a stable checkpoint, and the batches above it.
type beginning struct {
	stable  bft.Certificate[kit.Checkpoint]
	batches []bft.Digest
	stamp   stampBody // of all of it
}

// choose returns what a view begins with, by the lawful changes of a quorum: the candidate of the
// highest view in which one of them has its log. In it that is what has a certificate; or what so
// many have in their logs that all honest ones of the quorum may have stamped it, and a client may
// have all of their words. The latter only if it goes on from the former: else no client has. A
// certificate of an older view is not looked at: the later view began with all that could have come
// of it.
func choose(view bft.View, changes []*changeBody, traitors int) beginning {
	var out beginning
	var top bft.View
	for _, c := range changes {
		if c.Stable.Body().Seq > out.stable.Body().Seq {
			out.stable = c.Stable
		}
		top = max(top, c.LogView)
	}
	low := out.stable.Body().Seq
	var best *changeBody // that with the highest certificate
	upTo := low
	for _, c := range changes {
		if c.LogView == top && (best == nil || c.Proof.Body().Seq > best.Proof.Body().Seq) {
			best, upTo = c, max(low, c.Proof.Body().Seq)
		}
	}
	if c, last := common(changes, top, len(changes)-traitors); last > upTo && c.extends(best) {
		best, upTo = c, last
	}
	out.batches = best.between(low, upTo, out.stable.Body().History)
	out.stamp = stampBody{view, low, out.stable.Body().History}
	for _, b := range out.batches {
		out.stamp.Seq++
		out.stamp.History = chain(out.stamp.History, b)
	}
	return out
}

// common returns the longest history that so many logs of a view have, and one that has it. Two
// sets of so many share a log, which has one history only.
func common(changes []*changeBody, view bft.View, enough int) (*changeBody, bft.Seq) {
	var longest bft.Seq
	have := make([][]bft.Digest, len(changes))
	for i, c := range changes {
		longest, have[i] = max(longest, c.last()), c.histories()
	}
	at := func(i int, seq bft.Seq) (bft.Digest, bool) {
		c := changes[i]
		if low := c.Stable.Body().Seq; c.LogView == view && seq >= low && seq <= c.last() {
			return have[i][seq-low], true
		}
		return bft.Digest{}, false
	}
	for seq := longest; seq > 0; seq-- {
		for i := range changes {
			h, ok := at(i, seq)
			same := 0
			for j := range changes {
				if o, also := at(j, seq); ok && also && o == h {
					same++
				}
			}
			if same >= enough {
				return changes[i], seq
			}
		}
	}
	return nil, 0
}

// extends reports whether a log goes on from what another one has a certificate of.
func (c *changeBody) extends(o *changeBody) bool {
	p, low := o.Proof.Body(), c.Stable.Body().Seq
	return certifiedNothing(&o.Proof) || p.Seq < low || p.Seq <= c.last() && c.histories()[p.Seq-low] == p.History
}

// between returns the batches of a log above a stable checkpoint, whose history is known, up to a
// place; none if the log does not go through it, as it does unless there are too many traitors.
func (c *changeBody) between(low, upTo bft.Seq, history bft.Digest) []bft.Digest {
	from := c.Stable.Body().Seq
	if upTo <= low || from > low || c.last() < upTo || c.histories()[low-from] != history {
		return nil
	}
	return c.Batches[low-from : upTo-from]
}

// lawfulStart returns what a view begins with, if it begins as it must: its primary says so, and a
// quorum has given up what was before.
func lawfulStart(d *kit.Epoch, s *bft.Signed[startBody], window bft.Seq) (beginning, bool) {
	b := s.Body()
	if b.View <= d.Epoch.First() || !s.By(d.Primary(b.View).Key) || len(b.Changes) != d.Quorum() {
		return beginning{}, false
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
			return beginning{}, false
		}
		changes = append(changes, c.Body())
	}
	return choose(b.View, changes, d.Witness()-1), true
}
