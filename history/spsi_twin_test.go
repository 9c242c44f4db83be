package history

import (
	"slices"
)

// spsiTwin checks the rules of speculative snapshot isolation one by one, as they are written.
type spsiTwin struct {
	executions []Execution[TxnID]
	broken     map[SpeculationRule]bool
}

func brokenBy(h Speculation[TxnID]) map[SpeculationRule]bool {
	s := spsiTwin{h.Executions, make(map[SpeculationRule]bool)}
	for i := range s.executions {
		x := &s.executions[i]
		for j := range x.Reads {
			s.read(x, &x.Reads[j])
			s.conflicts(x, j)
		}
		s.atomicity(x)
		for j := range s.executions {
			y := &s.executions[j]
			if i != j {
				s.dependency(x, y)
				s.session(x, y)
			}
			if i < j && x.Final.Event != 0 && y.Final.Event != 0 && x.Snapshot < y.Final.Timestamp &&
				y.Snapshot < x.Final.Timestamp && shareKey(x, y) {
				s.broken[FirstCommitterWins] = true
			}
		}
		least := x.Snapshot
		if len(x.Writes) > 0 {
			least++
		}
		for _, commit := range []Commit{x.Local, x.Final} {
			if commit.Event != 0 {
				if commit.Timestamp < least {
					s.broken[TimestampOrder] = true
				}
				least = max(least, commit.Timestamp)
			}
		}
	}
	return s.broken
}

func shareKey(x, y *Execution[TxnID]) bool {
	return slices.ContainsFunc(x.Writes, func(key string) bool { return slices.Contains(y.Writes, key) })
}

// find returns the execution of a name: those of the model are named by their places.
func (s *spsiTwin) find(id TxnID) *Execution[TxnID] { return &s.executions[id] }

// version returns what a version of w's is to a reader at an event, or false if it is none.
func (s *spsiTwin) version(w, x *Execution[TxnID], at Event) (VersionState, Timestamp, bool) {
	end := max(w.Final.Event, w.Aborted)
	if w.Node == x.Node && w.Local.Event != 0 && w.Local.Event < at && (end == 0 || at < end) {
		return LocalCommitted, w.Local.Timestamp, w.Local.Timestamp <= x.Snapshot
	}
	return FinalCommitted, w.Final.Timestamp, w.Final.Event != 0 && w.Final.Timestamp <= x.Snapshot
}

func (s *spsiTwin) read(x *Execution[TxnID], r *SnapshotRead[TxnID]) {
	if !r.Held && r.OLC < r.FFC {
		s.broken[BoundedSnapshot] = true
	}
	if r.State != Unwritten {
		w := s.find(r.Writer)
		if w.Node != x.Node && (r.State == LocalCommitted || w.Final.Event == 0) {
			s.broken[LocalSpeculation] = true
			return
		}
		state, timestamp, ok := s.version(w, x, r.Event)
		early := state == FinalCommitted && w.Node == x.Node && w.Final.Event > r.Event
		if !ok || early || state != r.State || timestamp != r.Timestamp || !slices.Contains(w.Writes, r.Key) {
			s.broken[Visibility] = true
			return
		}
	}
	for j := range s.executions {
		w := &s.executions[j]
		state, timestamp, ok := s.version(w, x, r.Event)
		switch {
		case state == FinalCommitted:
			ok = ok && (w.Node == x.Node || r.State != LocalCommitted || s.find(r.Writer).Final.Event != 0)
		case w.Bound != 0 && w.Bound < x.Snapshot, w.Hidden != 0 && w.Hidden <= r.Event:
			ok = false
		}
		if ok && w != x && slices.Contains(w.Writes, r.Key) && (r.State == Unwritten || timestamp > r.Timestamp) {
			s.broken[Visibility] = true
		}
	}
}

func (s *spsiTwin) atomicity(x *Execution[TxnID]) {
	for _, seen := range x.Reads {
		for _, old := range x.Reads {
			if seen.Held || old.Held || seen.State == Unwritten ||
				!slices.Contains(s.find(seen.Writer).Writes, old.Key) {
				continue
			}
			if old.State == Unwritten || old.Writer != seen.Writer && old.Timestamp < seen.Timestamp {
				s.broken[AtomicSnapshot] = true
			}
		}
	}
}

// closure adds what reads bring into a snapshot.
func (s *spsiTwin) closure(reads []SnapshotRead[TxnID], to map[TxnID]bool) {
	for _, r := range reads {
		if r.State != Unwritten && !r.Held && !to[r.Writer] {
			to[r.Writer] = true
			s.closure(s.find(r.Writer).Reads, to)
		}
	}
}

// conflicts looks at the snapshot as of the read of a number, and not only of the last.
func (s *spsiTwin) conflicts(x *Execution[TxnID], read int) {
	if x.Reads[read].Held {
		return
	}
	snapshot := make(map[TxnID]bool)
	s.closure(x.Reads[:read+1], snapshot)
	at := x.Reads[read].Event
	end := func(y *Execution[TxnID]) Timestamp {
		if y.Final.Event != 0 && (y.Node != x.Node || y.Final.Event < at) {
			return y.Final.Timestamp
		}
		return y.Local.Timestamp
	}
	for a := range snapshot {
		for b := range snapshot {
			a, b := s.find(a), s.find(b)
			if a != b && a.Final.Event == 0 && a.Snapshot < end(b) && b.Snapshot < end(a) &&
				shareKey(a, b) {
				s.broken[ConflictFreeSnapshot] = true
			}
		}
	}
}

// dependency judges x by y if it depends on it.
func (s *spsiTwin) dependency(x, y *Execution[TxnID]) {
	same := x.Node == y.Node
	read := slices.ContainsFunc(x.Reads, func(r SnapshotRead[TxnID]) bool {
		return r.State == LocalCommitted && r.Writer == y.ID
	})
	if read && !slices.Contains(x.Data, y.ID) {
		s.broken[SettledDependencies] = true
	}
	told := same && x.Session == y.Session && y.Local.Told != 0 && y.Local.Told < x.Begin &&
		(y.Final.Event == 0 || y.Final.Event > x.Begin)
	flow := (told || slices.Contains(x.Flow, y.ID)) && !(same && y.Aborted != 0 && y.Aborted < x.Begin)
	bound := read || slices.Contains(x.Data, y.ID) || slices.Contains(x.Stack, y.ID)
	if !flow && !bound {
		return
	}
	late := bound && y.Final.Timestamp > x.Snapshot
	if x.Final.Event != 0 && (y.Final.Event == 0 || late || same && y.Final.Event > x.Final.Event) {
		s.broken[SettledDependencies] = true
	}
	lost := y.Aborted
	if late {
		lost = max(lost, y.Final.Event)
	}
	if !same || lost == 0 {
		return
	}
	if x.Final.Event == 0 && x.Aborted == 0 || x.Begin > lost || x.Local.Event > lost {
		s.broken[CascadingAbort] = true
	}
	for _, r := range x.Reads {
		if r.Event > lost {
			s.broken[CascadingAbort] = true
		}
	}
}

func (s *spsiTwin) session(x, y *Execution[TxnID]) {
	if x.Node != y.Node || x.Session != y.Session {
		return
	}
	for _, commit := range []Commit{y.Local, y.Final} {
		if commit.Told != 0 && commit.Told < x.Begin && commit.Timestamp > x.Snapshot {
			s.broken[SessionOrder] = true
		}
	}
}
