package kit

import (
	"fmt"
	"time"

	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/smr"
)

// A Desk is where the leader of a group takes what clients ask for, and answers them. It sees to it
// that what is proposed already is not proposed again, and that no more is taken than can be done.
//
// That a command is executed once does not depend on it: the session table of the state decides
// that for all replicas (sessions). A desk only spares work, and may forget everything at any time,
// as it does when the leader changes.
type Desk struct {
	cfg     smr.ReplicaConfig
	state   *State
	known   *Admission
	taken   map[ticket]job // what was proposed and is not yet applied
	bytes   int            // of the commands in taken
	replies map[ticketOf]int
	out     []outbox // in the order in which clients came up
}

type ticket struct {
	kind    EntryKind
	client  protocol.ID
	session SessionID
	seq     Seq
}

// job is what is known of an entry that was taken.
type job struct {
	wanted bool          // its result
	at     time.Duration // when it was taken
	bytes  int           // of its command
}

type ticketOf struct {
	client  protocol.ID
	session SessionID
}

type outbox struct {
	to protocol.ID
	Replies
}

// send sends answers to commands, in as many messages as it takes.
func (o outbox) send(env *protocol.Env[smr.Message]) {
	first, size := 0, 0
	for i, item := range o.Items {
		n := entryRoom + len(item.Result)
		if size += n; size > MessageBytes && i > first {
			env.SendAhead(o.to, Replies{Session: o.Session, Items: o.Items[first:i]})
			first, size = i, n
		}
	}
	env.SendAhead(o.to, Replies{Session: o.Session, Items: o.Items[first:]})
}

// NewDesk returns the desk of a replica, which knows who waits to be added by its admission. The
// configuration has its defaults.
func NewDesk(cfg smr.ReplicaConfig, state *State, known *Admission) *Desk {
	state.maxAnswerBytes = cfg.MaxAnswerBytes
	return &Desk{cfg: cfg, state: state, known: known, taken: map[ticket]job{}, replies: map[ticketOf]int{}}
}

// Reset forgets what was taken: the replica does not lead any more, or begins to. Nobody is told:
// what was taken may still be decided, so "not executed" would be a guess. The clients ask again.
func (d *Desk) Reset() {
	clear(d.taken)
	d.bytes = 0
}

// Taken returns how many entries were taken and are not applied.
func (d *Desk) Taken() int { return len(d.taken) }

// Take appends to entries what is to be proposed for a client's message. The rest is answered: with
// what is known already, or as too much.
func (d *Desk) Take(env *protocol.Env[smr.Message], from protocol.ID, msg smr.Message, entries []Entry) []Entry {
	switch msg := msg.(type) {
	case Request:
		return d.takeCommands(env, from, msg, entries)
	case OpenRequest:
		if len(d.taken) >= d.cfg.MaxPending {
			env.Send(from, Busy{Open: true})
			return entries
		}
		// The bounds go into the entry, so that all replicas apply the same ones, however each is
		// configured.
		e := Entry{
			Kind: OpenSession, Client: from, Seq: msg.Nonce,
			Open: &Open{MaxSessions: uint64(d.cfg.MaxSessions), Window: Seq(d.cfg.MaxPending)},
		}
		return d.take(env, e, true, entries)
	}
	return entries
}

func (d *Desk) takeCommands(env *protocol.Env[smr.Message], from protocol.ID, req Request, entries []Entry) []Entry {
	var busy []Seq
	for _, c := range req.Commands {
		e := Entry{Kind: Command, Client: from, Session: req.Session, Seq: c.Seq, Acked: min(req.Acked, c.Seq),
			Command: c.Command}
		// A session that is not in this state may be in the newest one: what comes of the entry
		// decides.
		if r, ok := d.state.Seen(e); ok && !r.Gone && r.Outcome != smr.Rejected {
			d.reply(e, r, !c.Brief)
		} else if len(d.taken) >= d.cfg.MaxPending || d.bytes > 0 && d.bytes+len(c.Command) > d.cfg.MaxPendingBytes {
			busy = append(busy, c.Seq)
		} else {
			entries = d.take(env, e, !c.Brief, entries)
		}
	}
	if busy != nil {
		env.Send(from, Busy{Session: req.Session, Seqs: busy})
	}
	return entries
}

// TakeChange is Take for a change of the members. A protocol asks Behind first, and what else makes
// the change impossible now.
func (d *Desk) TakeChange(
	env *protocol.Env[smr.Message], from protocol.ID, req ChangeRequest, entries []Entry,
) []Entry {
	e := Entry{
		Kind: ChangeMembers, Client: from, Session: req.Session, Seq: req.Seq, Acked: min(req.Acked, req.Seq),
		Members: &MemberChange{Change: req.Change},
	}
	if r, ok := d.state.Seen(e); ok && r.Outcome != smr.Unknown {
		d.reply(e, r, true)
		return entries
	}
	if len(d.taken) >= d.cfg.MaxPending {
		env.Send(from, Busy{Session: req.Session, Seqs: []Seq{req.Seq}})
		return entries
	}
	if id := req.Change.Add.ID; req.Change.Remove == 0 {
		disk, ok := d.known.Joiner(id)
		_, member := d.state.Member(id)
		if !ok && !member && !d.state.Removed(id) {
			env.Send(from, req.NotYet(fmt.Sprintf("replica %d has not said that it is there: start it with Join set", id)))
			return entries
		}
		e.Members.Incarnation = disk
	}
	return d.take(env, e, true, entries)
}

func (d *Desk) take(env *protocol.Env[smr.Message], e Entry, wanted bool, entries []Entry) []Entry {
	t := ticketFor(e)
	if _, ok := d.taken[t]; ok {
		return entries
	}
	d.taken[t] = job{wanted, env.Now, len(e.Command)}
	d.bytes += len(e.Command)
	return append(entries, e)
}

func ticketFor(e Entry) ticket { return ticket{e.Kind, e.Client, e.Session, e.Seq} }

// Applied queues the answer to an entry that was applied. Replicas that do not lead do not call it.
func (d *Desk) Applied(env *protocol.Env[smr.Message], e Entry, r Reply) {
	if e.Kind == NoOp || e.Client == protocol.App {
		return
	}
	t := ticketFor(e)
	was, ok := d.taken[t]
	delete(d.taken, t)
	d.bytes -= was.bytes
	if ok && e.Kind == Command && d.cfg.Executed != nil {
		d.cfg.Executed(r.Outcome, max(0, env.Now-was.at))
	}
	if e.Kind == OpenSession { // not among the Replies, which are of a session that the client knows
		env.SendAhead(e.Client, OpenReply{Nonce: e.Seq, Session: r.Session, Window: r.Window})
		return
	}
	d.reply(e, r, was.wanted || !ok)
}

// reply queues an answer. Whoever wants a result that is not there any more, or does not fit in a
// message, is told that the command was executed and the result is not known: to say that it failed
// would invite the caller to do it again.
func (d *Desk) reply(e Entry, r Reply, wanted bool) {
	key := ticketOf{e.Client, e.Session}
	i, ok := d.replies[key]
	if !ok {
		i = len(d.out)
		d.replies[key] = i
		d.out = append(d.out, outbox{to: e.Client, Replies: Replies{Session: e.Session}})
	}
	item := CommandReply{Seq: e.Seq, Outcome: r.Outcome, Slot: r.Slot, Result: r.Result, Reason: r.Reason, Gone: r.Gone}
	if lacks := r.Outcome == smr.Committed && r.Reason != ""; lacks && wanted {
		item.Outcome, item.Reason = smr.Unknown,
			fmt.Sprintf("the command was executed at slot %d, but its result is not there: %s", r.Slot, r.Reason)
	} else if lacks {
		item.Reason = ""
	}
	if n := len(item.Result); !wanted {
		item.Result = nil
	} else if n > smr.MaxCommandBytes {
		item.Outcome, item.Result = smr.Unknown, nil
		item.Reason = fmt.Sprintf("the command was executed at slot %d, but its result has %d bytes, more than %d", r.Slot, n,
			smr.MaxCommandBytes)
	}
	d.out[i].Items = append(d.out[i].Items, item)
}

// Flush sends the answers that are queued, together for each client. A protocol calls it at the end
// of a call. They do not wait for the replica's own disk: what they say is on the disks of a
// majority.
func (d *Desk) Flush(env *protocol.Env[smr.Message]) {
	for i := range d.out {
		d.out[i].send(env)
	}
	if len(d.out) > 0 {
		clear(d.out)
		d.out = d.out[:0]
		clear(d.replies)
	}
}

// Forget says that an entry that was taken is not proposed. The protocol answers the client.
func (d *Desk) Forget(e Entry) {
	t := ticketFor(e)
	d.bytes -= d.taken[t].bytes
	delete(d.taken, t)
}

// GiveBack says that entries that were taken cannot be proposed now. The clients are told that
// there is too much to do, and ask again.
func (d *Desk) GiveBack(env *protocol.Env[smr.Message], entries []Entry) {
	for _, e := range entries {
		d.Forget(e)
		switch e.Kind {
		case OpenSession:
			env.Send(e.Client, Busy{Open: true})
		case Command, ChangeMembers:
			env.Send(e.Client, Busy{Session: e.Session, Seqs: []Seq{e.Seq}})
		}
	}
}
