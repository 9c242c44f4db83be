package replicatedcommit

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/foresay/foresay/internal/wirefmt"
	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/store"
)

// What a server that takes a lost one's place, and those that it copies from, say to each other.
type (
	// askPage asks a server of the shard for what it has, from a place on. It is answered by a Page
	// when all is decided that was undecided when the epoch began. With Since it asks for values
	// that were written by later transactions, and is answered at once.
	askPage struct {
		Stage stage
		From  string // a key without its prefix
		Since uint64
		Round uint64 // tells copies apart; 0 for a newcomer, which makes one
	}

	// page is a part of what a server has.
	page struct {
		Stage stage
		From  string // as asked
		Round uint64 // as asked
		Next  string // where the next page begins; empty: this was the stage's last
		// Old is the time up to which the sender may have forgotten transactions.
		Old     uint64
		Scanned int // how many entries the sender looked at
		Debts   []debt
		Txns    []settledTxn
		Values  []keyValue
	}

	// settledTxn is a transaction that the sender has carried out.
	settledTxn struct {
		Txn    store.Txn // without what it reads
		Shards []uint32
		Commit bool
		Old    bool // as in Decide
		Done   bool // all servers have carried it out: the newcomer need not ask
	}

	// keyValue is a key with its value, or the version of its deletion.
	keyValue struct {
		Key   store.Key
		Value store.Value
	}
)

// stage is what of a server is copied.
type stage uint8

// The stages, in order.
const (
	copyTxns stage = iota
	copyValues
	copied // no more is needed
)

// copyTimer has a source asked again.
type copyTimer struct{ source protocol.ID }

// A source is how far a newcomer has copied what another server has.
type source struct {
	stage stage
	from  string
	pace  copyPace
}

// sourceLayout is what is on disk of it.
var sourceLayout = wirefmt.NewLayout("how far a server was copied cannot be read from the disk",
	func(c *wirefmt.Coder, s *source) {
		wirefmt.Enum(c, &s.stage, copyTxns, copied, "stage")
		wirefmt.String(c, &s.from)
	})

// newcomer is a server's part in taking a lost one's place: its site is of a later epoch than the
// store. Until it has what enough others have it votes for nothing and answers no reads. Its
// refusals stand for votes of the lost one that nobody knows.
type newcomer struct {
	syncing bool
	sources map[protocol.ID]*source
	looks   map[store.TxnID]*search
}

// neededSources returns how many servers a newcomer copies. What the lost one was needed to commit
// was voted for by majority-1 others at least, one of which is among them.
func neededSources(l store.Layout) int { return len(l.Sites) - l.Majority() + 1 }

// behind reports whether the server may not vote yes or answer reads yet.
func (s *server) behind() bool { return s.newcomer.syncing }

// startSync finds out whether the server is a newcomer, and how far it came.
func (s *server) startSync(env *protocol.Env[message], newDisk bool) {
	n := &s.newcomer
	n.sources, n.looks = map[protocol.ID]*source{}, map[store.TxnID]*search{}
	if newDisk && s.cfg.Layout.Sites[s.place.Site].Since > 0 {
		env.Put([]byte(syncKey), []byte{1})
		n.syncing = true
	} else if _, ok := env.Get([]byte(syncKey)); ok {
		n.syncing = true
	}
	if !n.syncing {
		return
	}
	for _, peer := range s.peers {
		src := &source{}
		if b, ok := env.Get(peerKey(sourcePrefix, peer)); ok {
			var err error
			if *src, err = sourceLayout.Decode(b); err != nil {
				s.refuse(env, fmt.Sprintf("server %d: %v", peer, err))
				return
			}
		}
		n.sources[peer] = src
		s.askCopy(env, peer)
	}
}

// askCopy asks a source for its next page, and does so again until it comes.
func (s *server) askCopy(env *protocol.Env[message], peer protocol.ID) {
	src := s.newcomer.sources[peer]
	if !s.newcomer.syncing || src == nil || src.stage == copied {
		return
	}
	if s.admission.admitted {
		env.Send(peer, askPage{Stage: src.stage, From: src.from})
		src.pace.asked = env.Now
	}
	env.After(2*s.cfg.RoundTrip, copyTimer{peer})
}

// onPage takes a page. Values and transactions come in any order, from several sources: the
// versions decide.
func (s *server) onPage(env *protocol.Env[message], from protocol.ID, m page) {
	src := s.newcomer.sources[from]
	if !s.newcomer.syncing {
		s.onOwedPage(env, from, m)
		return
	}
	if src == nil || m.Stage != src.stage || m.From != src.from || m.Next != "" && m.Next <= m.From || !s.validPage(m) {
		return
	}
	for _, t := range m.Txns {
		s.takeSettled(env, t)
	}
	s.takeValues(env, m.Values)
	s.inherit(env, m.Debts)
	s.raiseOld(env, m.Old)
	if src.from = m.Next; m.Next == "" {
		src.stage++
	}
	env.Put(peerKey(sourcePrefix, from), sourceLayout.Encode(*src))
	if src.stage == copied {
		env.Stop(copyTimer{from})
		s.maybeSynced(env)
		return
	}
	if len(m.Values)+len(m.Txns) == 0 {
		s.askCopy(env, from)
		return
	}
	pause := src.pace.pause(env.Now, s.cfg.RoundTrip, s.decided, newcomerLeast, m)
	env.After(time.Duration(s.sharing())*pause, copyTimer{from})
}

// sharing returns how many sources are copied at the same time: they share one pace, as it is the
// newcomer that has the work with all of them, and the computers' disks.
func (s *server) sharing() (n int) {
	for _, src := range s.newcomer.sources { //pure:ok a sum is the same in any order
		if src.stage != copied && src.pace.least != 0 {
			n++
		}
	}
	return max(n, 1)
}

// takeValues puts values that another server holds into the key space, if they are newer than what
// is there.
func (s *server) takeValues(env *protocol.Env[message], all []keyValue) {
	held, from, upto := heldVersions(env, all)
	for _, kv := range all {
		s.counts.CopiedValues++
		s.counts.CopiedBytes += uint64(len(kv.Key) + len(kv.Value.Bytes))
		if s.cfg.Applied != nil {
			s.cfg.Applied(kv.Key, kv.Value)
		}
		version := held[kv.Key]
		if kv.Key < from || kv.Key > upto {
			version = values.At(env, kv.Key).Version
		}
		if kv.Value.Version.After(version) {
			putValue(env, kv.Key, kv.Value)
			s.changed(kv.Key)
			held[kv.Key] = kv.Value.Version
		}
	}
}

// heldScan is how many keys are gone through for each one that is looked for: to look one up costs
// about as much.
const heldScan = 8

// heldVersions returns the versions of a page's keys from one key up to another one. Pages are in
// order, so that all of one are found on one way through the key space, unless many others lie
// between: what comes then is not looked for. A server that has just started would read a block of
// the disk for each key that it looks up.
func heldVersions(env *protocol.Env[message], all []keyValue) (held map[store.Key]store.Version, from, upto store.Key) {
	held = make(map[store.Key]store.Version, len(all))
	if len(all) == 0 {
		return held, "", ""
	}
	for _, kv := range all {
		held[kv.Key] = store.Version{}
	}
	from, upto = all[0].Key, all[len(all)-1].Key
	left := heldScan * len(all)
	for k, b := range env.Scan([]byte(valuePrefix+string(from)), []byte(valuePrefix+string(upto)+"\x00")) {
		key := store.Key(k[len(valuePrefix):])
		if _, ok := held[key]; ok {
			held[key] = values.Parse(key, b).Version
		}
		if left--; left == 0 {
			return held, from, key
		}
	}
	return held, from, upto
}

func (s *server) validPage(m page) bool {
	return !slices.ContainsFunc(m.Txns, func(t settledTxn) bool {
		return t.Txn.ID.Time == 0 || t.Txn.Validate() != nil || !s.mine(t.Txn) || !s.fits(t.Shards)
	}) && !slices.ContainsFunc(m.Values, func(kv keyValue) bool {
		return s.cfg.Layout.ShardOf(kv.Key) != s.place.Index ||
			store.ValidAccesses(nil, []store.Write{{Key: kv.Key, Bytes: kv.Value.Bytes}}) != nil
	})
}

// takeSettled notes a transaction that another server has carried out. There are at most as many as
// the sources together remember, so MaxTxns is not asked.
func (s *server) takeSettled(env *protocol.Env[message], m settledTxn) {
	r := s.txns[m.Txn.ID]
	state := aborted
	if m.Commit {
		state = committed
	}
	if r == nil {
		r = &record{id: m.Txn.ID, state: no, shards: m.Shards}
		if !m.Done {
			s.watch(env, r)
		}
	}
	if m.Old && (r.state == yes || r.state == no) {
		r.reason = store.Old
	}
	if m.Commit && !r.known && r.state != aborted {
		r.known, r.priority, r.writes = true, m.Txn.Priority, m.Txn.Writes
		if r.state == committed {
			s.apply(env, r)
			s.save(env, r)
		}
	}
	switch r.state {
	case yes, no:
		s.decide(env, r, state)
	case state:
	default:
		if !m.Old && !r.tookForOld() {
			s.contradict(r, state)
		}
	}
	if m.Done && !r.done && r.state == state {
		s.finish(env, r)
	}
}

// maybeSynced ends the copying when enough is copied.
func (s *server) maybeSynced(env *protocol.Env[message]) {
	n := &s.newcomer
	done := 0
	for _, peer := range s.peers {
		if n.sources[peer].stage == copied {
			done++
		}
	}
	if done < neededSources(s.cfg.Layout) {
		return
	}
	n.syncing = false
	env.Delete([]byte(syncKey))
	for _, peer := range s.peers {
		env.Stop(copyTimer{peer})
		env.Delete(peerKey(sourcePrefix, peer))
	}
	for _, id := range slices.SortedFunc(maps.Keys(n.looks), store.Version.Compare) {
		l := n.looks[id]
		s.endLook(env, id)
		for _, asker := range l.askers {
			s.onAsk(env, asker, ask{ID: id, Shards: l.shards, Fence: true})
		}
	}
}
