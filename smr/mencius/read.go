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

// startPoll asks the members how far they have seen commands, if there are queries that wait for
// it. Those of an epoch that ends wait for the next.
func (r *replica) startPoll(env *protocol.Env[smr.Message]) {
	if r.epoch.last == 0 && r.reads.Next() {
		r.sendPoll(env)
	}
}

func (r *replica) sendPoll(env *protocol.Env[smr.Message]) {
	r.pollAge = 0
	for _, id := range r.epoch.members {
		if m := (poll{r.epoch.number, r.reads.Round()}); id != r.Cfg.ID {
			r.Admission.SendAhead(env, id, m)
		} else {
			r.onPolled(env, id, polled{m.Epoch, m.Round, r.seen})
		}
	}
}

// pollAgain repeats a question that is not answered.
func (r *replica) pollAgain(env *protocol.Env[smr.Message]) {
	if r.pollAge++; r.pollAge >= 2 && r.reads.Unanswered() {
		r.sendPoll(env)
	}
}

func (r *replica) onPoll(env *protocol.Env[smr.Message], from protocol.ID, m poll) {
	if m.Epoch == r.epoch.number {
		r.Admission.SendAhead(env, from, polled{m.Epoch, m.Round, r.seen})
	}
}

func (r *replica) onPolled(env *protocol.Env[smr.Message], from protocol.ID, m polled) {
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
