package kit

import (
	"slices"

	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/smr"
)

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

// Meet tells the application where a replica is that somebody wants to be a member: before it is
// one it has to be answered and brought up to date. A protocol calls it with each request for a
// change.
func (d *Desk) Meet(env *protocol.Env[smr.Message], change smr.Change) {
	id := change.Add.ID
	if _, member := d.state.Member(id); member || change.Validate() != nil || change.Remove != 0 || d.state.Removed(id) {
		return
	}
	env.Send(protocol.App, smr.MembersChanged{Members: append(slices.Clone(d.state.Members()), change.Add), Joining: id})
}
