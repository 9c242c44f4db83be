package kit

import (
	"fmt"
	"slices"

	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/smr"
)

// Bounds of replicas that a leader brings up to date before they are members.
const (
	MaxLearners   = 4
	LearnerWanted = 50 // round trips after which a silent learner is forgotten
)

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

// Behind returns why a change would add a replica too early, "" if it would not. A replica that is
// not up to date would only make the majority larger: the group would have to wait for it, or for
// all others.
//
// ready is the protocol's rule. It is asked about a replica that waits to be added, and the disk
// that it waits with. why says what else than time is needed, if anything. Behind does not judge
// other changes: TakeChange or the state has the answer to those.
func (d *Desk) Behind(
	env *protocol.Env[smr.Message], change smr.Change,
	ready func(env *protocol.Env[smr.Message], id protocol.ID, disk Incarnation) (ok bool, why string),
) string {
	id := change.Add.ID
	_, member := d.state.Member(id)
	disk, waits := d.known.Joiner(id)
	if change.Remove != 0 || member || !waits || d.state.Removed(id) {
		return ""
	}
	switch ok, why := ready(env, id, disk); {
	case ok:
		return ""
	case why != "":
		return why
	}
	return fmt.Sprintf("replica %d is being brought up to date", id)
}

// Change takes a change of the members. A new one is brought up to date first: until it is, by the
// protocol's rule, the client is told why not.
func (d *Desk) Change(
	env *protocol.Env[smr.Message], from protocol.ID, req ChangeRequest,
	ready func(env *protocol.Env[smr.Message], id protocol.ID, disk Incarnation) (ok bool, why string), entries []Entry,
) []Entry {
	d.Meet(env, req.Change)
	if reason := d.Behind(env, req.Change, ready); reason != "" {
		env.SendAhead(from, req.NotYet(reason))
		return entries
	}
	return d.TakeChange(env, from, req, entries)
}
