package mencius

import (
	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/smr"
	"github.com/foresay/foresay/smr/kit"
)

// onRead takes queries. They wait until all is executed that may have been acknowledged before they
// came. A command that was, was accepted by a majority; so a majority, asked later, includes one
// that has seen it.
func (r *replica) onRead(env *protocol.Env[smr.Message], from protocol.ID, m kit.ReadRequest) {
	r.reads.Take(env, r.Cfg, from, m.Queries, 0)
}

// askRound asks the members how far they have seen commands, if there are queries that wait for it.
// Those of an epoch that ends wait for the next.
func (r *replica) askRound(env *protocol.Env[smr.Message]) {
	if r.epoch.last == 0 && r.reads.Next() {
		r.look(env)
	}
}

func (r *replica) look(env *protocol.Env[smr.Message]) {
	r.looked = 0
	for _, id := range r.epoch.members {
		if m := (look{r.epoch.number, r.reads.Round()}); id != r.Cfg.ID {
			r.Admission.SendAhead(env, id, m)
		} else {
			r.onSeen(env, id, seen{m.Epoch, m.Round, r.seen})
		}
	}
}

// lookAgain repeats a question that is not answered.
func (r *replica) lookAgain(env *protocol.Env[smr.Message]) {
	if r.looked++; r.looked >= 2 && r.reads.Unanswered() {
		r.look(env)
	}
}

func (r *replica) onLook(env *protocol.Env[smr.Message], from protocol.ID, m look) {
	if m.Epoch == r.epoch.number {
		r.Admission.SendAhead(env, from, seen{m.Epoch, m.Round, r.seen})
	}
}

func (r *replica) onSeen(env *protocol.Env[smr.Message], from protocol.ID, m seen) {
	if m.Epoch == r.epoch.number {
		r.reads.Heard(from, m.Round, m.Slot)
		r.answerReads(env)
	}
}

// answerReads answers what is executed far enough. A change of the members may hide what comes
// behind it from those who have answered.
func (r *replica) answerReads(env *protocol.Env[smr.Message]) {
	if r.epoch.last != 0 {
		return
	}
	voters := r.epoch.members
	if r.reads.Answer(env, r.State, voters) > 0 {
		r.soon(env)
	}
}
