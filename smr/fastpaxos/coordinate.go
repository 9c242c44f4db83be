package fastpaxos

import (
	"slices"

	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/quorum"
	"github.com/foresay/foresay/smr"
	"github.com/foresay/foresay/smr/kit"
)

// luck is how fast rounds went of late.
type luck struct {
	slots, collided int // since the last verdict
	times           int // verdicts against them, in a row
	classic         int // beats, for which the coordinator does without them
}

// Bounds of fast rounds that fail.
const (
	trial = 64 // slots between two verdicts
	calm  = 50 // beats without fast rounds after a verdict against them, times two for each one in a row
)

// leading is what a coordinator knows.
type leading struct {
	era      kit.Ballot
	start    smr.Slot // what earlier coordinators may have had decided is not beyond it
	end      smr.Slot // the last slot that it gave out or has seen a vote for
	classic  bool     // no fast votes: it gives out the slots
	changing smr.Slot // the slot of a change of the members that is not applied: nothing is proposed above it
	tallies  map[smr.Slot]*tally
	proposed map[wish]smr.Slot // commands that it has proposed in a classic round
	wants    []*want           // what clients want and is not applied, in order
	accepts  []item            // to be proposed at the end of the call
	news     []item            // decided in this call
	suggest  []kit.Entry
	reads    kit.Rounds
	pollAge  int // beats since something was asked for reads
}

// tally is how the members have voted in a slot.
type tally struct {
	by      quorum.Votes
	votes   []vote
	classic bool // entry was proposed in the classic round
	entry   kit.Entry
	acks    quorum.Votes
	age     int // beats
}

// want is an entry that a client waits for.
type want struct {
	entry kit.Entry
	after smr.Slot
	age   int // beats, since it was voted on
	tries int
}

// Times in beats.
const (
	suggestAfter = 3 // before a command is voted on again that has no slot
	// at which a slot does not wait any more for votes beyond a majority: one and a half round
	// trips after the first one, at least, as a vote that comes a little later than usual still
	// spares a round
	recoverAfter = 4
)

// stopLeading forgets what only a coordinator needs. What it has proposed, or seen votes for, may
// still be chosen: the next coordinator finds it in phase 1. Clients ask again, and sessions see to
// it that a command is executed once.
func (r *replica) stopLeading() {
	if r.lead != nil {
		r.lead, r.open = nil, 0
		r.Desk.Reset()
	}
}

// take takes what a client wants from the coordinator.
func (r *replica) take(env *protocol.Env[smr.Message], from protocol.ID, msg smr.Message) {
	var entries []kit.Entry
	after := smr.Slot(0)
	switch m := msg.(type) {
	case kit.ReadRequest:
		r.onRead(env, from, m)
	case kit.ChangeRequest:
		entries = r.Desk.Change(env, from, m, r.upToDate, nil)
	case kit.Request:
		after = m.After
		entries = r.Desk.Take(env, from, m, nil)
	default:
		entries = r.Desk.Take(env, from, msg, nil)
	}
	for _, e := range entries {
		w := &want{entry: e, after: after}
		if e.Kind != kit.Command {
			w.age = suggestAfter // nobody has voted for it
		}
		r.lead.wants = append(r.lead.wants, w)
	}
	if len(entries) > 0 {
		r.propose(env, 0)
	}
}

// propose gives slots to what is wanted, in a classic era; in others it has commands voted on that
// nobody seems to have voted for.
func (r *replica) propose(env *protocol.Env[smr.Message], beats int) {
	l := r.lead
	for _, w := range l.wants {
		change := w.entry.Kind == kit.ChangeMembers
		w.age += beats
		switch _, proposed := l.proposed[wishFor(w.entry)]; {
		case proposed || l.changing != 0:
		case l.classic:
			s := max(l.end, w.after) + 1
			if s > r.State.Applied()+window {
				return
			}
			l.end = s
			r.proposeIn(s, w.entry)
			if change {
				l.changing = s
			}
		case change:
			if r.cand == nil {
				r.campaign(env, true)
			}
		case w.age >= suggestAfter<<w.tries:
			w.age, w.tries = 0, min(w.tries+1, 4)
			l.suggest = append(l.suggest, w.entry)
		}
	}
	for i, id := 0, r.State.MemberIDs(); len(l.suggest) > 0 && i < len(id); i++ {
		r.Admission.Send(env, id[i], suggest{r.head(r.promised), l.suggest})
	}
	l.suggest = nil
}

// proposeIn proposes an entry in the classic round of a slot.
func (r *replica) proposeIn(s smr.Slot, e kit.Entry) {
	t := r.lead.tally(s)
	t.classic, t.entry, t.age = true, e, 0
	if e.Kind != kit.NoOp {
		r.lead.proposed[wishFor(e)] = s
	}
	r.lead.accepts = append(r.lead.accepts, item{s, e})
}

func (l *leading) tally(s smr.Slot) *tally {
	t := l.tallies[s]
	if t == nil {
		t = &tally{}
		l.tallies[s] = t
	}
	return t
}

// onVoted counts fast votes. A member has one vote in a slot's fast round: of two that it tells,
// the first counts. Below the open slots the era has no fast round, and a vote there counts for
// nothing.
func (r *replica) onVoted(env *protocol.Env[smr.Message], from protocol.ID, m voted) {
	if r.lead == nil || m.Era != r.promised || r.lead.classic {
		return
	}
	for _, p := range m.Items {
		if !r.near(p.Slot) || r.cell(p.Slot).decided || p.Slot < r.open {
			continue
		}
		r.lead.end = max(r.lead.end, p.Slot)
		t := r.lead.tally(p.Slot)
		if t.by.Add(from) {
			t.votes = append(t.votes, vote{Slot: p.Slot, Era: m.Era, Entry: p.Entry})
			r.judge(env, p.Slot, t)
		}
	}
	r.execute(env)
}

// judge looks whether a slot's votes have chosen an entry, or whether those to come cannot any
// more. Which members are taken to be away, and how long is waited for the others, decides only
// when the slot is resolved. That is safe at any time from a majority's votes on: resolve takes
// every member that has not voted for one that may yet vote for any entry.
func (r *replica) judge(env *protocol.Env[smr.Message], s smr.Slot, t *tally) {
	if t.classic {
		return
	}
	members := r.State.MemberIDs()
	most := 0
	for i, v := range t.votes {
		same := 0
		for _, w := range t.votes[i:] {
			if w.Entry.Equal(v.Entry) {
				same++
			}
		}
		if same > most {
			most, t.entry = same, v.Entry
		}
	}
	if most >= r.fastQuorum() {
		r.weigh(env, false)
		r.decide(s, t.entry)
		return
	}
	left := 0
	for _, id := range members {
		if p, _ := r.progress.Of(id); !t.by.Has(id) && (id == r.Cfg.ID || p.Age < patience) {
			left++
		}
	}
	late := t.age >= recoverAfter
	if len(t.votes) >= quorum.Majority(len(members)) && (left+most < r.fastQuorum() || late) {
		r.weigh(env, most < len(t.votes))
		r.resolve(s, t)
	}
}

// weigh notes whether the votes for a slot have collided. If most do, fast rounds cost more than
// they save, and the coordinator goes over to a classic era for a while.
func (r *replica) weigh(env *protocol.Env[smr.Message], collided bool) {
	g := &r.luck
	g.slots++
	if collided {
		g.collided++
	}
	if g.slots < trial {
		return
	}
	if g.collided > g.slots/2 && r.cand == nil {
		g.times = min(g.times+1, maxTries)
		g.classic = calm << g.times
		r.campaign(env, true)
	} else if g.collided <= g.slots/2 {
		g.times = 0
	}
	g.slots, g.collided = 0, 0
}

// resolve proposes in a slot what may have been chosen, or if nothing was, what is wanted most: a
// command that was voted for here, or the one that waits for the longest time. The votes are those
// members' answers to phase 1 of the classic round, as they will not vote in the fast one again
// [MSR-TR-2005-112, §3.2 coordinated recovery].
func (r *replica) resolve(s smr.Slot, t *tally) {
	c := choose(t.votes, len(t.votes), len(r.State.MemberIDs()))
	if c.bound {
		r.proposeIn(s, c.entry)
		return
	}
	for _, v := range t.votes {
		if r.hasNoSlot(v.Entry) {
			r.proposeIn(s, v.Entry)
			return
		}
	}
	for _, w := range r.lead.wants {
		if w.entry.Kind != kit.ChangeMembers && w.after < s && r.hasNoSlot(w.entry) {
			r.proposeIn(s, w.entry)
			return
		}
	}
	r.proposeIn(s, kit.Entry{Kind: kit.NoOp})
}

// hasNoSlot reports whether a command has no slot that is decided or is about to be.
func (r *replica) hasNoSlot(e kit.Entry) bool {
	if e.Kind == kit.NoOp || e.Kind == kit.ChangeMembers {
		return false
	}
	_, proposed := r.lead.proposed[wishFor(e)]
	if !proposed {
		_, proposed = r.State.Seen(e)
	}
	return !proposed
}

// onAccepted counts classic votes. In an era the coordinator proposes one entry in a slot's classic
// round, and tally.entry stays what it was, so a slot and an era say for what a vote is.
func (r *replica) onAccepted(env *protocol.Env[smr.Message], from protocol.ID, m accepted) {
	if r.lead == nil || m.Era != r.promised {
		return
	}
	for _, s := range m.Slots {
		t := r.lead.tallies[s]
		if t == nil || !t.classic || !t.acks.Add(from) || !r.near(s) || r.cell(s).decided {
			continue
		}
		if members := r.State.MemberIDs(); t.acks.Among(members) >= quorum.Majority(len(members)) {
			r.decide(s, t.entry)
		}
	}
	r.execute(env)
}

// decide notes what is chosen in a slot.
func (r *replica) decide(s smr.Slot, e kit.Entry) {
	r.learn(s, e)
	if e.Kind != kit.NoOp {
		r.lead.proposed[wishFor(e)] = s
	}
	r.lead.news = append(r.lead.news, item{s, e})
	r.top = max(r.top, s)
	r.tries = 0
}

// tellDecided proposes and tells what the call has come to.
func (r *replica) tellDecided(env *protocol.Env[smr.Message]) {
	l := r.lead
	if l == nil {
		return
	}
	r.sendAccepts(env, l.accepts)
	small, large := split(l.news)
	for chunk := range chunks(small) {
		for _, id := range r.others() {
			// it is on the disks of a quorum
			r.Admission.SendAhead(env, id, decided{head: r.head(r.promised), Items: chunk})
		}
	}
	for _, id := range r.others() {
		if len(large) > 0 {
			r.Admission.SendAhead(env, id, decidedNames{r.head(r.promised), large})
		}
	}
	l.accepts, l.news = nil, nil
}

// sendAccepts proposes entries in classic rounds. It does not wait for the coordinator's disk,
// which coordinates no era again that it did before a crash.
func (r *replica) sendAccepts(env *protocol.Env[smr.Message], items []item) {
	for chunk := range chunks(items) {
		for _, id := range r.State.MemberIDs() {
			if m := (accept{r.head(r.promised), chunk}); id != r.Cfg.ID {
				r.Admission.SendAhead(env, id, m)
			} else {
				r.Admission.Send(env, id, m)
			}
		}
	}
}

// supervise looks in each beat for slots that do not get on, and repeats what may be lost. In a
// fast round a slot may wait for acceptors that have nothing to vote for there: fewer than a
// majority have voted, and nobody else ever would. They are told to vote for nothing (closeSlots),
// so that the slot can be resolved, and what is above it executed.
func (r *replica) supervise(env *protocol.Env[smr.Message]) {
	l := r.lead
	var again []item
	shut := smr.Slot(0)
	for s := r.State.Applied() + 1; s <= l.end; s++ {
		if r.cell(s).decided {
			continue
		}
		t := l.tally(s)
		t.age++
		switch {
		case t.classic && t.age > 1:
			again = append(again, item{s, t.entry})
		case t.classic:
		default:
			r.judge(env, s, t)
			if !t.classic && !r.cell(s).decided && t.age > recoverAfter {
				shut = s
			}
		}
		if len(again) >= r.Cfg.MaxBatch {
			break
		}
	}
	r.sendAccepts(env, again)
	if shut > 0 && !l.classic {
		for _, id := range r.State.MemberIDs() {
			r.Admission.Send(env, id, closeSlots{r.head(r.promised), shut})
		}
	}
	r.propose(env, 1)
	if r.lead == nil {
		return // a group of one has promised itself the next era
	}
	if l.classic && l.changing == 0 && r.cand == nil && r.rest == 0 {
		if r.luck.classic--; r.luck.classic <= 0 {
			r.campaign(env, false) // back to fast rounds
		}
	}
	if r.lead != nil {
		r.pollAgain(env)
	}
	r.execute(env)
}

// chunks cuts entries into parts that fit in a message.
func chunks(items []item) func(yield func([]item) bool) {
	return func(yield func([]item) bool) {
		first := 0
		var page kit.Page
		for i, p := range items {
			if page.Takes(p.Entry) {
				continue
			}
			if !yield(slices.Clip(items[first:i])) {
				return
			}
			first, page = i, kit.Page{}
			page.Takes(p.Entry)
		}
		if first < len(items) {
			yield(slices.Clip(items[first:]))
		}
	}
}
