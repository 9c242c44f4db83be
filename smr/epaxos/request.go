package epaxos

import (
	"slices"

	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/smr"
	"github.com/foresay/foresay/smr/kit"
)

// ticket names a command of a client.
type ticket struct {
	client  protocol.ID
	session kit.SessionID
	seq     kit.Seq
}

func ticketOf(e kit.Entry) ticket { return ticket{e.Client, e.Session, e.Seq} }

// early is a command whose client waits until it is decided, not executed.
type early struct {
	told  bool
	stamp uint64 // of its instance, if told
}

// maxAfter bounds the causal bounds that are believed: the stamps that follow have to fit above.
const maxAfter = 1 << 60

// onRequest takes commands, which come after those of which the client was told. Any replica does.
//
// A client may wait only until its command is decided (Early). It is told the stamp then, which
// orders what conflicts, and sends it with its next commands: they must not be executed before one
// that it was told of, though nothing has been executed yet. So the replica's stamp rises at least
// to that. A repeated request is answered from early, as the command may be far from execution.
func (r *replica) onRequest(env *protocol.Env[smr.Message], from protocol.ID, m kit.Request) {
	if m.After < maxAfter {
		r.stamp = max(r.stamp, uint64(m.After))
	}
	soon := map[kit.Seq]bool{}
	for _, c := range m.Commands {
		if !c.Early {
			continue
		}
		soon[c.Seq] = true
		if t, ok := r.early[ticket{from, m.Session, c.Seq}]; ok && t.told {
			item := kit.CommandReply{Seq: c.Seq, Outcome: smr.Committed, Slot: smr.Slot(t.stamp)}
			env.SendAhead(from, kit.Replies{Session: m.Session, Items: []kit.CommandReply{item}})
		}
	}
	had := len(r.queue)
	r.queue = r.Desk.Take(env, from, m, r.queue)
	for _, e := range r.queue[had:] {
		if soon[e.Seq] {
			r.early[ticketOf(e)] = early{}
		}
	}
	r.Soon(env)
}

// onClient takes what a client asks for.
func (r *replica) onClient(env *protocol.Env[smr.Message], from protocol.ID, msg smr.Message) {
	if !r.mayServe(env, from) {
		return
	}
	switch msg := msg.(type) {
	case kit.Request:
		r.onRequest(env, from, msg)
	case kit.OpenRequest:
		r.queue = r.Desk.Take(env, from, msg, r.queue)
		r.Soon(env)
	case kit.ChangeRequest:
		r.Desk.Meet(env, msg.Change)
		r.queue = r.Desk.TakeChange(env, from, msg, r.queue)
		r.Soon(env)
	case kit.ReadRequest:
		r.onRead(env, from, msg)
	}
}

// mayServe reports whether the replica takes part. If not, it names another one.
func (r *replica) mayServe(env *protocol.Env[smr.Message], from protocol.ID) bool {
	if r.active {
		return true
	}
	var other smr.Member
	if _, member := r.State.Member(r.Cfg.ID); member {
		env.SendAhead(from, kit.Redirect{}) // not yet
		return false
	}
	if group := slices.DeleteFunc(r.State.Members(), func(m smr.Member) bool { return m.ID == r.Cfg.ID }); len(group) > 0 {
		other = group[env.Rand.IntN(len(group))]
	}
	env.SendAhead(from, kit.Redirect{Leader: other})
	return false
}

// giveBack says that a command cannot be proposed now.
func (r *replica) giveBack(env *protocol.Env[smr.Message], p *proposal) {
	for _, e := range p.entries {
		delete(r.early, ticketOf(e))
	}
	r.Desk.GiveBack(env, p.entries)
	r.reads.queue = append(r.reads.queue, p.reads...)
}

// acknowledge tells clients that want no more of commands that are decided. It is called when that
// is on the disks of a majority, or of this replica on the fast path.
func (r *replica) acknowledge(env *protocol.Env[smr.Message], i *instance) {
	p := r.mine[i.id]
	if p == nil || p.silent {
		return
	}
	for k := 0; k < len(p.entries); {
		first := p.entries[k]
		out := kit.Replies{Session: first.Session}
		for ; k < len(p.entries) && p.entries[k].Client == first.Client && p.entries[k].Session == first.Session; k++ {
			t := ticketOf(p.entries[k])
			if e, ok := r.early[t]; ok && !e.told {
				r.early[t] = early{told: true, stamp: i.cmd.Stamp}
				out.Items = append(out.Items, kit.CommandReply{Seq: t.seq, Outcome: smr.Committed, Slot: smr.Slot(i.cmd.Stamp)})
			}
		}
		if len(out.Items) > 0 {
			env.SendAhead(first.Client, out)
		}
	}
}

// executed answers an entry that was executed, unless its client was answered before.
func (r *replica) executed(env *protocol.Env[smr.Message], e kit.Entry, reply kit.Reply) {
	t := ticketOf(e)
	told := r.early[t].told
	delete(r.early, t)
	if told {
		r.Desk.Forget(e)
		return
	}
	r.Desk.Applied(env, e, reply)
}
