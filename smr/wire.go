package smr

import (
	"github.com/foresay/foresay/internal/wirefmt"
)

func appendRequest(w *wirefmt.Writer, m Request) {
	w.Uint(uint64(m.Session))
	w.Uint(uint64(m.Acked))
	w.Uint(uint64(m.After))
	w.List(len(m.Commands))
	for _, c := range m.Commands {
		w.Uint(uint64(c.Seq))
		w.Bool(c.Brief)
		w.Bool(c.Early)
		w.Shared(c.Command)
	}
}

func readRequest(r *wirefmt.Reader) Request {
	m := Request{Session: SessionID(r.Uint()), Acked: Seq(r.Uint()), After: Slot(r.Uint())}
	m.Commands = make([]RequestedCommand, r.List(4))
	for i := range m.Commands {
		m.Commands[i] = RequestedCommand{Seq: Seq(r.Uint()), Brief: r.Bool(), Early: r.Bool(), Command: r.Bytes()}
	}
	return m
}

func appendChangeRequest(w *wirefmt.Writer, m ChangeRequest) {
	w.Uint(uint64(m.Session))
	w.Uint(uint64(m.Acked))
	w.Uint(uint64(m.Seq))
	appendChange(w, m.Change)
}

func readChangeRequest(r *wirefmt.Reader) ChangeRequest {
	return ChangeRequest{Session: SessionID(r.Uint()), Acked: Seq(r.Uint()), Seq: Seq(r.Uint()), Change: readChange(r)}
}

func appendReadRequest(w *wirefmt.Writer, m ReadRequest) {
	w.List(len(m.Queries))
	for _, q := range m.Queries {
		w.Uint(q.ID)
		w.Bytes(q.Body)
	}
}

func readReadRequest(r *wirefmt.Reader) ReadRequest {
	m := ReadRequest{Queries: make([]Query, r.List(2))}
	for i := range m.Queries {
		m.Queries[i] = Query{ID: r.Uint(), Body: r.Bytes()}
	}
	return m
}

func appendReplies(w *wirefmt.Writer, m Replies) {
	w.Uint(uint64(m.Session))
	w.List(len(m.Items))
	for _, i := range m.Items {
		w.Uint(uint64(i.Seq))
		w.Buf = append(w.Buf, byte(i.Outcome))
		w.Uint(uint64(i.Slot))
		w.Bytes(i.Result)
		if i.Outcome != Committed {
			w.String(i.Reason)
			w.Bool(i.Gone)
		}
	}
}

func readReplies(r *wirefmt.Reader) Replies {
	m := Replies{Session: SessionID(r.Uint())}
	m.Items = make([]CommandReply, r.List(4))
	for n := range m.Items {
		i := CommandReply{Seq: Seq(r.Uint()), Outcome: readOutcome(r), Slot: Slot(r.Uint()), Result: r.Bytes()}
		if i.Outcome != Committed {
			i.Reason, i.Gone = r.String(), r.Bool()
		}
		m.Items[n] = i
	}
	return m
}

func readOutcome(r *wirefmt.Reader) Outcome {
	o := Outcome(r.Byte())
	if o < Committed || o > Unknown {
		r.Failf("%d is no outcome", o)
	}
	return o
}

func appendOpenReply(w *wirefmt.Writer, m OpenReply) {
	w.Uint(uint64(m.Nonce))
	w.Uint(uint64(m.Session))
	w.Uint(uint64(m.Window))
}

func readOpenReply(r *wirefmt.Reader) OpenReply {
	return OpenReply{Nonce: Seq(r.Uint()), Session: SessionID(r.Uint()), Window: Seq(r.Uint())}
}

func appendReadReplies(w *wirefmt.Writer, m ReadReplies) {
	w.List(len(m.Items))
	for _, i := range m.Items {
		w.Uint(i.ID)
		w.Bytes(i.Result)
		w.String(i.Reason)
	}
}

func readReadReplies(r *wirefmt.Reader) ReadReplies {
	m := ReadReplies{Items: make([]ReadReply, r.List(3))}
	for i := range m.Items {
		m.Items[i] = ReadReply{ID: r.Uint(), Result: r.Bytes(), Reason: r.String()}
	}
	return m
}

func appendBusy(w *wirefmt.Writer, m Busy) {
	w.Uint(uint64(m.Session))
	w.List(len(m.Seqs))
	for _, q := range m.Seqs {
		w.Uint(uint64(q))
	}
	w.List(len(m.Queries))
	for _, q := range m.Queries {
		w.Uint(q)
	}
	w.Bool(m.Open)
}

func readBusy(r *wirefmt.Reader) Busy {
	m := Busy{Session: SessionID(r.Uint())}
	for range r.List(1) {
		m.Seqs = append(m.Seqs, Seq(r.Uint()))
	}
	for range r.List(1) {
		m.Queries = append(m.Queries, r.Uint())
	}
	m.Open = r.Bool()
	return m
}

func appendNotYet(w *wirefmt.Writer, m NotYet) {
	w.Uint(uint64(m.Session))
	w.Uint(uint64(m.Seq))
	w.String(m.Reason)
}

func readNotYet(r *wirefmt.Reader) NotYet {
	return NotYet{Session: SessionID(r.Uint()), Seq: Seq(r.Uint()), Reason: r.String()}
}

func appendChunk(w *wirefmt.Writer, m SnapshotChunk) {
	w.Uint(uint64(m.From))
	w.Uint(uint64(m.Slot))
	w.Uint(m.Size)
	w.Uint(uint64(m.Sum))
	w.Uint(m.Offset)
	w.Shared(m.Data)
}

func readChunk(r *wirefmt.Reader) SnapshotChunk {
	return SnapshotChunk{
		From: Incarnation(r.Uint()), Slot: Slot(r.Uint()), Size: r.Uint(), Sum: r.Uint32(), Offset: r.Uint(), Data: r.Bytes(),
	}
}

func appendWanted(w *wirefmt.Writer, m SnapshotWanted) {
	w.Uint(uint64(m.From))
	w.Uint(uint64(m.Slot))
	w.Uint(uint64(m.Sum))
	w.Uint(m.Offset)
}

func readWanted(r *wirefmt.Reader) SnapshotWanted {
	return SnapshotWanted{From: Incarnation(r.Uint()), Slot: Slot(r.Uint()), Sum: r.Uint32(), Offset: r.Uint()}
}

func appendEarlierHello(w *wirefmt.Writer, m Hello) {
	w.Uint(uint64(m.From))
	w.Bool(m.Join)
}

func readEarlierHello(r *wirefmt.Reader) Hello {
	return Hello{From: Incarnation(r.Uint()), Join: r.Bool()}
}

func appendHello(w *wirefmt.Writer, m Hello) {
	appendEarlierHello(w, m)
	appendMark(w, m.Mark)
	w.Bool(m.Ask)
}

func readHello(r *wirefmt.Reader) Hello {
	m := readEarlierHello(r)
	m.Mark, m.Ask = readMark(r), r.Bool()
	return m
}

func appendMark(w *wirefmt.Writer, m DiskMark) {
	w.Uint(m.Next)
	w.Uint(m.Start)
}

func readMark(r *wirefmt.Reader) DiskMark { return DiskMark{r.Uint(), r.Uint()} }

func appendEarlierWelcome(w *wirefmt.Writer, m Welcome) {
	w.Uint(uint64(m.From))
	w.Uint(uint64(m.Asked))
	w.Uint(uint64(m.Known))
	w.String(m.Reason)
	w.List(len(m.Members))
	for _, o := range m.Members {
		appendMember(w, o)
	}
}

func readEarlierWelcome(r *wirefmt.Reader) Welcome {
	m := Welcome{From: Incarnation(r.Uint()), Asked: Incarnation(r.Uint()), Known: Incarnation(r.Uint()), Reason: r.String()}
	for range r.List(2) {
		m.Members = append(m.Members, readMember(r))
	}
	return m
}

func appendWelcome(w *wirefmt.Writer, m Welcome) {
	appendEarlierWelcome(w, m)
	appendMark(w, m.Mark)
}

func readWelcome(r *wirefmt.Reader) Welcome {
	m := readEarlierWelcome(r)
	m.Mark = readMark(r)
	return m
}
