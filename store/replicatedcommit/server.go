package replicatedcommit

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/store"
	"github.com/foresay/foresay/store/kit"
)

// A server has no log, since there is no order of transactions to agree on: each is voted for by
// itself, and those that conflict are kept apart by locks. A vote is one key, written in the batch
// that locks, and is final. What a log would say by how far it goes is said by two numbers instead:
// nothing unknown is voted for up to old, so that a server that forgets never votes twice; and all
// that is known is done up to doneUpto, so that one that starts again need not ask about it.

// Timers of a server.
type (
	resolveTimer   struct{ id store.TxnID }
	retentionTimer struct{}
	waitTimer      struct {
		key  store.Key
		from protocol.ID
		ref  uint64
	}
)

// server is the node of one shard at one site.
type server struct {
	cfg          store.Config
	page         int // how many entries a page has at most
	place        store.Place
	shards       map[protocol.ID]store.Place
	coordinators map[protocol.ID]store.Place
	peers        []protocol.ID // the servers of the shard at other sites

	admission admission
	txns      map[store.TxnID]*record
	done      []store.TxnID // of txns, those to forget when they are old enough
	open      []store.TxnID // the others, in order, and some that are done or forgotten
	// doneUpto is the time up to which all that are in txns are done, so that a start need not ask.
	// Invariant: it is on disk, with the debts that are left of them.
	doneUpto uint64
	// old is the time up to which transactions that are not in txns are never voted for. Invariant:
	// it is on disk before anybody hears of it, and does not fall.
	old          uint64
	locks        map[store.Key]*lock
	waiting      map[store.Key][]waiter
	waiters      int // Invariant: the sum over waiting, at most MaxWaiting
	reservations kit.Reservations
	holding      holding
	questioned   map[store.Key]int // by how many transactions each key is in question
	freed        []store.Key       // that somebody waits for, and have changed since. Invariant: empty between events
	newcomer     newcomer
	debts        map[protocol.ID]*owedRange
	inquiries    map[store.TxnID]*inquiry // Invariant: of transactions that are carried out here, and not done
	catchUp      catchUp
	retirement   retirement
	inherited    uint64        // no transaction of an earlier epoch that is in txns has a later version
	settled      bool          // those of earlier epochs are carried out
	looked       time.Duration // when there was nothing to forget to make room; 0: there was something
	fullSaid     time.Duration // when the application was told last that there are as many as may be; 0: never
	contrary     error         // a decision that contradicts another one
	counts       store.Counts
	decided      uint64 // how often the server was told a decision
	pace         pace   // of decisions on what the server has voted for
}

// newServer returns a server. The error names the field of the configuration that is wrong.
func newServer(cfg store.Config) (*server, error) {
	cfg, err := withDefaults(cfg)
	if err != nil {
		return nil, err
	}
	s := &server{
		cfg: cfg, page: maxPageEntries, txns: map[store.TxnID]*record{}, locks: map[store.Key]*lock{},
		waiting: map[store.Key][]waiter{}, questioned: map[store.Key]int{},
		debts: map[protocol.ID]*owedRange{}, inquiries: map[store.TxnID]*inquiry{}, catchUp: newCatchUp(),
		holding: holding{byTxn: map[store.TxnID]*held{}, byKey: map[store.Key][]*held{}},
	}
	s.reservations = kit.NewReservations(cfg, s.changed)
	s.shards, s.coordinators = cfg.Layout.Places()
	p, ok := s.shards[cfg.ID]
	if !ok {
		return nil, fmt.Errorf("replicatedcommit: Config.ID: %d is no shard of a site that takes part", cfg.ID)
	}
	s.place = p
	for _, i := range cfg.Layout.Unfenced() {
		if i != p.Site {
			s.peers = append(s.peers, cfg.Layout.Sites[i].Shards[p.Index])
		}
	}
	return s, nil
}

// Start implements protocol.Node. There are no records: what is durable is in the key space.
func (s *server) Start(env *protocol.Env[message], _ []protocol.Record[message]) {
	if last, _, ok := readEpoch(env); ok && last > s.cfg.Epoch {
		s.refuse(env, fmt.Sprintf("the server was started with epoch %d, and its disk is of epoch %d: the configuration "+
			"is an old one", s.cfg.Epoch, last))
		return
	}
	newDisk := s.startAdmission(env)
	for _, n := range []struct {
		at  *uint64
		key string
	}{{&s.old, oldKey}, {&s.doneUpto, doneKey}} {
		var err error
		if *n.at, err = readNumber(env, n.key); err != nil {
			s.refuse(env, err.Error())
			return
		}
	}
	var all []*record
	for _, b := range env.Scan([]byte(txnPrefix), []byte(txnPrefix+"\xff\xff\xff\xff\xff\xff\xff\xff\xff")) {
		r, err := parseRecord(b)
		if err == nil && !r.settled() {
			r, err = readRecord(env, b)
		}
		if err != nil {
			s.refuse(env, err.Error())
			return
		}
		s.txns[r.id] = r
		s.shed(r)
		if r.state == yes {
			s.lock(r)
		}
		all = append(all, r)
	}
	s.startDone(all)
	for _, r := range all { // how often they are asked about depends on how many there are
		if !r.done {
			s.watch(env, r)
		}
	}
	s.startDebts(env)
	s.startCatchUp(env)
	s.startEpoch(env)
	s.startSync(env, newDisk)
	env.After(s.cfg.Retain/8, retentionTimer{})
	if s.cfg.Retired {
		s.onRetire(env)
	}
}

// refuse ends the server's part, until it is started again.
func (s *server) refuse(env *protocol.Env[message], why string) {
	s.admission.refused = why
	env.Send(protocol.App, store.Refused{Reason: why})
}

// Receive implements protocol.Node.
func (s *server) Receive(env *protocol.Env[message], from protocol.ID, msg message) {
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
	case store.Retire:
		if from == protocol.App {
			s.onRetire(env)
		}
		return
	}
	if !s.admission.admitted || s.admission.refused != "" {
		return
	}
	switch m := msg.(type) {
	case store.ReadRequest:
		s.onRead(env, from, m)
	case prepare:
		s.onPrepare(env, from, m)
	case ask:
		s.onAsk(env, from, m)
	case urge:
		s.onUrge(env, from, m)
	case decide:
		s.onDecide(env, from, m)
	case forget:
		s.onForget(env, from, m)
	case fetch:
		s.onFetch(env, from, m)
	case content:
		s.onContent(env, from, m)
	case look:
		s.onLook(env, from, m)
	case seen:
		s.onSeen(env, from, m)
	case askPage:
		s.onCopy(env, from, m)
	case page:
		s.onPage(env, from, m)
	case owing:
		s.onOwing(env, from, m)
	case paid:
		s.onPaid(env, from, m)
	}
	s.goOn(env)
}

// Expire implements protocol.Node.
func (s *server) Expire(env *protocol.Env[message], t protocol.Timer) {
	switch t := t.(type) {
	case helloTimer:
		s.helloAgain(env)
	case markTimer:
		s.endMarking(env)
	case heardTimer:
		s.keepHeard(env)
	case resolveTimer:
		s.resolve(env, t.id)
	case waitTimer:
		s.endWait(env, t)
	case kit.ReserveTimer:
		s.reservations.Expire(env, t)
	case holdTimer:
		s.endHold(env, t.id)
	case retentionTimer:
		s.retain(env)
	case lookTimer:
		s.look(env, t.id)
	case copyTimer:
		s.askCopy(env, t.source)
	case oweTimer:
		s.tellDebts(env)
	case catchUpTimer:
		s.goOnCatchingUp(env)
	}
	s.goOn(env)
}

func (s *server) isPeer(id protocol.ID) bool { return slices.Contains(s.peers, id) }

// fits reports whether shards name a transaction that this one has a part of.
func (s *server) fits(shards []uint32) bool {
	return s.cfg.Layout.ValidShards(shards) && slices.Contains(shards, uint32(s.place.Index))
}

// settledPerRoundTrip bounds how many transactions that are carried out here the server asks about
// in a round trip: nobody waits for the answer.
const settledPerRoundTrip = 1

// watch has the server ask about a transaction until all sites have carried out the decision, or
// are owed it.
func (s *server) watch(env *protocol.Env[message], r *record) {
	wait, spread := s.pace.lag(4, s.cfg.RoundTrip)<<min(r.waits, 4), s.cfg.RoundTrip
	wait += store.SendTime(store.ContentBytes(nil, r.writes)) // the client sends it to other sites, too
	per := time.Duration(settledPerRoundTrip)
	if s.retirement.retired { // an operator waits
		per = askedPerRoundTrip
	}
	if n := time.Duration(len(s.txns)-len(s.done)) / per; r.settled() && n > 4 {
		spread = n * s.cfg.RoundTrip
	}
	env.After(wait+time.Duration(env.Rand.Int64N(int64(spread))), resolveTimer{r.id})
}

func (s *server) resolve(env *protocol.Env[message], id store.TxnID) {
	r := s.txns[id]
	if r == nil || r.done || s.admission.refused != "" {
		return
	}
	if !s.admission.admitted {
		s.watch(env, r)
		return
	}
	if s.inquire(env, r) {
		return
	}
	r.waits++
	s.question(r)
	if r.now() == wanting {
		s.fetch(env, r)
	}
	env.Send(s.coordinator(id), resolve{ID: id, Shards: r.shards, State: r.now(), Reason: r.reason})
	s.watch(env, r)
}

func (s *server) coordinator(id store.TxnID) protocol.ID {
	return s.cfg.Layout.Coordinator(s.place.Site, id)
}

// onForget is told that all servers have carried out a decision, or all but some that are owed it
// then. The record stays for clients that ask, until it is old.
func (s *server) onForget(env *protocol.Env[message], from protocol.ID, m forget) {
	r := s.txns[m.ID]
	if _, ok := s.coordinators[from]; !ok || r == nil || !r.settled() || !s.mayOwe(r, m.But) {
		return
	}
	if r.done {
		r.but = slices.DeleteFunc(r.but, func(id protocol.ID) bool { return !slices.Contains(m.But, id) })
		return
	}
	s.finish(env, r)
	s.owe(env, r, m.But)
	delete(s.inquiries, r.id)
}

// retain forgets what is old and done, now and then.
func (s *server) retain(env *protocol.Env[message]) {
	env.After(s.cfg.Retain/8, retentionTimer{})
	if !s.admission.admitted || s.admission.refused != "" {
		return
	}
	s.raiseOld(env, uint64(max(env.Now-s.cfg.Retain, 0)))
	s.forgetOld(env)
}

// raiseOld has the server vote for no transaction up to a time that it does not remember.
func (s *server) raiseOld(env *protocol.Env[message], to uint64) {
	if to > s.old {
		s.old = to
		env.Put([]byte(oldKey), numberLayout.Encode(s.old))
	}
}

// message is what nodes send and applications exchange with them: one of the types of this package
// or of package store.
type message = store.Message

// withDefaults returns the configuration with all fields set. Its error names what is wrong, or
// says that there is not enough to copy from for sites that are new.
func withDefaults(c store.Config) (store.Config, error) {
	c, err := c.WithDefaults()
	if err != nil {
		return c, err
	}
	if !c.Layout.Whole() {
		return c, errors.New("replicatedcommit: Config.Layout: a site lacks a shard; here every site has them all")
	}
	old := 0
	for _, i := range c.Layout.Unfenced() {
		if !c.IsNew(i) {
			old++
		}
	}
	if want := neededSources(c.Layout); old < want {
		return c, fmt.Errorf("replicatedcommit: %d of %d sites are neither fenced nor new in epoch %d (want %d at least)",
			old, len(c.Layout.Sites), c.Epoch, want)
	}
	return c, nil
}
