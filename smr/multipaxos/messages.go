package multipaxos

import (
	"fmt"

	"github.com/foresay/foresay/internal/wirefmt"
	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/smr"
)

// A Ballot is an attempt to lead. Each belongs to one replica: its ID is in the lower half. 0 is below all ballots.
type Ballot uint64

// newBallot returns a replica's lowest ballot above another one.
func newBallot(above Ballot, id protocol.ID) Ballot { return (above>>32+1)<<32 | Ballot(id) }

func (b Ballot) String() string { return fmt.Sprintf("%d.%d", uint64(b)>>32, uint32(b)) }

// What replicas say to each other. From is the sender's disk.
type (
	// PreVote asks whether a Prepare would be welcome: it disturbs nobody who has a leader.
	PreVote struct {
		From   smr.Incarnation
		Ballot Ballot
		Commit smr.Slot
	}

	// PreVoteReply answers it. Promised is the sender's ballot.
	PreVoteReply struct {
		From     smr.Incarnation
		Ballot   Ballot
		Granted  bool
		Promised Ballot
	}

	// Prepare is phase 1a for all slots from Low on.
	Prepare struct {
		From   smr.Incarnation
		Ballot Ballot
		Low    smr.Slot
	}

	// Promise is phase 1b: what the sender has accepted from slot Low on, as much as fits. Unless it is the last part, the candidate asks for more.
	Promise struct {
		From   smr.Incarnation
		Ballot Ballot
		Low    smr.Slot
		Base   smr.Slot // slots up to it the sender has no more; it can send a snapshot
		Commit smr.Slot // slots up to it the sender knows to be decided as accepted
		Slots  []Vote
		Last   bool
	}

	// Vote is what was accepted for one slot, and in which ballot.
	Vote struct {
		Ballot Ballot
		Entry  smr.Entry
	}

	// Accept is phase 2a for consecutive slots from First on, which the follower takes if it has all before them. Without entries it is a heartbeat.
	Accept struct {
		From    smr.Incarnation
		Ballot  Ballot
		First   smr.Slot
		Commit  smr.Slot // slots up to it are decided
		Round   uint64   // of the leader's question whether it still leads
		Entries []smr.Entry
	}

	// Accepted is phase 2b: all slots up to Match are on the sender's disk as the ballot's leader has them.
	Accepted struct {
		From   smr.Incarnation
		Ballot Ballot
		Match  smr.Slot
	}

	// Lead asks the follower to lead in the place of the ballot's leader, without asking whether that is welcome.
	Lead struct {
		From   smr.Incarnation
		Ballot Ballot
	}

	// Follows answers a leader's question: when the sender got it, it had promised no higher ballot.
	Follows struct {
		From   smr.Incarnation
		Ballot Ballot
		Round  uint64
	}

	// Missing answers an Accept that was ahead of the sender's log: it needs the slots from Want on, or a snapshot if Want is 0.
	Missing struct {
		From   smr.Incarnation
		Ballot Ballot
		Want   smr.Slot
	}

	// Refusal answers a message of a ballot below the sender's.
	Refusal struct {
		From     smr.Incarnation
		Promised Ballot
	}

	// Removed tells a replica that it is not a member any more.
	Removed struct{ From smr.Incarnation }
)

// Records of the log.
type (
	// PromiseRecord is a ballot below which nothing is accepted any more.
	PromiseRecord struct {
		Ballot Ballot
		Commit smr.Slot
	}

	// AcceptRecord is what was accepted for consecutive slots. It promises its ballot as well.
	AcceptRecord struct {
		Ballot  Ballot
		First   smr.Slot
		Commit  smr.Slot // as known with these
		Entries []smr.Entry
	}
)

// Codec returns the codec of the protocol's messages and records.
func Codec() protocol.Codec[smr.Message] {
	return wirefmt.NewFormat("multipaxos", 1, append(smr.SharedKinds(),
		wirefmt.NewKind[smr.Message](64, func(w *wirefmt.Writer, m PreVote) {
			w.Uint(uint64(m.From))
			w.Uint(uint64(m.Ballot))
			w.Uint(uint64(m.Commit))
		},
			func(r *wirefmt.Reader) PreVote {
				return PreVote{smr.Incarnation(r.Uint()), Ballot(r.Uint()), smr.Slot(r.Uint())}
			}),
		wirefmt.NewKind[smr.Message](65, appendPreVoteReply, readPreVoteReply),
		wirefmt.NewKind[smr.Message](66, func(w *wirefmt.Writer, m Prepare) {
			w.Uint(uint64(m.From))
			w.Uint(uint64(m.Ballot))
			w.Uint(uint64(m.Low))
		},
			func(r *wirefmt.Reader) Prepare {
				return Prepare{smr.Incarnation(r.Uint()), Ballot(r.Uint()), smr.Slot(r.Uint())}
			}),
		wirefmt.NewKind[smr.Message](67, appendPromise, readPromise),
		wirefmt.NewKind[smr.Message](68, appendAccept, readAccept),
		wirefmt.NewKind[smr.Message](69, func(w *wirefmt.Writer, m Accepted) {
			w.Uint(uint64(m.From))
			w.Uint(uint64(m.Ballot))
			w.Uint(uint64(m.Match))
		},
			func(r *wirefmt.Reader) Accepted {
				return Accepted{smr.Incarnation(r.Uint()), Ballot(r.Uint()), smr.Slot(r.Uint())}
			}),
		wirefmt.NewKind[smr.Message](70, func(w *wirefmt.Writer, m Follows) { w.Uint(uint64(m.From)); w.Uint(uint64(m.Ballot)); w.Uint(m.Round) },
			func(r *wirefmt.Reader) Follows { return Follows{smr.Incarnation(r.Uint()), Ballot(r.Uint()), r.Uint()} }),
		wirefmt.NewKind[smr.Message](71, func(w *wirefmt.Writer, m Missing) {
			w.Uint(uint64(m.From))
			w.Uint(uint64(m.Ballot))
			w.Uint(uint64(m.Want))
		},
			func(r *wirefmt.Reader) Missing {
				return Missing{smr.Incarnation(r.Uint()), Ballot(r.Uint()), smr.Slot(r.Uint())}
			}),
		wirefmt.NewKind[smr.Message](72, func(w *wirefmt.Writer, m Refusal) { w.Uint(uint64(m.From)); w.Uint(uint64(m.Promised)) },
			func(r *wirefmt.Reader) Refusal { return Refusal{smr.Incarnation(r.Uint()), Ballot(r.Uint())} }),
		wirefmt.NewKind[smr.Message](73, func(w *wirefmt.Writer, m Removed) { w.Uint(uint64(m.From)) },
			func(r *wirefmt.Reader) Removed { return Removed{smr.Incarnation(r.Uint())} }),
		wirefmt.NewKind[smr.Message](74, func(w *wirefmt.Writer, m Lead) { w.Uint(uint64(m.From)); w.Uint(uint64(m.Ballot)) },
			func(r *wirefmt.Reader) Lead { return Lead{smr.Incarnation(r.Uint()), Ballot(r.Uint())} }),
		wirefmt.NewKind[smr.Message](80, func(w *wirefmt.Writer, m PromiseRecord) { w.Uint(uint64(m.Ballot)); w.Uint(uint64(m.Commit)) },
			func(r *wirefmt.Reader) PromiseRecord { return PromiseRecord{Ballot(r.Uint()), smr.Slot(r.Uint())} }),
		wirefmt.NewKind[smr.Message](81, appendAcceptRecord, readAcceptRecord),
	)...)
}

func appendPreVoteReply(w *wirefmt.Writer, m PreVoteReply) {
	w.Uint(uint64(m.From))
	w.Uint(uint64(m.Ballot))
	w.Bool(m.Granted)
	w.Uint(uint64(m.Promised))
}

func readPreVoteReply(r *wirefmt.Reader) PreVoteReply {
	return PreVoteReply{smr.Incarnation(r.Uint()), Ballot(r.Uint()), r.Bool(), Ballot(r.Uint())}
}

func appendPromise(w *wirefmt.Writer, m Promise) {
	w.Uint(uint64(m.From))
	w.Uint(uint64(m.Ballot))
	w.Uint(uint64(m.Low))
	w.Uint(uint64(m.Base))
	w.Uint(uint64(m.Commit))
	w.Bool(m.Last)
	w.List(len(m.Slots))
	for _, v := range m.Slots {
		w.Uint(uint64(v.Ballot))
		smr.AppendEntry(w, v.Entry)
	}
}

func readPromise(r *wirefmt.Reader) Promise {
	m := Promise{From: smr.Incarnation(r.Uint()), Ballot: Ballot(r.Uint()), Low: smr.Slot(r.Uint()), Base: smr.Slot(r.Uint())}
	m.Commit, m.Last = smr.Slot(r.Uint()), r.Bool()
	for range r.List(1 + smr.MinEntryBytes) {
		m.Slots = append(m.Slots, Vote{Ballot(r.Uint()), smr.ReadEntry(r)})
	}
	return m
}

func appendAccept(w *wirefmt.Writer, m Accept) {
	w.Uint(uint64(m.From))
	w.Uint(uint64(m.Ballot))
	w.Uint(uint64(m.First))
	w.Uint(uint64(m.Commit))
	w.Uint(m.Round)
	appendEntries(w, m.Entries)
}

func readAccept(r *wirefmt.Reader) Accept {
	m := Accept{From: smr.Incarnation(r.Uint()), Ballot: Ballot(r.Uint()), First: smr.Slot(r.Uint()), Commit: smr.Slot(r.Uint()), Round: r.Uint()}
	m.Entries = readEntries(r)
	return m
}

func appendAcceptRecord(w *wirefmt.Writer, m AcceptRecord) {
	w.Uint(uint64(m.Ballot))
	w.Uint(uint64(m.First))
	w.Uint(uint64(m.Commit))
	appendEntries(w, m.Entries)
}

func readAcceptRecord(r *wirefmt.Reader) AcceptRecord {
	m := AcceptRecord{Ballot: Ballot(r.Uint()), First: smr.Slot(r.Uint()), Commit: smr.Slot(r.Uint())}
	m.Entries = readEntries(r)
	return m
}

func appendEntries(w *wirefmt.Writer, entries []smr.Entry) {
	w.List(len(entries))
	for _, e := range entries {
		smr.AppendEntry(w, e)
	}
}

// readEntries reads entries one by one: an entry takes more memory than the byte that announces it, so none is made before its bytes are seen.
func readEntries(r *wirefmt.Reader) []smr.Entry {
	var entries []smr.Entry
	for range r.List(smr.MinEntryBytes) {
		if r.Err() != nil {
			return nil
		}
		entries = append(entries, smr.ReadEntry(r))
	}
	return entries
}
