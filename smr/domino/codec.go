package domino

import (
	"math"
	"time"

	"github.com/foresay/foresay/internal/wirefmt"
	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/smr"
)

// Codec returns the codec of the protocol's messages and records.
func Codec() protocol.Codec[smr.Message] {
	return wirefmt.NewFormat("domino", 1, append(smr.SharedKinds(),
		wirefmt.NewEarlierKind[smr.Message](64, func(m News) bool { return len(m.Names) == 0 }, appendEarlierNews, readEarlierNews),
		wirefmt.NewKind[smr.Message](77, appendNews, readNews),
		wirefmt.NewKind[smr.Message](65, appendAccept, readAccept),
		wirefmt.NewKind[smr.Message](66, func(w *wirefmt.Writer, m Prepare) { w.Uint(uint64(m.From)); w.Uint(uint64(m.Ballot)) },
			func(r *wirefmt.Reader) Prepare { return Prepare{smr.Incarnation(r.Uint()), Ballot(r.Uint())} }),
		wirefmt.NewKind[smr.Message](67, appendPromise, readPromise),
		wirefmt.NewKind[smr.Message](68, func(w *wirefmt.Writer, m Refusal) { w.Uint(uint64(m.From)); w.Uint(uint64(m.Promised)) },
			func(r *wirefmt.Reader) Refusal { return Refusal{smr.Incarnation(r.Uint()), Ballot(r.Uint())} }),
		wirefmt.NewKind[smr.Message](69, appendRevoke, readRevoke),
		wirefmt.NewKind[smr.Message](70, appendRevoked, readRevoked),
		wirefmt.NewKind[smr.Message](71, func(w *wirefmt.Writer, m Learned) { w.Uint(uint64(m.From)); appendClose(w, m.Close) },
			func(r *wirefmt.Reader) Learned { return Learned{smr.Incarnation(r.Uint()), readClose(r)} }),
		wirefmt.NewKind[smr.Message](72, func(w *wirefmt.Writer, m Want) { w.Uint(uint64(m.From)); w.Uint(uint64(m.After)); w.Bool(m.Blank) },
			func(r *wirefmt.Reader) Want { return Want{smr.Incarnation(r.Uint()), smr.Slot(r.Uint()), r.Bool()} }),
		wirefmt.NewKind[smr.Message](73, appendHistory, readHistory),
		wirefmt.NewKind[smr.Message](74, func(w *wirefmt.Writer, m Ask) { w.Uint(uint64(m.From)); w.Uint(m.Round) },
			func(r *wirefmt.Reader) Ask { return Ask{smr.Incarnation(r.Uint()), r.Uint()} }),
		wirefmt.NewKind[smr.Message](75, func(w *wirefmt.Writer, m Latest) { w.Uint(uint64(m.From)); w.Uint(m.Round); w.Uint(uint64(m.Slot)) },
			func(r *wirefmt.Reader) Latest { return Latest{smr.Incarnation(r.Uint()), r.Uint(), smr.Slot(r.Uint())} }),
		wirefmt.NewKind[smr.Message](76, func(w *wirefmt.Writer, m Lacking) { w.Uint(uint64(m.From)); w.Uint(m.Number) },
			func(r *wirefmt.Reader) Lacking { return Lacking{smr.Incarnation(r.Uint()), r.Uint()} }),
		wirefmt.NewKind[smr.Message](80, appendSubmit, readSubmit),
		wirefmt.NewKind[smr.Message](81, appendVote, readVote),
		wirefmt.NewKind[smr.Message](82, appendPlaced, readPlaced),
		wirefmt.NewKind[smr.Message](83, func(w *wirefmt.Writer, m Outcome) {
			w.Uint(uint64(m.Session))
			w.Uint(uint64(m.Slot))
			w.Bool(m.Committed)
		},
			func(r *wirefmt.Reader) Outcome { return Outcome{smr.SessionID(r.Uint()), smr.Slot(r.Uint()), r.Bool()} }),
		wirefmt.NewKind[smr.Message](84, appendOrdered, readOrdered),
		wirefmt.NewKind[smr.Message](85, func(w *wirefmt.Writer, m Probe) { w.Int(int64(m.Sent)); w.Uint(m.Generation) },
			func(r *wirefmt.Reader) Probe { return Probe{time.Duration(r.Int()), r.Uint()} }),
		wirefmt.NewKind[smr.Message](86, appendEcho, readEcho),
		wirefmt.NewKind[smr.Message](96, func(w *wirefmt.Writer, m OwnRecord) { w.Uint(m.First); appendItems(w, m.Items) },
			func(r *wirefmt.Reader) OwnRecord { return OwnRecord{r.Uint(), readItems(r)} }),
		wirefmt.NewKind[smr.Message](97, func(w *wirefmt.Writer, m LaneRecord) { w.Uint(uint64(m.Owner)); appendItems(w, m.Items) },
			func(r *wirefmt.Reader) LaneRecord { return LaneRecord{protocol.ID(r.Uint32()), readItems(r)} }),
		wirefmt.NewKind[smr.Message](98, func(w *wirefmt.Writer, m CloseRecord) { appendPart(w, m.Part) },
			func(r *wirefmt.Reader) CloseRecord { return CloseRecord{readPart(r)} }),
	)...)
}

func appendItem(w *wirefmt.Writer, i Item) {
	w.Uint(uint64(i.Slot))
	w.Uint(uint64(i.Answer))
	w.List(len(i.Entries))
	for _, e := range i.Entries {
		smr.AppendEntry(w, e)
	}
}

func readItem(r *wirefmt.Reader) Item {
	i := Item{Slot: smr.Slot(r.Uint()), Answer: protocol.ID(r.Uint32())}
	for range r.List(smr.MinEntryBytes) {
		if r.Err() != nil {
			return i
		}
		i.Entries = append(i.Entries, smr.ReadEntry(r))
	}
	return i
}

func appendItems(w *wirefmt.Writer, items []Item) {
	w.List(len(items))
	for _, i := range items {
		appendItem(w, i)
	}
}

func readItems(r *wirefmt.Reader) []Item {
	var items []Item
	for range r.List(3) {
		if r.Err() != nil {
			return nil
		}
		items = append(items, readItem(r))
	}
	return items
}

func appendClose(w *wirefmt.Writer, c Close) {
	w.Uint(uint64(c.Lane))
	w.Uint(uint64(c.Low))
	w.Uint(uint64(c.High))
	appendItems(w, c.Items)
}

func readClose(r *wirefmt.Reader) Close {
	return Close{Lane: Lane(r.Uint32()), Low: smr.Slot(r.Uint()), High: smr.Slot(r.Uint()), Items: readItems(r)}
}

func appendPart(w *wirefmt.Writer, p Part) {
	w.Uint(uint64(p.Ballot))
	appendClose(w, p.Close)
}

func readPart(r *wirefmt.Reader) Part { return Part{Ballot(r.Uint()), readClose(r)} }

func appendParts(w *wirefmt.Writer, parts []Part) {
	w.List(len(parts))
	for _, p := range parts {
		appendPart(w, p)
	}
}

func readParts(r *wirefmt.Reader) []Part {
	var parts []Part
	for range r.List(5) {
		if r.Err() != nil {
			return nil
		}
		parts = append(parts, readPart(r))
	}
	return parts
}

func appendEarlierNews(w *wirefmt.Writer, m News) {
	w.Uint(uint64(m.From))
	w.Uint(m.First)
	appendItems(w, m.Items)
	w.Uint(m.Base)
	w.Uint(uint64(m.Floor))
	w.Uint(m.Count)
	w.Uint(uint64(m.Closed))
	w.Uint(uint64(m.Skipped))
	w.Uint(uint64(m.Executed))
	w.List(len(m.Have))
	for _, h := range m.Have {
		w.Uint(uint64(h.Owner))
		w.Uint(h.Count)
		w.Uint(uint64(h.Revoked))
	}
	w.Uint(uint64(m.Promised))
	w.Uint(m.Accepted)
	w.Bool(m.Leads)
}

func appendNews(w *wirefmt.Writer, m News) {
	appendEarlierNews(w, m)
	w.List(len(m.Names))
	for _, n := range m.Names {
		w.Uint(n.Index)
		w.Uint(uint64(n.Sum))
		w.List(len(n.Lengths))
		for _, l := range n.Lengths {
			w.Uint(l)
		}
	}
}

func readEarlierNews(r *wirefmt.Reader) News {
	m := News{From: smr.Incarnation(r.Uint()), First: r.Uint(), Items: readItems(r), Base: r.Uint(), Floor: smr.Slot(r.Uint())}
	m.Claims = Claims{r.Uint(), smr.Slot(r.Uint()), smr.Slot(r.Uint())}
	m.Executed = smr.Slot(r.Uint())
	for range r.List(3) {
		m.Have = append(m.Have, Have{protocol.ID(r.Uint32()), r.Uint(), smr.Slot(r.Uint())})
	}
	m.Promised, m.Accepted, m.Leads = Ballot(r.Uint()), r.Uint(), r.Bool()
	return m
}

func readNews(r *wirefmt.Reader) News {
	m := readEarlierNews(r)
	for range r.List(3) {
		n := Name{Index: r.Uint(), Sum: r.Uint32()}
		for range r.List(1) {
			n.Lengths = append(n.Lengths, r.Uint())
		}
		if r.Err() != nil {
			return m
		}
		m.Names = append(m.Names, n)
	}
	return m
}

func appendAccept(w *wirefmt.Writer, m Accept) {
	w.Uint(uint64(m.From))
	w.Uint(uint64(m.Ballot))
	w.Uint(m.Generation)
	w.Uint(m.Base)
	w.Uint(uint64(m.Floor))
	w.Uint(m.First)
	w.List(len(m.Closes))
	for _, c := range m.Closes {
		appendClose(w, c)
	}
}

func readAccept(r *wirefmt.Reader) Accept {
	m := Accept{From: smr.Incarnation(r.Uint()), Ballot: Ballot(r.Uint()), Generation: r.Uint(), Base: r.Uint()}
	m.Floor, m.First = smr.Slot(r.Uint()), r.Uint()
	for range r.List(4) {
		if r.Err() != nil {
			break
		}
		m.Closes = append(m.Closes, readClose(r))
	}
	return m
}

func appendPromise(w *wirefmt.Writer, m Promise) {
	w.Uint(uint64(m.From))
	w.Uint(uint64(m.Ballot))
	w.Uint(uint64(m.Executed))
	w.Uint(m.Number)
	w.Uint(m.Count)
	appendParts(w, m.Parts)
}

func readPromise(r *wirefmt.Reader) Promise {
	return Promise{smr.Incarnation(r.Uint()), Ballot(r.Uint()), smr.Slot(r.Uint()), r.Uint(), r.Uint(), readParts(r)}
}

func appendRevoke(w *wirefmt.Writer, m Revoke) {
	w.Uint(uint64(m.From))
	w.Uint(uint64(m.Ballot))
	w.Uint(uint64(m.Lane))
	w.Uint(uint64(m.High))
}

func readRevoke(r *wirefmt.Reader) Revoke {
	return Revoke{smr.Incarnation(r.Uint()), Ballot(r.Uint()), Lane(r.Uint32()), smr.Slot(r.Uint())}
}

func appendRevoked(w *wirefmt.Writer, m Revoked) {
	w.Uint(uint64(m.From))
	w.Uint(uint64(m.Ballot))
	w.Uint(uint64(m.Lane))
	w.Uint(uint64(m.Asked))
	w.Uint(uint64(m.High))
	w.Uint(uint64(m.Executed))
	appendItems(w, m.Items)
}

func readRevoked(r *wirefmt.Reader) Revoked {
	return Revoked{
		smr.Incarnation(r.Uint()), Ballot(r.Uint()), Lane(r.Uint32()), smr.Slot(r.Uint()), smr.Slot(r.Uint()), smr.Slot(r.Uint()), readItems(r),
	}
}

func appendHistory(w *wirefmt.Writer, m History) {
	w.Uint(uint64(m.From))
	w.Uint(uint64(m.Low))
	w.Uint(uint64(m.High))
	w.Uint(uint64(m.Executed))
	appendItems(w, m.Items)
}

func readHistory(r *wirefmt.Reader) History {
	return History{smr.Incarnation(r.Uint()), smr.Slot(r.Uint()), smr.Slot(r.Uint()), smr.Slot(r.Uint()), readItems(r)}
}

func appendSubmit(w *wirefmt.Writer, m Submit) {
	smr.AppendRequest(w, m.Request)
	w.Uint(uint64(m.Slot))
	w.Uint(uint64(m.Answer))
	w.Uint(uint64(m.After))
	w.List(len(m.Acks))
	for _, a := range m.Acks {
		w.Buf = append(w.Buf, byte(a))
	}
}

func readSubmit(r *wirefmt.Reader) Submit {
	m := Submit{Request: smr.TakeRequest(r), Slot: smr.Slot(r.Uint()), Answer: protocol.ID(r.Uint32()), After: smr.Slot(r.Uint())}
	for range r.List(1) {
		a := smr.Ack(r.Byte())
		if a > smr.AckExecuted {
			r.Failf("%d is no kind of acknowledgement", a)
		}
		m.Acks = append(m.Acks, a)
	}
	if r.Err() == nil && len(m.Acks) != len(m.Commands) {
		r.Failf("%d kinds of acknowledgements for %d commands", len(m.Acks), len(m.Commands))
	}
	return m
}

func appendVote(w *wirefmt.Writer, m Vote) {
	w.Uint(uint64(m.Session))
	w.Uint(uint64(m.Slot))
	w.Uint(uint64(m.Members))
	w.Buf = append(w.Buf, byte(m.Verdict))
	w.Int(int64(m.Late))
}

func readVote(r *wirefmt.Reader) Vote {
	m := Vote{Session: smr.SessionID(r.Uint()), Slot: smr.Slot(r.Uint()), Members: r.Uint32(), Verdict: Verdict(r.Byte()), Late: time.Duration(r.Int())}
	if m.Verdict < Yes || m.Verdict > Full {
		r.Failf("%d is no verdict", m.Verdict)
	}
	return m
}

func appendPlaced(w *wirefmt.Writer, m Placed) {
	w.Uint(uint64(m.Session))
	w.Uint(uint64(m.Slot))
	w.Uint(uint64(m.Members))
	w.Bool(m.Whole)
	appendSeqs(w, m.Seqs)
}

func readPlaced(r *wirefmt.Reader) Placed {
	return Placed{smr.SessionID(r.Uint()), smr.Slot(r.Uint()), r.Uint32(), r.Bool(), readSeqs(r)}
}

func appendSeqs(w *wirefmt.Writer, seqs []smr.Seq) {
	w.List(len(seqs))
	for _, q := range seqs {
		w.Uint(uint64(q))
	}
}

func readSeqs(r *wirefmt.Reader) []smr.Seq {
	var seqs []smr.Seq
	for range r.List(1) {
		seqs = append(seqs, smr.Seq(r.Uint()))
	}
	return seqs
}

func appendOrdered(w *wirefmt.Writer, m Ordered) {
	w.Uint(uint64(m.Session))
	w.Uint(uint64(m.Slot))
	appendSeqs(w, m.Seqs)
}

func readOrdered(r *wirefmt.Reader) Ordered {
	return Ordered{smr.SessionID(r.Uint()), smr.Slot(r.Uint()), readSeqs(r)}
}

func appendEcho(w *wirefmt.Writer, m Echo) {
	w.Int(int64(m.Sent))
	w.Int(int64(m.Now))
	w.List(len(m.Delays))
	for _, d := range m.Delays {
		w.Uint(uint64(d.ID))
		w.Int(int64(d.Round))
	}
	w.Uint(uint64(m.Leader))
	w.Uint(m.Generation)
	w.List(len(m.Members))
	for _, o := range m.Members {
		w.Uint(uint64(o.ID))
		w.String(o.Address)
	}
}

func readEcho(r *wirefmt.Reader) Echo {
	m := Echo{Sent: time.Duration(r.Int()), Now: time.Duration(r.Int())}
	for range r.List(2) {
		m.Delays = append(m.Delays, Delay{protocol.ID(r.Uint32()), time.Duration(r.Int())})
	}
	m.Leader, m.Generation = protocol.ID(r.Uint32()), r.Uint()
	for range r.List(2) {
		m.Members = append(m.Members, smr.Member{ID: protocol.ID(r.Uint32()), Address: r.String()})
	}
	return m
}

// maxSlot bounds the slots that are taken from others: sums of slots and durations do not overflow.
const maxSlot = smr.Slot(math.MaxInt64 / 4)
