package tapir

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/foresay/foresay/internal/diskid"
	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/quorum"
	"github.com/foresay/foresay/store"
	"github.com/foresay/foresay/store/kit"
)

// Operations come to each server of a group in an order of its own, so there is no log that could
// be executed again. What a server is made of is its record of transactions, each on disk with what
// follows from it before anybody hears of it. A server that starts again keeps its record, but not
// its view: others may have left that, and what was decided meanwhile comes to it at once with the
// record that the next view begins with. So it begins a view change (beginView).

// Timers of a server.
type (
	helloTimer  struct{}
	sweepTimer  struct{}
	retainTimer struct{}
	viewTimer   struct{ view viewNumber }
	ripeTimer   struct{ view viewNumber }
	copyTimer   struct{ from protocol.ID }
)

// server is the node of one shard at one site: a replica of the shard's group.
type server struct {
	cfg          store.Config
	place        store.Place
	coordinators map[protocol.ID]store.Place
	group        []protocol.ID // the shard's servers, in the order of the sites
	slow, fast   int           // quorums of the group

	self     diskid.Identity
	welcomed map[protocol.ID]bool
	txns     map[store.TxnID]*record
	open     map[store.TxnID]*record // Invariant: those of txns that are not done
	past     []store.TxnID           // those that are, to be forgotten when they are old
	held     held                    // Invariant: the records that hold
	shadows  held                    // those that are aborted and are in the way of a fast path yet
	lastRead map[store.Key]store.Version
	// old is the time up to which transactions that are not on record are voted for no more. Those
	// that are done are forgotten then. Invariant: it is on disk, and does not fall.
	old       uint64
	viewState // Invariant: normal <= view; the server takes part if they are equal
	change    change
	owed      map[protocol.ID]uint64 // servers that have to copy, with what they are to answer
	copying   map[protocol.ID]*copying
	contrary  error // two decisions that contradict each other
	counts    store.Counts
}

// newServer returns a server. The error names the field of the configuration that is wrong.
func newServer(cfg store.Config) (*server, error) {
	cfg, p, err := kit.ServerConfig("tapir", cfg)
	if err != nil {
		return nil, err
	}
	_, coordinators := cfg.Layout.Places()
	s := &server{
		cfg: cfg, place: p, coordinators: coordinators, group: cfg.Layout.ServersOf(p.Index),
		welcomed: map[protocol.ID]bool{}, txns: map[store.TxnID]*record{}, open: map[store.TxnID]*record{},
		held: held{}, shadows: held{},
		lastRead: map[store.Key]store.Version{}, owed: map[protocol.ID]uint64{},
		copying: map[protocol.ID]*copying{},
	}
	s.slow, s.fast = quorum.Majority(len(s.group)), quorum.Fast(len(s.group))
	return s, nil
}

// Start implements protocol.Node. There are no records: what is durable is in the key space.
func (s *server) Start(env *protocol.Env[store.Message], _ []protocol.Record[store.Message]) {
	s.load(env)
	env.After(2*s.cfg.RoundTrip, sweepTimer{})
	env.After(s.cfg.Retain/8, retainTimer{})
	switch {
	case s.self.Refused != "":
		env.Send(protocol.App, store.Refused{Reason: s.self.Refused, Forgot: true})
	case s.self.Joined:
		s.beginView(env, s.view+1)
	default:
		s.greet(env)
	}
}

// load takes over what is in the key space: the server's promises and its records. There is no log
// to execute, as each record is written with what follows from it.
func (s *server) load(env *protocol.Env[store.Message]) {
	id, found, err := diskid.Read(env, selfKey)
	switch {
	case err != nil: // what it was is not known, so it stays as it is
		id = diskid.Identity{Refused: fmt.Sprintf("the server's %v", err)}
	case !found:
		id = diskid.New(env.Rand)
		id.Write(env, selfKey)
	}
	s.self = id
	s.old, _ = stored(env, oldKey, numberLayout)
	var ok bool
	if s.viewState, ok = stored(env, viewKey, viewLayout); !ok {
		s.members = s.group
	}
	for k, b := range env.Scan([]byte(readPrefix), within(readPrefix)) {
		s.lastRead[store.Key(k[len(readPrefix):])] = decoded(versionLayout, b)
	}
	for _, id := range s.group {
		if b, ok := env.Get(serverKey(owedPrefix, id)); ok {
			s.owed[id] = decoded(numberLayout, b)
		}
	}
	for _, b := range env.Scan([]byte(txnPrefix), within(txnPrefix)) {
		r := new(record)
		*r = decoded(recordLayout, b)
		r.since = env.Now
		s.txns[r.id] = r
		if r.done {
			s.past = append(s.past, r.id)
			continue
		}
		s.open[r.id] = r
		if !r.has {
			continue
		}
		raw, ok := env.Get(store.TxnKey(partPrefix, r.id))
		if !ok {
			panic(fmt.Sprintf("tapir: the part of %v is not on disk", r.id)) // which runners stop at
		}
		part, err := store.DecodeTxn(raw)
		if err != nil {
			panic(fmt.Sprintf("tapir: the part of %v on disk: %v", r.id, err))
		}
		if r.part = part; r.holds() {
			s.held.add(r)
		}
		s.shadow(r)
	}
}

// greet asks the others whether the disk is the first one under this server's name. All have to
// say so: any of them may be the one that knows better. When there are none it is.
func (s *server) greet(env *protocol.Env[store.Message]) {
	for _, id := range s.group {
		if id != s.cfg.ID && !s.welcomed[id] {
			env.Send(id, hello{s.self.Disk})
		}
	}
	env.After(2*s.cfg.RoundTrip, helloTimer{})
	s.maybeAdmit(env)
}

func (s *server) maybeAdmit(env *protocol.Env[store.Message]) {
	if s.admitted() || s.self.Refused != "" || len(s.welcomed) < len(s.group)-1 {
		return
	}
	s.self.Joined = true
	s.self.Write(env, selfKey)
	env.Stop(helloTimer{})
}

// onHello answers whether a disk is the first under another server's name. The first one that this
// server hears of is written down before the answer leaves, so it never says yes to two.
func (s *server) onHello(env *protocol.Env[store.Message], from protocol.ID, m hello) {
	if !s.isPeer(from) || m.Disk == 0 {
		return
	}
	known := m.Disk
	if b, ok := env.Get(serverKey(diskPrefix, from)); ok {
		known = decoded(numberLayout, b)
	} else {
		env.Put(serverKey(diskPrefix, from), numberLayout.Encode(m.Disk))
	}
	env.Send(from, welcome{Disk: m.Disk, Other: known != m.Disk})
}

func (s *server) onWelcome(env *protocol.Env[store.Message], from protocol.ID, m welcome) {
	if !s.isPeer(from) || m.Disk != s.self.Disk || s.admitted() || s.self.Refused != "" {
		return
	}
	if m.Other {
		s.self.Refused = fmt.Sprintf("server %d knows another disk of server %d, whose votes this one has not: a lost disk "+
			"cannot come back", from, s.cfg.ID)
		s.self.Write(env, selfKey)
		env.Stop(helloTimer{})
		env.Send(protocol.App, store.Refused{Reason: s.self.Refused, Forgot: true})
		return
	}
	s.welcomed[from] = true
	s.maybeAdmit(env)
}

func (s *server) isPeer(id protocol.ID) bool { return id != s.cfg.ID && slices.Contains(s.group, id) }

// admitted reports whether the server's disk is admitted.
func (s *server) admitted() bool { return s.self.Joined && s.self.Refused == "" }

// takesPart reports whether the server is in a view.
func (s *server) takesPart() bool { return s.admitted() && s.view == s.normal }

// Receive implements protocol.Node.
func (s *server) Receive(env *protocol.Env[store.Message], from protocol.ID, msg store.Message) {
	switch m := msg.(type) {
	case hello:
		s.onHello(env, from, m)
		return
	case welcome:
		s.onWelcome(env, from, m)
		return
	case store.StatusQuery:
		if from == protocol.App {
			s.onStatus(env, m)
		}
		return
	}
	if !s.admitted() {
		return
	}
	if m, ok := msg.(store.ReadRequest); ok {
		s.onRead(env, from, m)
		return
	}
	if _, ok := s.coordinators[from]; ok {
		s.fromCoordinator(env, from, msg)
	}
	if s.isPeer(from) {
		s.fromPeer(env, from, msg)
	}
}

// fromCoordinator takes what is about one transaction; fromPeer what is about the group's view, and
// records that a server lacks.
func (s *server) fromCoordinator(env *protocol.Env[store.Message], from protocol.ID, msg store.Message) {
	switch m := msg.(type) {
	case propose:
		s.onPropose(env, from, m)
	case accept:
		s.onAccept(env, from, m)
	case decide:
		s.onDecide(env, from, m)
	case done:
		s.onDone(env, m)
	case viewChange:
		s.onWantView(env, m)
	}
}

func (s *server) fromPeer(env *protocol.Env[store.Message], from protocol.ID, msg store.Message) {
	switch m := msg.(type) {
	case viewChange:
		s.onViewChange(env, from, m)
	case doView:
		s.onDoView(env, from, m)
	case startView:
		s.onStartView(env, from, m)
	case behind:
		s.onBehind(env, from, m)
	case caughtUp:
		s.onCaughtUp(env, from, m)
	case askPage:
		s.onAskPage(env, from, m)
	case page:
		s.onPage(env, from, m)
	}
}

// Expire implements protocol.Node.
func (s *server) Expire(env *protocol.Env[store.Message], t protocol.Timer) {
	switch t := t.(type) {
	case helloTimer:
		if !s.self.Joined && s.self.Refused == "" {
			s.greet(env)
		}
	case sweepTimer:
		s.sweep(env)
	case retainTimer:
		s.retain(env)
	case viewTimer:
		s.viewLate(env, t.view)
	case ripeTimer:
		s.viewRipe(env, t.view)
	case copyTimer:
		s.askPage(env, t.from)
	}
}

// onRead answers with what the server has, which may be old: the commit says so. The hint keeps a
// client whose clock is far behind from timestamps that the server votes for no more.
func (s *server) onRead(env *protocol.Env[store.Message], from protocol.ID, m store.ReadRequest) {
	v := values.At(env, m.Key)
	pending := slices.ContainsFunc(s.held[m.Key], func(r *record) bool { return writes(r.part, m.Key) })
	env.Send(from, store.ReadReply{Ref: m.Ref, Value: v, Pending: pending,
		Hint: max(v.Version.Time, uint64(max(env.Now-s.cfg.Retain/2, 0)))})
}

func (s *server) onStatus(env *protocol.Env[store.Message], m store.StatusQuery) {
	st := store.ServerStatus{
		Ref: m.Ref, Site: s.place.Site, Shard: s.place.Index, Epoch: s.cfg.Epoch, Admitted: s.takesPart(),
		Refused: s.self.Refused, Syncing: len(s.copying) > 0, Txns: len(s.txns), Locks: len(s.held), Counts: s.counts,
		Old: s.old,
	}
	for _, r := range s.open { //pure:ok sums and the least are the same in any order
		st.TxnBytes += store.ContentBytes(r.part.Reads, r.part.Writes)
		if r.end == undecided {
			st.Undecided++
			if st.OldestUndecided.IsZero() || st.OldestUndecided.After(r.id) {
				st.OldestUndecided = r.id
			}
		}
	}
	env.Send(protocol.App, st)
}

// full reports whether the server has as many transactions on record as it may.
func (s *server) full() bool { return len(s.txns) > s.cfg.MaxTxns }

// openRecords returns the records that are not done, in the order of their IDs.
func (s *server) openRecords() []*record {
	return slices.SortedFunc(maps.Values(s.open), func(a, b *record) int { return a.id.Compare(b.id) })
}

// Limits of a sweep.
const (
	undecidedAfter = 12 // round trips, and at later sites some more: where all are well one is enough
	decidedAfter   = 24
	sweepDecided   = 16 // transactions that are decided, in one sweep
)

// sweep has the site's coordinator finish what has been open for long, and tells servers that have
// to copy.
func (s *server) sweep(env *protocol.Env[store.Message]) {
	env.After(2*s.cfg.RoundTrip, sweepTimer{})
	if !s.admitted() {
		return
	}
	settled := 0
	for _, r := range s.openRecords() {
		after := undecidedAfter
		if r.end != undecided {
			after = decidedAfter << min(r.tries, 4)
		}
		if env.Now-r.since <= time.Duration(after+4*s.place.Site)*s.cfg.RoundTrip {
			continue
		}
		if r.end != undecided {
			if settled++; settled > sweepDecided {
				continue
			}
		}
		r.since = env.Now
		r.tries++
		env.Send(s.cfg.Layout.Coordinator(s.place.Site, r.id), finish{r.id, r.shards, r.has, r.part})
	}
	for _, id := range slices.Sorted(maps.Keys(s.owed)) {
		env.Send(id, behind{s.owed[id]})
	}
}

// retain forgets what is old and done, now and then.
func (s *server) retain(env *protocol.Env[store.Message]) {
	env.After(s.cfg.Retain/8, retainTimer{})
	if to := uint64(max(env.Now-s.cfg.Retain, 0)); to > s.old {
		s.old = to
		env.Put([]byte(oldKey), numberLayout.Encode(s.old))
	}
	s.past = slices.DeleteFunc(s.past, func(id store.TxnID) bool {
		if id.Time > s.old {
			return false
		}
		delete(s.txns, id)
		env.Delete(store.TxnKey(txnPrefix, id))
		return true
	})
	for _, k := range slices.Sorted(maps.Keys(s.lastRead)) {
		if s.lastRead[k].Time <= s.old { // nobody may write below it any more
			delete(s.lastRead, k)
			env.Delete([]byte(readPrefix + string(k)))
		}
	}
}

// Check implements protocol.Checked.
func (s *server) Check() error {
	if s.contrary != nil {
		return s.contrary
	}
	if s.normal > s.view {
		return fmt.Errorf("tapir: server %d: it took part in view %d, and the view is %d", s.cfg.ID, s.normal, s.view)
	}
	n := 0
	for id, r := range s.txns { //pure:ok any broken one is an error
		switch open := s.open[id]; {
		case r.id != id, r.done == (open == r), r.done && r.end == undecided:
			return fmt.Errorf("tapir: server %d: %v is kept as %+v", s.cfg.ID, id, *r)
		case (r.holds() || r.end == committed && !r.done) && !r.has:
			return fmt.Errorf("tapir: server %d: %v is kept without its part", s.cfg.ID, id)
		case r.votedAt.compare(r.promised) > 0, r.accepted.compare(r.promised) > 0, r.yes && r.accepted == ballot{}:
			return fmt.Errorf("tapir: server %d: the ballots of %v are %+v", s.cfg.ID, id, *r)
		}
		if r.holds() || r.end == committed && !r.done {
			// Of two that are accepted one is aborted at another shard.
			if o := s.held.conflicting(r.part); o != nil && (!o.yes || !r.yes && r.end != committed) {
				return fmt.Errorf("tapir: server %d: %v and %v hold, and conflict", s.cfg.ID, id, o.id)
			}
		}
		if r.holds() {
			n += len(keysOf(r.part))
		}
	}
	for _, all := range s.held { //pure:ok a sum is the same in any order
		n -= len(all)
	}
	if n != 0 {
		return fmt.Errorf("tapir: server %d: %d keys more are held than listed", s.cfg.ID, n)
	}
	return nil
}
