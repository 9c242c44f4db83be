package pbft

import "github.com/foresay/foresay/bft"

// heard is what a member has said last of an operation.
type heard struct {
	there     bool
	tentative bool
	view      bft.View
	seq       bft.Seq
	digest    bft.Digest
}

// newer reports whether a word takes the place of an earlier one of the same member.
func (h heard) newer(was heard) bool {
	return !was.there || was.tentative && (!h.tentative || h.view > was.view)
}

// confirmed returns the result that no view change can take away any more. A quorum says so, each
// of which has committed it, or executed it tentatively in one view and place, the same for all of
// these. If an honest one has committed it, that is how it is; if none has, all honest ones of the
// quorum have it prepared in that view, and each new view hears one of them. Tentative words of
// different views do not add up: an honest one may be left over from a view whose end it has not
// noticed. Where no reads go around the order, one honest member that has committed it is enough.
func confirmed(words []heard, quorum, witness int, reads bool) (bft.Digest, bool) {
	enough := quorum
	if !reads {
		enough = witness
	}
	for _, h := range words {
		if !h.there {
			continue
		}
		committed, tentative := 0, 0
		for _, o := range words {
			switch {
			case !o.there || o.digest != h.digest:
			case !o.tentative:
				committed++
			case h.tentative && o.view == h.view && o.seq == h.seq:
				tentative++
			}
		}
		if committed >= enough || h.tentative && committed+tentative >= quorum {
			return h.digest, true
		}
	}
	return bft.Digest{}, false
}
