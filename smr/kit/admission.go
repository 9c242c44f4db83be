package kit

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/foresay/foresay/internal/diskid"
	"github.com/foresay/foresay/internal/wirefmt"
	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/quorum"
	"github.com/foresay/foresay/smr"
)

// Hello goes from a replica with a new disk to all members: may it take part?
type Hello struct {
	Disk Incarnation
	Join bool // it waits to be added to the group
	// Mark, if there is one, is all that is said: a replica that takes part tells how far its disk
	// is.
	Mark DiskMark
	// Ask, beside a Mark: the replica has been started again, and takes part only once it knows
	// that nobody has a greater one.
	Ask bool
}

// Founding is the Hello of a replica of a new group, which would begin with these members.
type Founding struct {
	Disk  Incarnation
	Group []protocol.ID
}

// OtherGroup answers a Founding, and is no yes: the sender's group began, or would begin, with
// others.
type OtherGroup struct {
	Asked Incarnation
	Group []protocol.ID
}

// Welcome answers a Hello.
type Welcome struct {
	Disk   Incarnation // who answers
	Asked  Incarnation // who asked
	Known  Incarnation // the disk that the sender knows under the ID: Asked, unless another one was there before
	Reason string      // if the replica is to be refused for another reason
	// Members, if there are any, is all that is said: who belongs to the group that the asker waits
	// to be added to. One of them leads.
	Members []smr.Member
	// Mark, if there is one, is all that is said: how far the sender knows the asker's disk to have
	// been.
	Mark DiskMark
}

// A DiskMark is how far the log on a disk was, as peers know it. It only grows; so a disk that is
// below what a peer knows has forgotten what it had written: it is an older copy of itself, or has
// lost the end of its log, which by itself looks like the end that a torn write leaves.
type DiskMark struct {
	Next  uint64 // index of the log
	Start uint64 // random; names the replica's start in which it was told
}

const (
	// markEvery is how many round trips pass between two marks.
	markEvery = 4
	// markPatience is for how many round trips a replica that was started again waits for members
	// that do not say whether they know a greater mark: they may be gone for good.
	markPatience = 4
)

// AdmissionTimer is the timer of an Admission, whose replica hands it to Expire.
type AdmissionTimer struct{}

// Admission keeps a replica from taking part under an ID whose earlier disk may have voted: what
// was promised there would be broken.
//
// Each disk has a random Incarnation. A new one of a new group asks the other members, which
// remember whom they said yes to, durably and before they say so, and never say it to another. It
// takes part when Needed of them said yes. If the earlier disk took part, Needed members know it;
// of these some may have lost their disks too, but with no more lost disks than the group
// tolerates, any Needed members include one that knows. A replica that joins a group takes part
// once the log says that it is a member, with its disk.
//
// An answer from a member that has itself a new disk counts: else no group would ever start.
type Admission struct {
	self      protocol.ID
	own       Incarnation
	join      bool
	members   []smr.Member // of the new group
	roundTrip time.Duration

	admitted bool
	welcome  bool   // somebody said that its ID is not another disk's
	refused  string // why; "" if not
	agreed   map[protocol.ID]bool
	known    map[protocol.ID]binding
	joiners  map[protocol.ID]Incarnation
	differs  map[protocol.ID][]protocol.ID // who would begin with others than this replica, and with whom
	state    *State

	began DiskMark                   // at this start
	told  uint64                     // the newest mark
	due   bool                       // the next one is
	marks map[protocol.ID]markedDisk // of others

	// vouched has the members that know no greater mark of a replica that was started again; nil
	// once it may take part.
	vouched map[protocol.ID]bool
	asked   int // how often they were
}

// markedDisk is how far a replica knows another one's disk to have been.
type markedDisk struct {
	disk Incarnation
	mark DiskMark
}

var markLayout = wirefmt.NewLayout("smr: a disk's mark", func(c *wirefmt.Coder, m *markedDisk) {
	wirefmt.Uint(c, &m.disk)
	wirefmt.Uint(c, &m.mark.Next)
	wirefmt.Uint(c, &m.mark.Start)
})

// binding is what a replica knows of another one's disk.
type binding struct {
	incarnation Incarnation
	// seen says that the disk took part, so that no other one ever will. Else the replica only said
	// yes to it.
	seen bool
}

var bindingLayout = wirefmt.NewLayout("smr: a member's disk", func(c *wirefmt.Coder, b *binding) {
	wirefmt.Uint(c, &b.incarnation)
	wirefmt.Bool(c, &b.seen)
})

// maxJoiners bounds the replicas that are remembered without being members.
const maxJoiners = 64

// NewAdmission returns the admission of a replica whose configuration is valid. The state is the
// replica's; it tells who is a member.
func NewAdmission(cfg smr.ReplicaConfig, state *State) *Admission {
	return &Admission{
		self: cfg.ID, join: cfg.Join, members: cfg.Members, roundTrip: cfg.RoundTrip, state: state,
		agreed: map[protocol.ID]bool{}, known: map[protocol.ID]binding{}, joiners: map[protocol.ID]Incarnation{},
		marks: map[protocol.ID]markedDisk{}, differs: map[protocol.ID][]protocol.ID{},
	}
}

// Start reads what is on the disk, which is blank if the log is empty, and begins to ask if there
// is need. It is called before the replica does anything else.
func (a *Admission) Start(env *protocol.Env[smr.Message], blankLog bool) {
	for key, value := range env.Scan([]byte(peerPrefix), []byte(peerPrefix+"\xff\xff\xff\xff\xff")) {
		a.readPeer(key, value)
	}
	a.readMarks(env)
	a.began = DiskMark{env.NextIndex(), max(env.Rand.Uint64(), 1)}
	id, found, err := diskid.Read(env, selfKey)
	a.own, a.admitted, a.refused = Incarnation(id.Disk), id.Joined, id.Refused
	switch {
	case err != nil:
		a.refuse(env, fmt.Sprintf("the replica's %v", err))
		return
	case !found && !blankLog:
		a.refuse(env, "the disk has a log but no identity: a part of it was lost. Add a replica with an empty disk and "+
			"another ID instead")
		return
	case !found:
		a.own = Incarnation(diskid.New(env.Rand).Disk)
		a.save(env)
	}
	if a.refused != "" {
		env.Send(protocol.App, smr.Refused{Reason: a.refused})
		return
	}
	if a.admitted {
		a.vouched = map[protocol.ID]bool{}
	}
	a.maybeAdmit(env)
	switch {
	case a.refused != "":
	case a.vouched != nil:
		a.askMarks(env)
	case a.admitted:
		a.mark(env)
	default:
		a.ask(env)
	}
}

// identify reads which disk it is, and nothing else, in a replica that is only salvaged.
func (a *Admission) identify(env *protocol.Env[smr.Message]) error {
	id, _, err := diskid.Read(env, selfKey)
	a.own = Incarnation(id.Disk)
	return err
}

func markKey(id protocol.ID) []byte {
	return binary.BigEndian.AppendUint32([]byte(markPrefix), uint32(id))
}

func (a *Admission) readMarks(env *protocol.Env[smr.Message]) {
	for key, value := range env.Scan([]byte(markPrefix), []byte(markPrefix+"\xff\xff\xff\xff\xff")) {
		m, err := markLayout.Decode(value)
		if len(key) == len(markPrefix)+4 && err == nil {
			a.marks[protocol.ID(binary.BigEndian.Uint32(key[len(markPrefix):]))] = m
		}
	}
}

// wrote has the others told how far the disk is if it is further than they know. A replica that
// writes nothing needs no timer.
func (a *Admission) wrote(env *protocol.Env[smr.Message]) {
	if a.admitted && a.vouched == nil && a.refused == "" && !a.due && env.NextIndex() != a.told {
		a.due = true
		env.After(markEvery*a.roundTrip, AdmissionTimer{})
	}
}

// mark tells the other members how far the disk is, once all up to there is on it.
func (a *Admission) mark(env *protocol.Env[smr.Message]) {
	a.due = false
	if next := env.NextIndex(); next != a.told {
		a.told = next
		for _, m := range a.state.Members() {
			if m.ID != a.self {
				env.Send(m.ID, Hello{Disk: a.own, Mark: DiskMark{next, a.began.Start}})
			}
		}
	}
}

// askMarks asks the other members whether they know a greater mark than the disk had at this start.
// A replica that voted before it knows could break what it promised before its log was cut. When
// all have answered, or had time to, it takes part.
func (a *Admission) askMarks(env *protocol.Env[smr.Message]) {
	waits := false
	for _, m := range a.state.Members() {
		if m.ID != a.self && !a.vouched[m.ID] {
			waits = true
			env.Send(m.ID, Hello{Disk: a.own, Mark: a.began, Ask: true})
		}
	}
	if waits && a.asked < markPatience {
		a.asked++
		env.After(a.roundTrip, AdmissionTimer{})
		return
	}
	a.vouched, a.told = nil, a.began.Next
	a.mark(env)
}

// onMark notes how far another replica's disk is. It tells it if it was further at an earlier
// start, and if it asks.
func (a *Admission) onMark(env *protocol.Env[smr.Message], from protocol.ID, h Hello) {
	m, ok := a.marks[from]
	further := ok && m.disk == h.Disk && m.mark.Next > h.Mark.Next
	switch {
	case further && m.mark.Start != h.Mark.Start:
		env.Send(from, Welcome{Disk: a.own, Asked: h.Disk, Known: h.Disk, Mark: m.mark})
		return
	case h.Ask:
		env.Send(from, Welcome{Disk: a.own, Asked: h.Disk, Known: h.Disk, Mark: h.Mark})
	}
	switch {
	case further:
		return
	case ok && m.disk != h.Disk, !ok:
		if disk, member := a.state.Member(from); !member || disk != 0 && disk != h.Disk || a.known[from].seen &&
			a.known[from].incarnation != h.Disk {
			return
		}
	case m.mark == h.Mark:
		return
	}
	m = markedDisk{h.Disk, h.Mark}
	a.marks[from] = m
	env.Put(markKey(from), markLayout.Encode(m))
}

// maybeVouched lets a replica take part of which nobody is left to ask.
func (a *Admission) maybeVouched(env *protocol.Env[smr.Message]) {
	for _, m := range a.state.Members() {
		if m.ID != a.self && !a.vouched[m.ID] {
			return
		}
	}
	a.askMarks(env)
}

// onMarked refuses to go on if another replica knows that the disk was further than it began now.
func (a *Admission) onMarked(env *protocol.Env[smr.Message], from protocol.ID, w Welcome) {
	if w.Mark.Start == a.began.Start || w.Mark.Next <= a.began.Next {
		if a.vouched != nil && w.Mark.Start == a.began.Start {
			a.vouched[from] = true
			a.maybeVouched(env)
		}
		return
	}
	a.refuse(env, fmt.Sprintf("replica %d knows that the log of replica %d went up to record %d, and on its disk it "+
		"ended with record %d: the disk is an older copy of itself, or lost the end of its log, "+
		"and with it what the replica had promised. Add a replica with an empty disk and another ID instead", from, a.self,
		w.Mark.Next-1, a.began.Next-1))
}

func (a *Admission) readPeer(key, value []byte) {
	b, err := bindingLayout.Decode(value)
	if len(key) == len(peerPrefix)+4 && err == nil {
		a.known[protocol.ID(binary.BigEndian.Uint32(key[len(peerPrefix):]))] = b
	}
}

func (a *Admission) save(env *protocol.Env[smr.Message]) {
	diskid.Identity{Disk: uint64(a.own), Joined: a.admitted, Refused: a.refused}.Write(env, selfKey)
}

func (a *Admission) bind(env *protocol.Env[smr.Message], id protocol.ID, b binding) {
	if a.known[id] == b {
		return
	}
	a.known[id] = b
	env.Put(binary.BigEndian.AppendUint32([]byte(peerPrefix), uint32(id)), bindingLayout.Encode(b))
}

// Own returns the incarnation of the replica's disk.
func (a *Admission) Own() Incarnation { return a.own }

// Admitted reports whether the replica takes part: votes, promises, leads. One that does not may
// still learn what was decided.
func (a *Admission) Admitted() bool { return a.admitted && a.vouched == nil && a.refused == "" }

// Speaks reports whether the replica may say of itself that it is there. One of a new group that
// does not take part yet may not: from then on others take no other disk of it.
func (a *Admission) Speaks() bool { return a.admitted || a.join }

// Votes reports whether the replica may answer as an acceptor does. One that takes part may; and
// one that joins, before it knows that the log has made it a member: those who count its votes know
// that, and with which disk. But first a member must have said that the ID is no member's from the
// beginning, of whose disks the log says nothing.
func (a *Admission) Votes() bool {
	return a.Admitted() || a.refused == "" && !a.admitted && a.join && a.welcome
}

// Refused reports whether the replica must do nothing any more, not even learn.
func (a *Admission) Refused() bool { return a.refused != "" }

// Genuine reports whether a message of a replica comes from its right disk. Messages of which it
// says no are to be dropped.
func (a *Admission) Genuine(env *protocol.Env[smr.Message], from protocol.ID, disk Incarnation) bool {
	if disk == 0 || a.refused != "" {
		return false
	}
	if from == a.self {
		return disk == a.own
	}
	bound, member := a.state.Member(from)
	if !member || bound != 0 {
		return !member || bound == disk
	}
	if b, ok := a.known[from]; ok && b.seen {
		return b.incarnation == disk
	}
	// A member from the beginning sends other messages than Hello only when it takes part, and of
	// all its disks at most one ever does.
	a.bind(env, from, binding{disk, true})
	return true
}

// Joiner returns the disk of a replica that waits to be added.
func (a *Admission) Joiner(id protocol.ID) (Incarnation, bool) {
	i, ok := a.joiners[id]
	return i, ok
}

// MembersChanged says that the members in the state have changed, or may have, and tells the
// application who they are: of a replica that joins and knows none yet, whom it asks.
func (a *Admission) MembersChanged(env *protocol.Env[smr.Message]) {
	a.maybeAdmit(env)
	group := a.state.Members()
	if len(group) == 0 {
		group = a.members
	}
	env.Send(protocol.App, smr.MembersChanged{Members: group})
}

// maybeAdmit lets the replica take part, or refuses it, by what the state and the answers say.
func (a *Admission) maybeAdmit(env *protocol.Env[smr.Message]) {
	if a.refused != "" {
		return
	}
	disk, member := a.state.Member(a.self)
	switch {
	case member && disk != 0 && disk != a.own:
		a.refuse(env, fmt.Sprintf("replica %d was added with another disk. Add one with an empty disk and another ID instead",
			a.self))
	case a.admitted:
	case member && disk == a.own, member && !a.join && len(a.agreed) >= quorum.FirstDisk(len(a.members)):
		a.admitted = true
		a.save(env)
		a.mark(env)
	}
}

func (a *Admission) refuse(env *protocol.Env[smr.Message], reason string) {
	a.refused = reason
	a.save(env)
	env.Stop(AdmissionTimer{})
	env.Send(protocol.App, smr.Refused{Reason: reason})
}

func (a *Admission) ask(env *protocol.Env[smr.Message]) {
	var hello smr.Message = Hello{Disk: a.own, Join: a.join}
	if group := a.founders(); !a.join && group != nil {
		hello = Founding{a.own, group}
	}
	for _, m := range a.members {
		if m.ID != a.self && !a.agreed[m.ID] {
			env.Send(m.ID, hello)
		}
	}
	env.After(a.roundTrip, AdmissionTimer{})
}

// Expire asks again, or tells how far the disk is.
func (a *Admission) Expire(env *protocol.Env[smr.Message]) {
	switch {
	case a.refused != "":
	case a.vouched != nil:
		a.askMarks(env)
	case a.admitted:
		a.mark(env)
	default:
		a.ask(env)
	}
}

// Hello answers a replica with a new disk.
func (a *Admission) Hello(env *protocol.Env[smr.Message], from protocol.ID, h Hello) {
	if a.refused != "" || h.Disk == 0 || from == a.self || a.join && !a.admitted {
		return
	}
	if h.Mark.Start != 0 {
		a.onMark(env, from, h)
		return
	}
	answer := Welcome{Disk: a.own, Asked: h.Disk, Known: h.Disk}
	bound, member := a.state.Member(from)
	b, known := a.known[from]
	switch {
	case a.state.Removed(from):
		answer.Reason = fmt.Sprintf("replica %d was removed from the group, and does not come back under this ID", from)
	case bound != 0 && bound != h.Disk:
		answer.Known = bound
	case known && b.incarnation != h.Disk:
		answer.Known = b.incarnation
	case h.Join && member && bound == 0:
		answer.Reason = fmt.Sprintf("replica %d belongs to the group from the beginning: it cannot join under this ID", from)
	case h.Join && !member:
		a.remember(from, h.Disk)
		answer.Members = a.state.Members() // it is admitted by the change that adds it
	case !member:
		answer.Reason = fmt.Sprintf("replica %d is no member of the group: start it with Join set, and add it", from)
	case !known:
		a.bind(env, from, binding{incarnation: h.Disk})
	}
	env.Send(from, answer)
}

// Founding answers a replica of a new group as a Hello, if both would begin with the same members.
func (a *Admission) Founding(env *protocol.Env[smr.Message], from protocol.ID, m Founding) {
	if a.refused != "" || m.Disk == 0 || from == a.self || a.join && !a.admitted {
		return
	}
	_, member := a.state.Member(from)
	b, known := a.known[from]
	if anotherDisk := known && b.incarnation != m.Disk; (member || !a.admitted) && !anotherDisk &&
		a.beginsOtherwise(env, from, m.Group) {
		env.Send(from, OtherGroup{m.Disk, a.founders()})
		return
	}
	a.Hello(env, from, Hello{Disk: m.Disk})
}

// OtherGroup takes an answer that is no yes.
func (a *Admission) OtherGroup(env *protocol.Env[smr.Message], from protocol.ID, m OtherGroup) {
	if _, asked := a.find(from); asked && m.Asked == a.own && !a.admitted && a.refused == "" && from != a.self {
		a.beginsOtherwise(env, from, m.Group)
	}
}

// founders returns with whom the group began, or would begin: nil once members have changed, as
// that says no more who they were.
func (a *Admission) founders() (ids []protocol.ID) {
	for _, m := range a.state.Members() {
		if disk, _ := a.state.Member(m.ID); disk != 0 {
			return nil
		}
		ids = append(ids, m.ID)
	}
	if len(a.state.members.removed) > 0 {
		return nil
	}
	return ids
}

// beginsOtherwise reports whether another replica would begin a group with other members than this
// one, and tells the application so, once. Neither may say yes to the other: a replica that took
// part in a group of other members than its own disk says would count other majorities.
func (a *Admission) beginsOtherwise(env *protocol.Env[smr.Message], from protocol.ID, group []protocol.ID) bool {
	own := a.founders()
	if len(group) == 0 || len(own) == 0 || slices.Equal(group, own) {
		delete(a.differs, from)
		return false
	}
	before, ok := a.differs[from]
	if !slices.Equal(group, before) && (ok || len(a.differs) < maxJoiners) {
		a.differs[from] = group
		env.Send(protocol.App, smr.MembersDiffer{Replica: from, Theirs: group, Own: own})
	}
	return true
}

// Waits says what a replica of a new group that does not take part yet waits for; "" if for
// nothing.
func (a *Admission) Waits() string {
	if a.admitted || a.join || a.refused != "" {
		return ""
	}
	for _, id := range slices.Sorted(maps.Keys(a.differs)) {
		return smr.MembersDiffer{Replica: id, Theirs: a.differs[id], Own: a.founders()}.String()
	}
	var missing []string
	for _, m := range a.members {
		if m.ID != a.self && !a.agreed[m.ID] {
			missing = append(missing, fmt.Sprint(m.ID))
		}
	}
	return fmt.Sprintf("a new group begins when its members have heard of each other; nothing was heard of replica %s",
		strings.Join(missing, ", "))
}

func (a *Admission) remember(id protocol.ID, disk Incarnation) {
	if _, ok := a.joiners[id]; ok || len(a.joiners) < maxJoiners {
		a.joiners[id] = disk
	}
}

// Welcome takes an answer.
func (a *Admission) Welcome(env *protocol.Env[smr.Message], from protocol.ID, w Welcome) {
	_, asked := a.find(from)
	switch {
	case w.Mark.Start != 0 && w.Asked == a.own && a.refused == "" && from != a.self:
		a.onMarked(env, from, w)
	case w.Mark.Start != 0, w.Asked != a.own || a.refused != "" || a.admitted || !asked || from == a.self:
	case a.join && len(w.Members) > 0:
		a.welcome = true
		a.meet(env, w.Members)
	case w.Known != a.own:
		a.refuse(env, fmt.Sprintf("replica %d knows another disk of replica %d. Add a replica with an empty disk and "+
			"another ID instead", from, a.self))
	case w.Reason != "":
		a.refuse(env, w.Reason)
	default:
		a.welcome = true
		a.agreed[from] = true
		a.maybeAdmit(env)
	}
}

func (a *Admission) find(id protocol.ID) (int, bool) {
	return slices.BinarySearchFunc(a.members, id, func(m smr.Member, id protocol.ID) int { return cmp.Compare(m.ID, id) })
}

// meet has a replica that joins ask further members too: of those that it was told of at its start
// all may be gone.
func (a *Admission) meet(env *protocol.Env[smr.Message], group []smr.Member) {
	met := false
	for _, m := range group {
		if i, ok := a.find(m.ID); !ok && m.ID != protocol.App && len(a.members) < maxJoiners {
			a.members = slices.Insert(slices.Clone(a.members), i, m)
			met = true
		}
	}
	if met {
		env.Send(protocol.App, smr.MembersChanged{Members: a.members}) // where they are
		a.ask(env)
	}
}

// Peers returns the members that the replica has heard of: those of its configuration, and, if it
// joins, those that they named.
func (a *Admission) Peers() []smr.Member { return slices.Clone(a.members) }
