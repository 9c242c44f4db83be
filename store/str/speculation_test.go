package str

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/foresay/foresay/clock"
	"github.com/foresay/foresay/history"
	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/store"
)

// speculations are what a protocol's coordinators do in one world: every execution.
type speculations struct {
	now     history.Event // of all nodes
	nodes   map[*coordinator]string
	of      map[*coordinator]map[store.TxnID]*executed
	all     []*executed
	commits map[store.TxnID]carried
	clients map[protocol.ID]*watchedClient
	err     error
}

// executed is an execution with what is not in the history.
type executed struct {
	history.Execution[string]
	id    store.TxnID
	reads []*reading  // of steps that have not read all
	on    []*executed // that it depended on
}

// version names what a transaction has written.
type version struct {
	key string
	at  history.Timestamp
}

// carried is what shards have written for a transaction.
type carried struct {
	at   clock.Stamp
	keys map[store.Key]bool
}

// watchedClient is a client of which is known when it hears of a commit.
type watchedClient struct {
	*client
	log *speculations
}

// Receive implements protocol.Node.
func (c *watchedClient) Receive(env *protocol.Env[store.Message], from protocol.ID, msg store.Message) {
	c.client.Receive(env, from, msg)
	if m, ok := msg.(store.Decided); ok && m.Verdict == store.Committed {
		c.log.told(c, m.ID)
	}
}

// watched returns a protocol whose coordinators log what they do, and what judges that.
func watched(mode variant) (store.Protocol, func() error) {
	l := &speculations{nodes: map[*coordinator]string{}, of: map[*coordinator]map[store.TxnID]*executed{},
		commits: map[store.TxnID]carried{}, clients: map[protocol.ID]*watchedClient{}}
	if also := mode.seen; also != nil {
		mode.seen = func(e event) {
			l.saw(e)
			also(e)
		}
	} else {
		mode.seen = l.saw
	}
	p := protocolOf(mode)
	p.NewClient = func(cfg store.Config) (store.ClientNode, error) {
		c, err := newClient(cfg)
		if err != nil {
			return nil, err
		}
		w := &watchedClient{c, l}
		l.clients[cfg.ID] = w
		return w, nil
	}
	return p, l.judge
}

// node returns the name of a coordinator: one that is started again is another one.
func (l *speculations) node(c *coordinator) string {
	if l.nodes[c] == "" {
		l.nodes[c] = fmt.Sprintf("%d.%d", c.cfg.ID, len(l.nodes))
		l.of[c] = map[store.TxnID]*executed{}
	}
	return l.nodes[c]
}

// told notes that a session knows of a commit: what it begins from now on comes behind it. One that
// is waiting for the begin of another transaction has asked for that before.
func (l *speculations) told(c *watchedClient, id store.TxnID) {
	for _, o := range c.begun.All() {
		if o.at == 0 {
			return
		}
	}
	l.now++
	for _, x := range l.all {
		if x.id == id && x.Final.Event > 0 && x.Final.Told == 0 {
			x.Final.Told = l.now
		}
	}
}

// saw logs an event.
func (l *speculations) saw(e event) {
	l.now++
	if e.what == wasCarriedOut {
		l.carriedOut(e)
		return
	}
	if e.what == hasBegun {
		l.begin(e)
		return
	}
	node := l.node(e.at)
	x := l.of[e.at][e.t.id]
	if x == nil {
		l.fail("%v is not known at %s", e.t.id, node)
		return
	}
	if e.on != nil {
		x.on = append(x.on, l.of[e.at][e.on.id])
	}
	switch e.what {
	case readsFrom:
		x.Data = append(x.Data, l.of[e.at][e.on.id].ID)
	case writesOver:
		x.Stack = append(x.Stack, l.of[e.at][e.on.id].ID)
	case follows:
		x.Flow = append(x.Flow, l.of[e.at][e.on.id].ID)
	case isDelivered:
		l.deliver(e, x)
	case isLocal:
		for _, w := range e.t.writes {
			x.Writes = append(x.Writes, string(w.Key))
		}
		x.Local = history.Commit{Event: l.now, Timestamp: history.Timestamp(e.t.local)}
		x.Bound = history.Timestamp(e.t.bound)
	case isAgreed:
		x.Hidden = l.now
	case isFinal:
		l.finish(x, cmp.Or(e.t.final, e.t.at))
	case isAborted:
		x.Aborted = l.now
		if x.Local.Event > 0 && x.Hidden == 0 { // it may be final all the same
			l.now++
			x.Hidden = x.Aborted
			x.Aborted = l.now
		}
	}
}

// finish logs that a transaction is final, which may have been given up in vain.
func (l *speculations) finish(x *executed, at clock.Stamp) {
	if x.Final.Event == 0 {
		l.now++
		x.Final, x.Aborted = history.Commit{Event: l.now, Timestamp: history.Timestamp(at)}, 0
	}
}

func (l *speculations) fail(format string, args ...any) {
	if l.err == nil {
		l.err = fmt.Errorf("the log of executions: "+format, args...)
	}
}

// begin logs that a transaction begins. One whose client does not wait for it is of no session: it
// was asked for earlier than what its client has begun since.
func (l *speculations) begin(e event) {
	id, node := e.t.id, l.node(e.at)
	if x := l.of[e.at][id]; x != nil && x.Final.Event+x.Aborted == 0 {
		l.fail("%v begins a second time at %s", id, node)
		return
	}
	session := history.Client(e.t.client)
	if c := l.clients[e.t.client]; c == nil || c.begun.Of(id) == nil {
		session = history.Client(1000 + len(l.all))
	}
	x := &executed{id: id, Execution: history.Execution[string]{ID: fmt.Sprintf("%v at %s, %d", id, node, l.now),
		Node: node, Session: session, Begin: l.now, Snapshot: history.Timestamp(e.t.at)}}
	l.of[e.at][id] = x
	l.all = append(l.all, x)
}

// deliver logs what a client gets, once it gets all of a step.
func (l *speculations) deliver(e event, x *executed) {
	x.reads = append(x.reads, e.read)
	if e.read.step.left > 0 {
		return
	}
	oldest := history.Timestamp(math.MaxInt64)
	for _, at := range e.t.unsafe {
		oldest = min(oldest, history.Timestamp(at))
	}
	var later []*reading
	for _, r := range x.reads {
		if r.step != e.read.step {
			later = append(later, r)
			continue
		}
		l.now++
		read := history.SnapshotRead[string]{Key: string(r.key), OLC: oldest, FFC: history.Timestamp(e.t.latest)}
		switch {
		case r.by == nil && r.value.Version.IsZero():
		case r.by == nil:
			read.State, read.Timestamp = history.FinalCommitted, history.Timestamp(r.value.Version.Time)
			l.heard(e.at, r.value.Version)
		case r.by.stage == locally:
			read.State, read.Timestamp = history.LocalCommitted, history.Timestamp(r.by.local)
			read.Writer = l.of[e.at][r.by.id].ID
		default:
			read.State, read.Timestamp = history.FinalCommitted, history.Timestamp(r.by.final)
			read.Writer = l.of[e.at][r.by.id].ID
		}
		l.now++
		read.Event = l.now
		x.Reads = append(x.Reads, read)
	}
	x.reads = later
}

// heard logs that a coordinator has from a shard what a transaction of its own has written: so that
// is final, which the coordinator may not know yet. The first shard has carried it out, and the one
// that says so may have the outcome from who has finished it.
func (l *speculations) heard(at *coordinator, v store.Version) {
	for id, x := range l.of[at] {
		if c, ok := l.commits[id]; ok && id.Client == v.Client && uint64(c.at) == v.Time {
			l.isFinal(x, c.at)
		}
	}
}

// isFinal logs that a transaction is final, and so is what it depended on.
func (l *speculations) isFinal(x *executed, at clock.Stamp) {
	if x.Final.Event > 0 {
		return
	}
	for _, on := range x.on {
		if c, ok := l.commits[on.id]; ok {
			l.isFinal(on, c.at)
		}
	}
	l.finish(x, at)
}

// carriedOut logs what a shard has written.
func (l *speculations) carriedOut(e event) {
	c, ok := l.commits[e.id]
	if !ok {
		c = carried{at: e.commit, keys: map[store.Key]bool{}}
	}
	if c.at != e.commit {
		l.fail("%v is committed at %v and at %v", e.id, c.at, e.commit)
	}
	for _, w := range e.writes {
		c.keys[w.Key] = true
	}
	l.commits[e.id] = c
}

// judge judges all executions.
func (l *speculations) judge() error {
	if l.err != nil {
		return l.err
	}
	l.end()
	report, err := history.CheckSpeculation(l.history())
	if err == nil && report.Verdict() != history.OK {
		err = fmt.Errorf("%v", report)
	}
	return err
}

// end ends what was open when its coordinator crashed: some of it others have committed, the rest
// is lost.
func (l *speculations) end() {
	var final, lost []*executed
	for _, x := range l.all {
		switch c, ok := l.commits[x.id]; {
		case x.Final.Event > 0:
		case ok && x.Local.Event > 0:
			x.Final.Timestamp = history.Timestamp(c.at)
			final = append(final, x)
		case x.Aborted == 0:
			lost = append(lost, x)
		}
	}
	slices.SortFunc(final, func(a, b *executed) int { return cmp.Compare(a.Final.Timestamp, b.Final.Timestamp) })
	for _, x := range final {
		l.now++
		x.Final.Event, x.Aborted = l.now, 0
	}
	for _, x := range lost {
		l.now++
		x.Aborted = l.now
	}
}

// history returns the executions, with the writers of what they have read.
func (l *speculations) history() (h history.Speculation[string]) {
	writers := map[version]string{}
	for _, x := range l.all {
		for _, key := range x.Writes {
			if x.Final.Event > 0 {
				writers[version{key, x.Final.Timestamp}] = x.ID
			}
		}
	}
	for _, x := range l.all {
		for i, r := range x.Reads {
			if r.State == history.FinalCommitted && r.Writer == "" {
				x.Reads[i].Writer = writers[version{r.Key, r.Timestamp}]
			}
		}
		h.Executions = append(h.Executions, x.Execution)
	}
	return h
}
