package mencius

import (
	"fmt"

	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/smr"
	"github.com/foresay/foresay/smr/kit"
)

// onChange takes a change of the members. A new one is brought up to date first: until it is, it
// would only make the majority larger.
func (r *replica) onChange(env *protocol.Env[smr.Message], from protocol.ID, m kit.ChangeRequest) {
	r.Desk.Meet(env, m.Change)
	id := m.Change.Add.ID
	_, member := r.State.Member(id)
	if _, there := r.Admission.Joiner(id); m.Change.Remove == 0 && there && !member && !r.State.Removed(id) {
		p, ok := r.progress.Of(id)
		if !ok || epochNumber(p.Epoch) != r.epoch.number || p.Applied+window/4 < r.State.Applied() {
			env.SendAhead(from, kit.NotYet{Session: m.Session, Seq: m.Seq,
				Reason: fmt.Sprintf("replica %d is being brought up to date", id)})
			return
		}
	}
	e := kit.Entry{Kind: kit.ChangeMembers, Client: from, Session: m.Session, Seq: m.Seq}
	if reply, applied := r.State.Seen(e); applied && !reply.Gone && reply.Outcome == smr.Committed && r.epoch.last != 0 {
		return // it comes into force when the epoch has ended; the client asks again
	}
	r.queue = r.Desk.TakeChange(env, from, m, r.Admission, r.queue)
}
