package tapir

import (
	"fmt"
	"slices"
	"time"

	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/store"
	"github.com/foresay/foresay/store/kit"
)

// Say T reads x and writes y, which are on two shards of three servers each. The coordinator
// proposes T's parts to all six at once. Each server votes by itself, and in its own order: there
// is no leader, and no log. All three of the one shard vote yes, which is a result. Of the other
// one two vote yes, which is not: the coordinator has a majority accept the yes first. Now it may
// tell the client.
//
// The rule: a commit is told only when each shard has a result that nobody can change any more
// (plant "a commit is told when one shard has come to a yes"). For the coordinator may crash right
// then. It has nothing on disk, so another one has to find the same results by asking the servers.
// It does so with a later ballot; and a coordinator never uses a ballot of an earlier attempt
// again, as with that it could ask for another result (plant "a coordinator uses a ballot twice").
// Answers of two views do not count together, since a view change may have settled what was open in
// between (plant "answers of two views count together").

// Timers of a coordinator.
type (
	stepTimer  struct{ id store.TxnID }
	againTimer struct{ id store.TxnID }
)

// Limits of a coordinator's work on a transaction. Servers ask again for what is left.
const (
	maxTries    = 8 // until it gives up
	maxTold     = 6 // until who has not carried out a decision is left out
	silentAfter = 3 // how often a server leaves a question open until it is not waited for
)

// coordinator is the node that has transactions prepared and decided: TAPIR's client, but for what
// it reads. It forgets all with a crash: servers then ask it, or another one, to finish what is
// open.
type coordinator struct {
	cfg     store.Config
	shards  map[protocol.ID]store.Place
	entries map[store.TxnID]*task
	silent  map[protocol.ID]int // how many questions in a row a server has left open
}

// task is a transaction that the coordinator is at.
type task struct {
	id      store.TxnID
	shards  []uint32
	clients []protocol.ID
	ballot  ballot
	parts   []*part // by place in shards
	decided *store.Decided
	fast    bool // it was decided so
	hint    uint64
	tries   int
}

// newCoordinator returns a coordinator. The error names the field of the configuration that is
// wrong.
func newCoordinator(cfg store.Config) (*coordinator, error) {
	cfg, _, err := kit.CoordinatorConfig("tapir", cfg)
	if err != nil {
		return nil, err
	}
	shards, _ := cfg.Layout.Places()
	return &coordinator{cfg: cfg, shards: shards, entries: map[store.TxnID]*task{}, silent: map[protocol.ID]int{}}, nil
}

// Start implements protocol.Node.
func (c *coordinator) Start(*protocol.Env[store.Message], []protocol.Record[store.Message]) {}

// Receive implements protocol.Node.
func (c *coordinator) Receive(env *protocol.Env[store.Message], from protocol.ID, msg store.Message) {
	delete(c.silent, from)
	switch m := msg.(type) {
	case store.CommitRequest:
		c.onCommit(env, from, m)
	case answer:
		c.onAnswer(env, from, m)
	case confirm:
		c.onConfirm(env, from, m)
	case carried:
		c.onCarried(env, from, m)
	case finish:
		c.onFinish(env, from, m)
	}
}

// Expire implements protocol.Node.
func (c *coordinator) Expire(env *protocol.Env[store.Message], t protocol.Timer) {
	switch t := t.(type) {
	case stepTimer:
		if k := c.entries[t.id]; k != nil {
			c.late(env, k)
		}
	case againTimer:
		if k := c.entries[t.id]; k != nil && k.decided == nil {
			c.begin(env, k)
		}
	}
}

// onCommit begins a transaction, or finds out what became of it. One that somebody else may have
// begun is begun with a ballot of a later round.
func (c *coordinator) onCommit(env *protocol.Env[store.Message], from protocol.ID, m store.CommitRequest) {
	if m.Txn.Validate() != nil || len(m.Txn.Reads)+len(m.Txn.Writes) == 0 {
		return
	}
	if k := c.entries[m.Txn.ID]; k != nil {
		if k.decided != nil {
			c.tell(env, k, from)
		} else if !slices.Contains(k.clients, from) {
			k.clients = append(k.clients, from)
		}
		return
	}
	parts, shards := c.cfg.Layout.Split(m.Txn)
	k := c.task(env, m.Txn.ID, shards)
	if k == nil {
		env.Send(from, store.Busy{ID: m.Txn.ID})
		return
	}
	k.clients = []protocol.ID{from}
	for i, p := range k.parts {
		p.has, p.txn = true, parts[i]
	}
	if m.Recover {
		k.ballot.Round = 1
	}
	c.begin(env, k)
}

// onFinish finds out about a transaction for a server: the cooperative termination of what its
// coordinator has left.
func (c *coordinator) onFinish(env *protocol.Env[store.Message], from protocol.ID, m finish) {
	place, ok := c.shards[from]
	i, mine := slices.BinarySearch(m.Shards, uint32(place.Index))
	if !ok || !mine || c.entries[m.ID] != nil || m.ID.IsZero() || !c.cfg.Layout.ValidShards(m.Shards) {
		return
	}
	k := c.task(env, m.ID, m.Shards)
	if k == nil {
		return
	}
	k.ballot.Round = 1
	k.parts[i].has, k.parts[i].txn = m.Has, m.Part
	c.begin(env, k)
}

// task returns a new one, or nil if there is no room. Its ballots are its own: a coordinator that
// has given a transaction up, and is at it again, does not speak for what it was about to do
// before.
func (c *coordinator) task(env *protocol.Env[store.Message], id store.TxnID, shards []uint32) *task {
	if len(c.entries) >= c.cfg.MaxTxns {
		return nil
	}
	k := &task{id: id, shards: shards, ballot: ballot{By: drawn(env.Rand)}}
	for _, s := range shards {
		k.parts = append(k.parts, newPart(c.cfg.Layout, s))
	}
	c.entries[id] = k
	return k
}

// begin asks all servers with the task's ballot. What is chosen stays so.
func (c *coordinator) begin(env *protocol.Env[store.Message], k *task) {
	for _, p := range k.parts {
		if p.stage != chosen {
			p.ask()
			c.send(env, k, p)
		}
	}
	env.After(c.cfg.RoundTrip+c.cfg.RoundTrip/4, stepTimer{k.id})
}

// send asks the servers of a shard that have not answered.
func (c *coordinator) send(env *protocol.Env[store.Message], k *task, p *part) {
	for _, id := range p.missing() {
		if p.stage == asking {
			env.Send(id, propose{k.id, k.shards, k.ballot, p.has, p.txn, k.ballot.Round > 0})
		} else {
			env.Send(id, accept{k.id, k.shards, p.view, k.ballot, p.yes, p.reason})
		}
	}
}

// find returns the task and the part that a server's word is on.
func (c *coordinator) find(id store.TxnID, from protocol.ID) (*task, *part) {
	k := c.entries[id]
	place, ok := c.shards[from]
	if k == nil || !ok {
		return nil, nil
	}
	i, ok := slices.BinarySearch(k.shards, uint32(place.Index))
	if !ok {
		return nil, nil
	}
	return k, k.parts[i]
}

// onAnswer takes a server's answer to a proposal. Whatever else it says, it may have the part of
// the transaction, or tell that the server has forgotten it. Then the cases go from what ends the
// question to what counts as a vote. A decision on a server's record is final, whoever made it. A
// vote counts in the newest view only, since a change of the view may have come to another result,
// and in this task's ballot only: a server that has promised a higher one confirms nothing more in
// this one.
func (c *coordinator) onAnswer(env *protocol.Env[store.Message], from protocol.ID, m answer) {
	k, p := c.find(m.ID, from)
	if k == nil {
		return
	}
	if !p.known() {
		if m.Has {
			p.has, p.txn = true, m.Part
		}
		if m.Forgot {
			p.forgot[from] = true
		}
		if k.decided != nil && p.known() {
			c.tellServers(env, k)
		}
	}
	switch {
	case k.decided != nil:
	case m.End == committed:
		c.settle(env, k, true, store.NoReason)
	case m.End == aborted:
		c.settle(env, k, false, m.Reason)
	case p.stage == chosen:
	case m.View < p.view:
		env.Send(from, viewChange{p.view}) // which it has missed
	case m.Promised.compare(k.ballot) > 0:
		c.preempted(env, k, m.Promised)
	case m.Promised == k.ballot:
		if m.View > p.view { // what was answered before it may not hold any more
			stale := len(p.answers)+len(p.confirm) > 0 || p.stage == accepting
			if p.view = m.View; stale {
				p.ask()
				c.send(env, k, p)
				return
			}
		}
		if p.stage == asking {
			p.answers[from] = m
			c.step(env, k, p, false)
		}
	}
}

// preempted has the coordinator find out about a transaction that another one is at, with a ballot
// of a later round, when that one has had the time to end. The wait is random, so that two
// coordinators do not go on preempting each other.
func (c *coordinator) preempted(env *protocol.Env[store.Message], k *task, by ballot) {
	if k.ballot.Round > by.Round {
		return // it is about to begin already
	}
	if k.ballot.Round = by.Round; by.Round < lastRound {
		k.ballot.Round++
	} else { // round 0 is not the next one: in that votes alone decide
		k.ballot.By = drawn(env.Rand)
	}
	for _, p := range k.parts {
		if p.stage != chosen {
			p.ask()
		}
	}
	env.Stop(stepTimer{k.id})
	env.After(c.cfg.RoundTrip+time.Duration(env.Rand.Int64N(int64(2*c.cfg.RoundTrip))), againTimer{k.id})
}

// step does what follows from the answers of a shard.
func (c *coordinator) step(env *protocol.Env[store.Message], k *task, p *part, late bool) {
	late = late || !slices.ContainsFunc(p.missing(), func(id protocol.ID) bool { return c.silent[id] < silentAfter })
	switch p.choose(k.ballot, k.ballot.Round == 0, late) {
	case goAccept:
		c.send(env, k, p)
	case changeView:
		for _, id := range p.group {
			env.Send(id, viewChange{p.view + 1})
		}
	case goChosen:
		c.maybeSettle(env, k)
	}
}

// onConfirm counts who has accepted the result of the slow path. A majority in one view and one
// ballot makes it final: whoever finds out about the transaction later, by another ballot or in a
// later view, asks a majority, too, and so meets one of them.
func (c *coordinator) onConfirm(env *protocol.Env[store.Message], from protocol.ID, m confirm) {
	k, p := c.find(m.ID, from)
	if k == nil || k.decided != nil || p.stage != accepting || m.View != p.view || m.Ballot != k.ballot {
		return
	}
	if p.confirm[from] = true; len(p.confirm) >= p.slow {
		p.stage = chosen
		c.maybeSettle(env, k)
	}
}

// maybeSettle decides: to commit if all shards have come to a yes. As nobody can come to other
// results, nobody can decide otherwise.
func (c *coordinator) maybeSettle(env *protocol.Env[store.Message], k *task) {
	all := true
	for _, p := range k.parts {
		if p.stage == chosen && !p.yes {
			c.settle(env, k, false, p.reason)
			return
		}
		all = all && p.stage == chosen
	}
	if all {
		// What was chosen otherwise than by the same answer of a supermajority was confirmed.
		k.fast = !slices.ContainsFunc(k.parts, func(p *part) bool { return len(p.confirm) > 0 })
		c.settle(env, k, true, store.NoReason)
	}
}

// settle tells clients and servers what became of a transaction.
func (c *coordinator) settle(env *protocol.Env[store.Message], k *task, commit bool, why store.Reason) {
	k.decided = &store.Decided{ID: k.id, Verdict: store.Aborted, Reason: why}
	switch {
	case commit:
		k.decided.Verdict, k.decided.Fast = store.Committed, k.fast
	case why == store.Old:
		k.decided.Verdict = store.Unknown // it may have been carried out everywhere, and forgotten
	case why == store.StaleWrite:
		for _, p := range k.parts {
			k.hint = max(k.hint, p.hint)
		}
	}
	for _, id := range k.clients {
		c.tell(env, k, id)
	}
	k.clients, k.tries = nil, 0
	env.Stop(againTimer{k.id})
	env.After(2*c.cfg.RoundTrip, stepTimer{k.id})
	c.tellServers(env, k)
}

// tell tells a client. If a later timestamp may do it is told which.
func (c *coordinator) tell(env *protocol.Env[store.Message], k *task, client protocol.ID) {
	if k.hint > 0 {
		env.Send(client, store.SiteVote{ID: k.id, Shards: k.shards, Reason: k.decided.Reason, Hint: k.hint})
		return
	}
	env.Send(client, *k.decided)
}

// tellServers tells those that have not carried out the decision. Those of a shard whose part is
// not known here are asked for it.
func (c *coordinator) tellServers(env *protocol.Env[store.Message], k *task) {
	commit := k.decided.Verdict == store.Committed
	for _, p := range k.parts {
		for _, id := range p.group {
			switch {
			case p.carried[id]:
			case commit && !p.known():
				env.Send(id, propose{ID: k.id, Shards: k.shards, Ballot: k.ballot, Whole: true})
			default:
				m := decide{ID: k.id, Shards: k.shards, Commit: commit, Reason: k.decided.Reason}
				if commit && p.has {
					m.Has, m.Part = true, p.txn
				}
				env.Send(id, m)
			}
		}
	}
}

// onCarried notes that a server has carried out the decision. The count is of one view: with the
// first answer in a later one it begins anew, among that view's members.
func (c *coordinator) onCarried(env *protocol.Env[store.Message], from protocol.ID, m carried) {
	k, p := c.find(m.ID, from)
	if k == nil || k.decided == nil {
		return
	}
	if m.View < p.carriedIn {
		env.Send(from, viewChange{p.carriedIn}) // which it has missed
	}
	p.carry(from, m)
	c.maybeDone(env, k)
}

// maybeDone lets servers forget a transaction that is done at all shards.
func (c *coordinator) maybeDone(env *protocol.Env[store.Message], k *task) {
	var but []protocol.ID
	for _, p := range k.parts {
		if !p.done() {
			return
		}
		for _, id := range p.group {
			if !p.carried[id] {
				but = append(but, id)
			}
		}
	}
	for _, p := range k.parts {
		for _, id := range p.group {
			env.SendUnhurried(id, done{k.id, but})
		}
	}
	c.end(env, k)
}

// exclude has the servers of a shard go on without those that have not carried out a decision for
// long.
func (c *coordinator) exclude(env *protocol.Env[store.Message], k *task) {
	for _, p := range k.parts {
		if p.stuck() {
			for _, id := range p.group {
				env.Send(id, viewChange{p.carriedIn + 1})
			}
		}
	}
}

func (c *coordinator) end(env *protocol.Env[store.Message], k *task) {
	delete(c.entries, k.id)
	env.Stop(stepTimer{k.id})
	env.Stop(againTimer{k.id})
}

// late goes by the answers that are there, and asks again those that have not answered.
func (c *coordinator) late(env *protocol.Env[store.Message], k *task) {
	env.After(2*c.cfg.RoundTrip, stepTimer{k.id})
	k.tries++
	if k.decided != nil {
		if k.tries > maxTold {
			c.exclude(env, k)
			c.end(env, k) // servers ask for what is left
			return
		}
		c.tellServers(env, k)
		return
	}
	if k.tries > maxTries {
		c.end(env, k)
		return
	}
	for _, p := range k.parts {
		for _, id := range p.missing() {
			c.silent[id]++
		}
		if p.stage == asking {
			if c.step(env, k, p, true); k.decided != nil {
				return
			}
		}
		if k.tries > 1 || p.stage == asking {
			c.send(env, k, p)
		}
	}
}

// Check implements protocol.Checked.
func (c *coordinator) Check() error {
	for id, k := range c.entries { //pure:ok any broken one is an error
		if k.id != id || len(k.parts) != len(k.shards) {
			return fmt.Errorf("tapir: coordinator %d: %v is kept as %+v", c.cfg.ID, id, *k)
		}
		for _, p := range k.parts {
			for _, a := range p.answers { //pure:ok any broken one is an error
				if p.stage == asking && (a.View != p.view || a.Promised != k.ballot) && k.decided == nil {
					return fmt.Errorf("tapir: coordinator %d: %v goes by an answer in view %d to %v, and asks in %d with %v",
						c.cfg.ID, id, a.View, a.Promised, p.view, k.ballot)
				}
			}
		}
	}
	return nil
}
