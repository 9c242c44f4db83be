package history

import (
	"math"
	"math/rand/v2"
	"slices"
)

// spsiModel is a store under speculative snapshot isolation that knows everything: one step happens
// after the other, and each looks at all that happened before.
type spsiModel struct {
	r          *rand.Rand
	byBounds   bool // hold reads by OLC and FFC, else by the conflicts that are there
	keys       []string
	events     map[string]Event
	clocks     map[string]Timestamp // how far each node's is off
	now        Timestamp
	executions []Execution[TxnID]
	waits      []bool // by execution: its session waits for it
	sessions   []int  // which execution each session ran last, or -1
}

type spsiConfig struct {
	seed           uint64
	keys, sessions int
	executions     int
}

var spsiNodes = []string{"n0", "n1", "n2"}

// simulateSpeculation returns a history without a fault.
func simulateSpeculation(c spsiConfig) Speculation[TxnID] {
	r := rand.New(rand.NewPCG(c.seed, 1))
	m := &spsiModel{
		r: r, byBounds: r.IntN(2) == 0, events: make(map[string]Event), clocks: make(map[string]Timestamp), now: 100,
	}
	for i := range c.keys {
		m.keys = append(m.keys, string(rune('a'+i%26))+string(rune('0'+i/26)))
	}
	for _, node := range spsiNodes {
		m.clocks[node] = Timestamp(r.IntN(20))
	}
	for range c.sessions {
		m.sessions = append(m.sessions, -1)
	}
	for len(m.executions) < c.executions {
		m.now += Timestamp(r.IntN(3))
		if r.IntN(10) > 0 {
			m.act(r.IntN(len(m.sessions)))
		} else if i := r.IntN(len(m.executions) + 1); i < len(m.executions) {
			// Old ones are settled, so that most commit.
			for j := max(0, i-c.sessions); j <= i; j++ {
				m.settle(j)
			}
		}
	}
	return Speculation[TxnID]{m.executions}
}

func (m *spsiModel) event(node string) Event {
	m.events[node] += Event(1 + m.r.IntN(2))
	return m.events[node]
}

func (m *spsiModel) ended(x *Execution[TxnID]) bool { return x.Final.Event != 0 || x.Aborted != 0 }

// act lets a session begin an execution, read, or commit.
func (m *spsiModel) act(session int) {
	last := m.sessions[session]
	switch {
	case last < 0 || !m.waits[last]:
		m.begin(session)
	case m.executions[last].Local.Event != 0:
		if m.r.IntN(200) == 0 {
			m.waits[last] = false // it gives up
		}
	case m.r.IntN(6) > 0:
		m.read(last)
	default:
		m.localCommit(last)
	}
}

func (m *spsiModel) begin(session int) {
	node := spsiNodes[session%len(spsiNodes)]
	x := Execution[TxnID]{ID: TxnID(len(m.executions)), Node: node, Session: Client(session)}
	x.Snapshot = m.now + m.clocks[node]
	var flow []TxnID
	for _, y := range m.executions {
		if y.Session != x.Session {
			continue
		}
		for _, commit := range []Commit{y.Local, y.Final} {
			if commit.Told != 0 {
				x.Snapshot = max(x.Snapshot, commit.Timestamp)
			}
		}
		if y.Local.Told != 0 && !m.ended(&y) {
			flow = append(flow, y.ID)
		}
	}
	if n := len(flow); n > 0 && m.r.IntN(2) == 0 {
		flow = flow[n-1:]
	}
	x.Begin, x.Flow = m.event(node), flow
	for _, key := range m.keys {
		if m.r.IntN(len(m.keys)) < 2 {
			x.Writes = append(x.Writes, key)
		}
	}
	m.r.Shuffle(len(x.Writes), func(i, j int) { x.Writes[i], x.Writes[j] = x.Writes[j], x.Writes[i] })
	m.sessions[session] = len(m.executions)
	m.executions, m.waits = append(m.executions, x), append(m.waits, true)
}

// exposed reports whether a node's executions may read what x wrote, though it is not final.
func (m *spsiModel) exposed(x *Execution[TxnID], node string) bool {
	return x.Node == node && x.Local.Event != 0 && !m.ended(x)
}

func (m *spsiModel) read(i int) {
	x := &m.executions[i]
	r := SnapshotRead[TxnID]{Key: m.keys[m.r.IntN(len(m.keys))], Event: m.event(x.Node), Timestamp: math.MinInt64}
	if slices.Contains(x.Writes, r.Key) && m.r.IntN(2) == 0 {
		return // it might be its own
	}
	for j := range m.executions {
		w := &m.executions[j]
		state, timestamp := FinalCommitted, w.Final.Timestamp
		if m.exposed(w, x.Node) {
			state, timestamp = LocalCommitted, w.Local.Timestamp
		} else if w.Final.Event == 0 {
			continue
		}
		if slices.Contains(w.Writes, r.Key) && timestamp <= x.Snapshot && timestamp > r.Timestamp {
			r.State, r.Writer, r.Timestamp = state, w.ID, timestamp
		}
	}
	if r.State == Unwritten {
		r.Timestamp = 0
	}
	snapshot := make(map[TxnID]bool)
	for _, other := range append(slices.Clone(x.Reads), r) {
		m.closure(other, snapshot)
	}
	oldest, freshest := Timestamp(math.MaxInt64), Timestamp(0)
	conflict := false
	for a := range snapshot {
		A := &m.executions[a]
		if A.Final.Event == 0 {
			oldest = min(oldest, A.Snapshot)
		} else {
			freshest = max(freshest, A.Final.Timestamp)
		}
		for b := range snapshot {
			conflict = conflict || a < b && m.conflict(A, &m.executions[b])
		}
	}
	r.Held = conflict
	if m.byBounds {
		r.OLC, r.FFC, r.Held = oldest, freshest, oldest < freshest
	}
	if r.State == LocalCommitted && !slices.Contains(x.Data, r.Writer) {
		x.Data = append(x.Data, r.Writer)
	}
	x.Reads = append(x.Reads, r)
	if r.Held {
		m.abort(i)
	}
}

// closure adds what a read brings into a snapshot.
func (m *spsiModel) closure(r SnapshotRead[TxnID], to map[TxnID]bool) {
	if r.State == Unwritten || r.Held || to[r.Writer] {
		return
	}
	to[r.Writer] = true
	for _, other := range m.executions[r.Writer].Reads {
		m.closure(other, to)
	}
}

func (m *spsiModel) conflict(a, b *Execution[TxnID]) bool {
	end := func(x *Execution[TxnID]) Timestamp { return max(x.Local.Timestamp, x.Final.Timestamp) }
	return a.Snapshot < end(b) && b.Snapshot < end(a) && shareKey(a, b)
}

// above returns the least timestamp of a commit that no reader should have seen already.
func (m *spsiModel) above(x *Execution[TxnID], node string) Timestamp {
	least := x.Snapshot
	if len(x.Writes) > 0 {
		least += Timestamp(1 + m.r.IntN(2))
	}
	for i := range m.executions {
		reader := &m.executions[i]
		if node != "" && reader.Node != node || reader.ID == x.ID {
			continue
		}
		for _, r := range reader.Reads {
			shown := reader.Node == x.Node && x.Local.Event != 0 && x.Local.Event < r.Event
			if !shown && slices.Contains(x.Writes, r.Key) {
				least = max(least, reader.Snapshot+1)
			}
		}
	}
	return least
}

func (m *spsiModel) localCommit(i int) {
	x := &m.executions[i]
	for j := range m.executions {
		w := &m.executions[j]
		if i == j || !shareKey(w, x) {
			continue
		}
		switch {
		case w.Final.Timestamp > x.Snapshot, m.exposed(w, x.Node) && w.Local.Timestamp > x.Snapshot:
			m.abort(i)
			return
		case m.exposed(w, x.Node):
			x.Stack = append(x.Stack, w.ID)
		}
	}
	timestamp := m.above(x, x.Node)
	x.Local = Commit{Event: m.event(x.Node), Timestamp: timestamp}
	if m.r.IntN(4) > 0 {
		x.Local.Told = x.Local.Event
		m.waits[i] = false
	}
}

// settle makes an execution final, or aborts it, if it has local-committed and depends on nothing
// that is open.
func (m *spsiModel) settle(i int) {
	x := &m.executions[i]
	if x.Local.Event == 0 || m.ended(x) {
		return
	}
	for _, d := range slices.Concat(x.Data, x.Stack, x.Flow) {
		if m.executions[d].Final.Event == 0 {
			return
		}
	}
	for j := range m.executions {
		if w := &m.executions[j]; w.Final.Timestamp > x.Snapshot && shareKey(w, x) {
			m.abort(i)
			return
		}
	}
	if m.r.IntN(6) == 0 {
		m.abort(i)
		return
	}
	timestamp := max(x.Local.Timestamp, m.above(x, ""))
	early := m.r.IntN(2) == 0
	late := func() {
		for j := range m.executions {
			y := &m.executions[j]
			if y.Snapshot < timestamp && slices.Contains(slices.Concat(y.Data, y.Stack), x.ID) {
				m.abort(j)
			}
		}
	}
	if early {
		late()
	}
	x.Final = Commit{Event: m.event(x.Node), Timestamp: timestamp}
	if !early {
		late()
	}
	if m.waits[i] || x.Local.Told != 0 {
		x.Final.Told = x.Final.Event
	}
	m.waits[i] = false
}

// abort aborts an execution and those that depend on it.
func (m *spsiModel) abort(i int) {
	x := &m.executions[i]
	if m.ended(x) {
		return
	}
	x.Aborted, m.waits[i] = m.event(x.Node), false
	for j := range m.executions {
		y := &m.executions[j]
		if slices.Contains(slices.Concat(y.Data, y.Stack, y.Flow), x.ID) {
			m.abort(j)
		}
	}
}
