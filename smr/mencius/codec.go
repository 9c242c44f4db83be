package mencius

import (
	"github.com/foresay/foresay/internal/wirefmt"
	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/smr"
)

// Codec returns the codec of the protocol's messages and records.
func Codec() protocol.Codec[smr.Message] {
	return wirefmt.NewFormat("mencius", 1, append(smr.SharedKinds(),
		wirefmt.NewKind[smr.Message](64, appendAccept, readAccept),
		wirefmt.NewKind[smr.Message](65, func(w *wirefmt.Writer, m Accepted) { appendPlace(w, m.Place); w.Uint(uint64(m.Match)) },
			func(r *wirefmt.Reader) Accepted { return Accepted{readPlace(r), Pos(r.Uint())} }),
		wirefmt.NewKind[smr.Message](66, func(w *wirefmt.Writer, m Missing) { appendPlace(w, m.Place); w.Uint(uint64(m.Want)) },
			func(r *wirefmt.Reader) Missing { return Missing{readPlace(r), Pos(r.Uint())} }),
		wirefmt.NewKind[smr.Message](67, func(w *wirefmt.Writer, m Refusal) { appendPlace(w, m.Place) },
			func(r *wirefmt.Reader) Refusal { return Refusal{readPlace(r)} }),
		wirefmt.NewKind[smr.Message](68, func(w *wirefmt.Writer, m Prepare) { appendPlace(w, m.Place); w.Uint(uint64(m.Low)) },
			func(r *wirefmt.Reader) Prepare { return Prepare{readPlace(r), Pos(r.Uint())} }),
		wirefmt.NewKind[smr.Message](69, appendPromise, readPromise),
		wirefmt.NewKind[smr.Message](70, appendBeat, readBeat),
		wirefmt.NewKind[smr.Message](71, func(w *wirefmt.Writer, m Fetch) {
			w.Uint(uint64(m.From))
			w.Uint(uint64(m.Epoch))
			w.Uint(uint64(m.Applied))
		},
			func(r *wirefmt.Reader) Fetch {
				return Fetch{smr.Incarnation(r.Uint()), Epoch(r.Uint()), smr.Slot(r.Uint())}
			}),
		wirefmt.NewKind[smr.Message](72, appendDecided, readDecided),
		wirefmt.NewKind[smr.Message](73, func(w *wirefmt.Writer, m Look) { w.Uint(uint64(m.From)); w.Uint(uint64(m.Epoch)); w.Uint(m.Round) },
			func(r *wirefmt.Reader) Look { return Look{smr.Incarnation(r.Uint()), Epoch(r.Uint()), r.Uint()} }),
		wirefmt.NewKind[smr.Message](74, appendSeen, readSeen),
		wirefmt.NewKind[smr.Message](75, func(w *wirefmt.Writer, m Removed) { w.Uint(uint64(m.From)) },
			func(r *wirefmt.Reader) Removed { return Removed{smr.Incarnation(r.Uint())} }),
		wirefmt.NewKind[smr.Message](80, appendAcceptRecord, readAcceptRecord),
		wirefmt.NewKind[smr.Message](81, appendPromiseRecord, readPromiseRecord),
	)...)
}

func appendPlace(w *wirefmt.Writer, l Place) {
	w.Uint(uint64(l.From))
	w.Uint(uint64(l.Epoch))
	w.Uint(uint64(l.Lane))
	w.Uint(uint64(l.Ballot))
}

func readPlace(r *wirefmt.Reader) Place {
	return Place{From: smr.Incarnation(r.Uint()), Epoch: Epoch(r.Uint()), Lane: r.Uint32(), Ballot: Ballot(r.Uint())}
}

func appendItems(w *wirefmt.Writer, items []Item) {
	w.List(len(items))
	for _, it := range items {
		w.Uint(it.Skips)
		w.Bool(it.Entry.Kind != 0)
		if it.Entry.Kind != 0 {
			smr.AppendEntry(w, it.Entry)
		}
	}
}

func readItems(r *wirefmt.Reader) []Item {
	var items []Item
	for range r.List(2) {
		it := Item{Skips: r.Uint()}
		if r.Bool() {
			it.Entry = smr.ReadEntry(r)
		}
		if r.Err() != nil {
			return nil
		}
		items = append(items, it)
	}
	return items
}

func appendAccept(w *wirefmt.Writer, m Accept) {
	appendPlace(w, m.Place)
	w.Uint(uint64(m.First))
	w.Uint(uint64(m.Commit))
	appendItems(w, m.Items)
}

func readAccept(r *wirefmt.Reader) Accept {
	return Accept{Place: readPlace(r), First: Pos(r.Uint()), Commit: Pos(r.Uint()), Items: readItems(r)}
}

func appendPromise(w *wirefmt.Writer, m Promise) {
	appendPlace(w, m.Place)
	w.Uint(uint64(m.Low))
	w.Uint(uint64(m.Base))
	w.Bool(m.Last)
	w.List(len(m.Votes))
	for _, v := range m.Votes {
		w.Uint(uint64(v.Ballot))
		w.Bool(v.Skip)
		smr.AppendEntry(w, v.Entry)
	}
}

func readPromise(r *wirefmt.Reader) Promise {
	m := Promise{Place: readPlace(r), Low: Pos(r.Uint()), Base: Pos(r.Uint()), Last: r.Bool()}
	for range r.List(2 + smr.MinEntryBytes) {
		m.Votes = append(m.Votes, Vote{Ballot(r.Uint()), r.Bool(), smr.ReadEntry(r)})
		if r.Err() != nil {
			return m
		}
	}
	return m
}

func appendBeat(w *wirefmt.Writer, m Beat) {
	w.Uint(uint64(m.From))
	w.Uint(uint64(m.Epoch))
	w.Uint(uint64(m.Applied))
	w.Uint(uint64(m.Seen))
	w.List(len(m.Leads))
	for _, l := range m.Leads {
		w.Uint(uint64(l.Lane))
		w.Uint(uint64(l.Ballot))
		w.Uint(uint64(l.Commit))
	}
}

func readBeat(r *wirefmt.Reader) Beat {
	m := Beat{From: smr.Incarnation(r.Uint()), Epoch: Epoch(r.Uint()), Applied: smr.Slot(r.Uint()), Seen: smr.Slot(r.Uint())}
	for range r.List(3) {
		m.Leads = append(m.Leads, Led{r.Uint32(), Ballot(r.Uint()), Pos(r.Uint())})
	}
	return m
}

func appendDecided(w *wirefmt.Writer, m Decided) {
	w.Uint(uint64(m.From))
	w.Uint(uint64(m.Epoch))
	w.Uint(uint64(m.First))
	w.List(len(m.Entries))
	for _, e := range m.Entries {
		smr.AppendEntry(w, e)
	}
}

func readDecided(r *wirefmt.Reader) Decided {
	m := Decided{From: smr.Incarnation(r.Uint()), Epoch: Epoch(r.Uint()), First: smr.Slot(r.Uint())}
	for range r.List(smr.MinEntryBytes) {
		m.Entries = append(m.Entries, smr.ReadEntry(r))
		if r.Err() != nil {
			return m
		}
	}
	return m
}

func appendSeen(w *wirefmt.Writer, m Seen) {
	w.Uint(uint64(m.From))
	w.Uint(uint64(m.Epoch))
	w.Uint(m.Round)
	w.Uint(uint64(m.Slot))
}

func readSeen(r *wirefmt.Reader) Seen {
	return Seen{smr.Incarnation(r.Uint()), Epoch(r.Uint()), r.Uint(), smr.Slot(r.Uint())}
}

func appendAcceptRecord(w *wirefmt.Writer, m AcceptRecord) {
	w.Uint(uint64(m.Epoch))
	w.List(len(m.Parts))
	for _, p := range m.Parts {
		w.Uint(uint64(p.Lane))
		w.Uint(uint64(p.Ballot))
		w.Uint(uint64(p.First))
		appendItems(w, p.Items)
	}
}

func readAcceptRecord(r *wirefmt.Reader) AcceptRecord {
	m := AcceptRecord{Epoch: Epoch(r.Uint())}
	for range r.List(4) {
		m.Parts = append(m.Parts, Part{r.Uint32(), Ballot(r.Uint()), Pos(r.Uint()), readItems(r)})
	}
	return m
}

func appendPromiseRecord(w *wirefmt.Writer, m PromiseRecord) {
	w.Uint(uint64(m.Epoch))
	w.List(len(m.Ballots))
	for _, b := range m.Ballots {
		w.Uint(uint64(b))
	}
}

func readPromiseRecord(r *wirefmt.Reader) PromiseRecord {
	m := PromiseRecord{Epoch: Epoch(r.Uint())}
	for range r.List(1) {
		m.Ballots = append(m.Ballots, Ballot(r.Uint()))
	}
	return m
}
