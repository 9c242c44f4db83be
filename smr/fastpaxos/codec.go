package fastpaxos

import (
	"github.com/foresay/foresay/internal/wirefmt"
	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/smr"
)

// Codec returns the codec of the protocol's messages and records.
func Codec() protocol.Codec[smr.Message] {
	return wirefmt.NewFormat("fastpaxos", 1, append(smr.SharedKinds(),
		wirefmt.NewKind[smr.Message](64, func(w *wirefmt.Writer, m Beat) {
			appendHead(w, m.Head)
			w.Uint(uint64(m.Applied))
			w.Bool(m.Leads)
			w.Uint(uint64(m.Open))
		},
			func(r *wirefmt.Reader) Beat { return Beat{readHead(r), slot(r), r.Bool(), slot(r)} }),
		wirefmt.NewKind[smr.Message](65, func(w *wirefmt.Writer, m Voted) { appendHead(w, m.Head); appendPlaced(w, m.Items) },
			func(r *wirefmt.Reader) Voted { return Voted{readHead(r), readPlaced(r)} }),
		wirefmt.NewKind[smr.Message](66, appendSuggest, readSuggest),
		wirefmt.NewKind[smr.Message](67, func(w *wirefmt.Writer, m Close) { appendHead(w, m.Head); w.Uint(uint64(m.Slot)) },
			func(r *wirefmt.Reader) Close { return Close{readHead(r), slot(r)} }),
		wirefmt.NewKind[smr.Message](68, func(w *wirefmt.Writer, m Accept) { appendHead(w, m.Head); appendPlaced(w, m.Items) },
			func(r *wirefmt.Reader) Accept { return Accept{readHead(r), readPlaced(r)} }),
		wirefmt.NewKind[smr.Message](69, appendAccepted, readAccepted),
		wirefmt.NewEarlierKind[smr.Message](70, func(m Commit) bool { return !m.More },
			func(w *wirefmt.Writer, m Commit) { appendHead(w, m.Head); appendPlaced(w, m.Items) },
			func(r *wirefmt.Reader) Commit { return Commit{Head: readHead(r), Items: readPlaced(r)} }),
		wirefmt.NewKind[smr.Message](83, func(w *wirefmt.Writer, m Commit) { appendHead(w, m.Head); appendPlaced(w, m.Items); w.Bool(m.More) },
			func(r *wirefmt.Reader) Commit { return Commit{readHead(r), readPlaced(r), r.Bool()} }),
		wirefmt.NewKind[smr.Message](71, func(w *wirefmt.Writer, m Prepare) { appendHead(w, m.Head); w.Uint(uint64(m.Low)) },
			func(r *wirefmt.Reader) Prepare { return Prepare{readHead(r), slot(r)} }),
		wirefmt.NewKind[smr.Message](72, appendPromise, readPromise),
		wirefmt.NewKind[smr.Message](73, func(w *wirefmt.Writer, m Refusal) { appendHead(w, m.Head) },
			func(r *wirefmt.Reader) Refusal { return Refusal{readHead(r)} }),
		wirefmt.NewKind[smr.Message](74, func(w *wirefmt.Writer, m Fetch) { appendHead(w, m.Head); w.Uint(uint64(m.Applied)) },
			func(r *wirefmt.Reader) Fetch { return Fetch{readHead(r), slot(r)} }),
		wirefmt.NewKind[smr.Message](75, func(w *wirefmt.Writer, m Look) { appendHead(w, m.Head); w.Uint(m.Round) },
			func(r *wirefmt.Reader) Look { return Look{readHead(r), r.Uint()} }),
		wirefmt.NewKind[smr.Message](76, func(w *wirefmt.Writer, m Follows) { appendHead(w, m.Head); w.Uint(m.Round); w.Uint(uint64(m.Top)) },
			func(r *wirefmt.Reader) Follows { return Follows{readHead(r), r.Uint(), slot(r)} }),
		wirefmt.NewKind[smr.Message](77, func(w *wirefmt.Writer, m Removed) { appendHead(w, m.Head) },
			func(r *wirefmt.Reader) Removed { return Removed{readHead(r)} }),
		wirefmt.NewKind[smr.Message](78, func(w *wirefmt.Writer, m Copy) { smr.AppendRequest(w, m.Request) },
			func(r *wirefmt.Reader) Copy { return Copy{smr.TakeRequest(r)} }),
		wirefmt.NewKind[smr.Message](79, appendBallot, readBallot),
		wirefmt.NewKind[smr.Message](80, func(w *wirefmt.Writer, m VoteRecord) { appendVotes(w, m.Votes) },
			func(r *wirefmt.Reader) VoteRecord { return VoteRecord{readVotes(r)} }),
		wirefmt.NewKind[smr.Message](81, func(w *wirefmt.Writer, m PromiseRecord) { w.Uint(uint64(m.Era)) },
			func(r *wirefmt.Reader) PromiseRecord { return PromiseRecord{Era(r.Uint())} }),
		wirefmt.NewKind[smr.Message](82, appendDecided, readDecided),
	)...)
}

func slot(r *wirefmt.Reader) smr.Slot { return smr.Slot(r.Uint()) }

func appendHead(w *wirefmt.Writer, h Head) {
	w.Uint(uint64(h.From))
	w.Uint(uint64(h.Era))
	w.Uint(h.Generation)
}

func readHead(r *wirefmt.Reader) Head {
	return Head{From: smr.Incarnation(r.Uint()), Era: Era(r.Uint()), Generation: r.Uint()}
}

func appendPlaced(w *wirefmt.Writer, items []Placed) {
	w.List(len(items))
	for _, p := range items {
		w.Uint(uint64(p.Slot))
		smr.AppendEntry(w, p.Entry)
	}
}

func readPlaced(r *wirefmt.Reader) []Placed {
	var items []Placed
	for range r.List(1 + smr.MinEntryBytes) {
		items = append(items, Placed{slot(r), smr.ReadEntry(r)})
		if r.Err() != nil {
			return nil
		}
	}
	return items
}

func appendVotes(w *wirefmt.Writer, votes []Vote) {
	w.List(len(votes))
	for _, v := range votes {
		w.Uint(uint64(v.Slot))
		w.Uint(uint64(v.Era))
		w.Bool(v.Classic)
		smr.AppendEntry(w, v.Entry)
	}
}

func readVotes(r *wirefmt.Reader) []Vote {
	var votes []Vote
	for range r.List(3 + smr.MinEntryBytes) {
		votes = append(votes, Vote{slot(r), Era(r.Uint()), r.Bool(), smr.ReadEntry(r)})
		if r.Err() != nil {
			return nil
		}
	}
	return votes
}

func appendSuggest(w *wirefmt.Writer, m Suggest) {
	appendHead(w, m.Head)
	w.List(len(m.Entries))
	for _, e := range m.Entries {
		smr.AppendEntry(w, e)
	}
}

func readSuggest(r *wirefmt.Reader) Suggest {
	m := Suggest{Head: readHead(r)}
	for range r.List(smr.MinEntryBytes) {
		m.Entries = append(m.Entries, smr.ReadEntry(r))
		if r.Err() != nil {
			return m
		}
	}
	return m
}

func appendAccepted(w *wirefmt.Writer, m Accepted) {
	appendHead(w, m.Head)
	w.List(len(m.Slots))
	for _, s := range m.Slots {
		w.Uint(uint64(s))
	}
}

func readAccepted(r *wirefmt.Reader) Accepted {
	m := Accepted{Head: readHead(r)}
	for range r.List(1) {
		m.Slots = append(m.Slots, slot(r))
	}
	return m
}

func appendPromise(w *wirefmt.Writer, m Promise) {
	appendHead(w, m.Head)
	w.Uint(uint64(m.Low))
	w.Uint(uint64(m.Applied))
	w.Uint(uint64(m.Next))
	appendVotes(w, m.Votes)
}

func readPromise(r *wirefmt.Reader) Promise {
	m := Promise{Head: readHead(r), Low: slot(r), Applied: slot(r), Next: slot(r)}
	m.Votes = readVotes(r)
	return m
}

func appendBallot(w *wirefmt.Writer, m Ballot) {
	appendHead(w, m.Head)
	w.Uint(uint64(m.Need))
	w.Uint(uint64(m.Session))
	w.List(len(m.Items))
	for _, i := range m.Items {
		w.Uint(uint64(i.Seq))
		w.Uint(uint64(i.Slot))
	}
}

func readBallot(r *wirefmt.Reader) Ballot {
	m := Ballot{Head: readHead(r), Need: r.Uint32(), Session: smr.SessionID(r.Uint())}
	for range r.List(2) {
		m.Items = append(m.Items, smr.EarlyReply{Seq: smr.Seq(r.Uint()), Slot: slot(r)})
	}
	return m
}

func appendDecided(w *wirefmt.Writer, m Decided) {
	appendHead(w, m.Head)
	w.List(len(m.Items))
	for _, n := range m.Items {
		w.Uint(uint64(n.Slot))
		smr.AppendEntry(w, n.Entry)
		w.Uint(n.Length)
		w.Uint(uint64(n.Sum))
	}
}

func readDecided(r *wirefmt.Reader) Decided {
	m := Decided{Head: readHead(r)}
	for range r.List(3 + smr.MinEntryBytes) {
		m.Items = append(m.Items, Named{slot(r), smr.ReadEntry(r), r.Uint(), r.Uint32()})
		if r.Err() != nil {
			return m
		}
	}
	return m
}
