package replicatedcommit

import (
	"cmp"
	"slices"

	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/store"
)

// An entry is what a coordinator has heard of a transaction.
type entry struct {
	id       store.TxnID
	shards   []uint32
	readOnly bool
	rows     []row // by site
	clients  []protocol.ID
	said     bool // the own site's vote was told
	asked    bool // all were asked, as only what they know of a decision is missing
	// recovering says that votes were asked for which the client should have brought about.
	recovering bool
	outcome    txnState // Undecided, Committed or Aborted
	reason     store.Reason
	current    []store.Current // while a vote of the own site's is taken: what came with it
}

// A row is what one site's shards have said.
type row struct {
	cells   []txnState // by entry.shards
	whole   txnState   // what its coordinator said: Undecided, Yes or No
	applied bool
	fenced  bool // it has no vote, and does not tell what it decided
	reason  store.Reason
	hint    uint64
}

// maxClients bounds who is told the outcome of one transaction.
const maxClients = 4

func newEntry(id store.TxnID, shards []uint32, l store.Layout) *entry {
	e := &entry{id: id, shards: shards, rows: make([]row, len(l.Sites))}
	for i := range e.rows {
		e.rows[i].cells = make([]txnState, len(shards))
		if l.Sites[i].Fenced {
			e.rows[i].fenced, e.rows[i].applied = true, true
		}
	}
	return e
}

// decide returns what a shard is told of the outcome.
func (e *entry) decide() decide {
	return decide{ID: e.id, Shards: e.shards, Commit: e.outcome == committed, Old: e.reason == store.Old}
}

func (e *entry) addClient(id protocol.ID) {
	if !slices.Contains(e.clients, id) && len(e.clients) < maxClients {
		e.clients = append(e.clients, id)
	}
}

// settled reports whether a shard in a state has carried out a decision.
func settled(s txnState) bool { return s == committed || s == aborted }

// take notes what a shard said. Messages may be late or repeated, so a cell only goes forward: from
// not knowing, to a vote, to a decision, to one that is carried out. A vote never replaces a vote:
// a server gives only one.
func (r *row) take(i int, m vote) {
	old := r.cells[i]
	if settled(old) || old == wanting && !settled(m.State) || (old == yes || old == no) &&
		(m.State == yes || m.State == no || m.State == undecided) {
		return
	}
	r.cells[i] = m.State
	if m.Reason != store.NoReason {
		r.refuse(m.Reason, m.Hint)
	}
}

func (r *row) takeSite(m store.SiteVote) {
	switch {
	case r.whole != undecided:
	case m.Yes:
		r.whole = yes
	default:
		r.whole = no
		r.refuse(m.Reason, m.Hint)
	}
}

// refuse keeps the first reason, but for Old, which says that the transaction may have had another
// end.
func (r *row) refuse(reason store.Reason, hint uint64) {
	if r.reason == store.NoReason || reason == store.Old {
		r.reason = reason
	}
	r.hint = max(r.hint, hint)
}

// vote returns the site's vote: Yes if all its shards say so, No if one does not, Undecided if that
// is not known. It is as final as the shards' votes, which do not change, so a site needs no write
// of its own.
func (r *row) vote() txnState {
	if r.whole != undecided {
		return r.whole
	}
	switch {
	case slices.Contains(r.cells, no):
		return no
	case slices.Contains(r.cells, old):
		return no
	}
	if slices.ContainsFunc(r.cells, func(s txnState) bool { return s != yes }) {
		return undecided
	}
	return yes
}

func (r *row) allSettled() bool {
	return !slices.ContainsFunc(r.cells, func(s txnState) bool { return !settled(s) })
}

// tally returns the decision that is known by now: one that another made, or what the votes add up
// to. Votes do not change, so whoever counts them comes to the same end, at whatever time:
// committed by the yes of a majority of all sites, aborted when the noes leave no such majority.
// Votes that are missing may still be either, so with neither it is undecided.
//
// An abort of a site that took the transaction for forgotten counts as long as nobody knows better:
// all sites have what it wrote by then, and only its clients are not told whether it was committed.
//
// A fenced site's vote is a no once all shards of all other sites have said themselves that they
// know of no decision. Before that there may be one that stood on the fenced site's yes.
//
// For example A and C of three sites voted yes, B voted no, and the transaction was committed on
// that at A. Then C is lost and fenced. Whoever counted C's missing vote as a no without having
// heard A would abort what A has committed.
func (e *entry) tally(majority int) (txnState, store.Reason) {
	ayes, nays, fenced := 0, 0, 0
	heard, reason := true, store.NoReason
	anyAborted, why := false, store.NoReason
	for i := range e.rows {
		r := &e.rows[i]
		for _, cell := range r.cells {
			switch cell {
			case wanting, committed:
				return committed, store.NoReason
			case aborted:
				if !anyAborted || why == store.Old {
					why = r.reason
				}
				anyAborted = true
			case undecided, gone:
				heard = heard && r.fenced
			}
		}
		switch v := r.vote(); {
		case r.fenced:
			fenced++
		case v == yes:
			ayes++
		case v == no:
			nays++
			if reason == store.NoReason || r.reason == store.Old {
				reason = r.reason
			}
		}
	}
	switch {
	case anyAborted:
		return aborted, why
	case ayes >= majority:
		return committed, store.NoReason
	case len(e.rows)-nays < majority:
		return aborted, reason
	case len(e.rows)-nays-fenced < majority && heard:
		return aborted, cmp.Or(reason, store.Fenced)
	}
	return undecided, reason
}

// lost reports whether too many votes are no or a fenced site's to commit, so that it commits only
// if somebody has decided that before the site was fenced.
func (e *entry) lost(majority int) bool {
	n := 0
	for i := range e.rows {
		if e.rows[i].fenced || e.rows[i].vote() == no {
			n++
		}
	}
	return len(e.rows)-n < majority
}
