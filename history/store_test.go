package history

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"time"
)

// storeConfig describes a small multi-version store and the clients that use it.
type storeConfig struct {
	seed          uint64
	txns          int
	clients, keys int
	level         Level // StrictSerializable or StrongSnapshotIsolation
	lists         bool
	unknown       float64 // how many answers are lost
	bug           storeBug
}

// storeBug is what a wrong store does, now and then.
type storeBug int

const (
	noBug       storeBug = iota
	dirtyRead            // reads see what a running transaction wrote
	staleRead            // transactions that only read see an old snapshot
	lostUpdate           // nobody looks for conflicts
	nonAtomic            // a commit's later keys are installed after others have begun
	halfCommit           // a commit's last key is never installed
	dirtyAbort           // an aborted transaction's writes stay
	retriedList          // an append is done twice
	reordered            // two versions change places in the record
)

// simulate runs clients on a reference store that is correct by construction: transactions read a
// snapshot of when they began, and commit one at a time, unless somebody changed a key that they
// wrote (snapshot isolation) or any key that they accessed (strict serializability) meanwhile.
func simulate(c storeConfig) Transactions {
	s := &refStore{
		storeConfig: c, rand: rand.New(rand.NewPCG(c.seed, 1)), versions: make(map[string][]refVersion),
		running: make([]*refTxn, c.clients),
	}
	for s.begun < c.txns || slices.ContainsFunc(s.running, func(t *refTxn) bool { return t != nil }) {
		s.now += time.Duration(1+s.rand.IntN(3)) * time.Millisecond
		s.step(s.rand.IntN(c.clients))
	}
	s.installLate()
	if !c.lists {
		for _, key := range slices.Sorted(maps.Keys(s.versions)) {
			var values []string
			for _, v := range s.versions[key] {
				values = append(values, v.value)
			}
			if n := len(values); c.bug == reordered && n > 1 {
				values[n-1], values[n-2] = values[n-2], values[n-1]
			}
			s.recorder.Versions(key, values)
		}
	}
	h, err := s.recorder.Transactions()
	if err != nil {
		panic(err)
	}
	return h
}

type refVersion struct {
	value string
	at    int // the commit that made it
}

type refTxn struct {
	log      TxnLog
	id       TxnID
	snapshot int // for conflicts
	from     int // for reads
	left     int // accesses to make
	readOnly bool
	read     []string
	wrote    map[string][]string // by key, in order
}

type refStore struct {
	storeConfig
	rand     *rand.Rand
	now      time.Duration
	commits  int
	begun    int
	versions map[string][]refVersion
	running  []*refTxn // by client
	recorder TxnRecorder
	late     []lateVersion
}

type lateVersion struct {
	key     string
	version refVersion
}

// now and then a wrong store does what it should not.
func (s *refStore) sometimes(bug storeBug) bool {
	return s.bug == bug && s.rand.IntN(4) == 0
}

// installLate installs what a commit left out.
func (s *refStore) installLate() {
	if len(s.late) > 0 {
		s.commits++
	}
	for _, l := range s.late {
		l.version.at = s.commits
		s.versions[l.key] = append(s.versions[l.key], l.version)
	}
	s.late = nil
}

func (s *refStore) step(client int) {
	if len(s.late) > 0 && s.rand.IntN(200) == 0 {
		s.installLate()
	}
	t := s.running[client]
	switch {
	case t == nil && s.begun < s.txns:
		s.begun++
		id := TxnID(s.begun)
		s.running[client] = &refTxn{
			log: s.recorder.Begin(id, Client(client), s.now), id: id,
			snapshot: s.commits, from: s.commits, left: 1 + s.rand.IntN(6), wrote: make(map[string][]string),
		}
		if s.sometimes(staleRead) {
			s.running[client].readOnly, s.running[client].from = true, max(0, s.commits-10)
		}
	case t == nil:
	case t.left > 0:
		t.left--
		s.access(t)
	default:
		s.running[client] = nil
		s.end(t)
	}
}

func (s *refStore) access(t *refTxn) {
	key := fmt.Sprintf("k%d", s.rand.IntN(s.keys))
	if s.rand.IntN(2) == 0 && !t.readOnly {
		value := fmt.Sprintf("%d.%d", t.id, t.left)
		t.wrote[key] = append(t.wrote[key], value)
		if s.lists {
			t.log.Append(key, value)
		} else {
			t.log.Write(key, value)
		}
		return
	}
	t.read = append(t.read, key)
	seen := s.snapshot(key, t.from)
	if s.sometimes(dirtyRead) {
		for _, other := range s.running {
			if other != nil && other != t {
				seen = append(seen, other.wrote[key]...)
			}
		}
	}
	if own := t.wrote[key]; len(own) > 0 {
		seen = append(seen, own...)
	}
	switch {
	case s.lists:
		t.log.ReadList(key, seen)
	case len(seen) == 0:
		t.log.Read(key, Initial)
	default:
		t.log.Read(key, seen[len(seen)-1])
	}
}

// snapshot returns a key's versions up to a commit. Of registers the last one is enough.
func (s *refStore) snapshot(key string, commit int) []string {
	var seen []string
	versions := s.versions[key]
	end := len(versions)
	for end > 0 && versions[end-1].at > commit {
		end--
	}
	begin := 0
	if !s.lists {
		begin = max(0, end-1)
	}
	for _, v := range versions[begin:end] {
		seen = append(seen, v.value)
	}
	return seen
}

func (s *refStore) end(t *refTxn) {
	lost := s.rand.Float64() < s.unknown
	if s.conflicts(t) {
		if !lost {
			t.log.Abort(s.now)
		}
		if !s.sometimes(dirtyAbort) {
			return
		}
		lost = true
	}
	if len(t.wrote) > 0 {
		s.commits++
	}
	keys := slices.Sorted(maps.Keys(t.wrote))
	for i, key := range keys {
		values := t.wrote[key]
		if i > 0 && i == len(keys)-1 && s.sometimes(halfCommit) {
			break
		}
		if s.lists && s.sometimes(retriedList) {
			values = append(slices.Clone(values), values[0])
		}
		if !s.lists {
			values = values[len(values)-1:]
		}
		late := i > 0 && s.sometimes(nonAtomic)
		for _, value := range values {
			if late {
				s.late = append(s.late, lateVersion{key, refVersion{value: value}})
			} else {
				s.versions[key] = append(s.versions[key], refVersion{value, s.commits})
			}
		}
	}
	if !lost {
		t.log.Commit(s.now)
	}
}

func (s *refStore) conflicts(t *refTxn) bool {
	if s.bug == lostUpdate || t.readOnly {
		return false
	}
	keys := slices.Collect(maps.Keys(t.wrote))
	if s.level == StrictSerializable {
		keys = append(keys, t.read...)
	}
	return slices.ContainsFunc(keys, func(key string) bool {
		versions := s.versions[key]
		return len(versions) > 0 && versions[len(versions)-1].at > t.snapshot
	})
}
