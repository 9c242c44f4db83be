package service

import (
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/foresay/foresay/host"
	"github.com/foresay/foresay/host/waldisk"
	"github.com/foresay/foresay/internal/callers"
	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/smr"
	"github.com/foresay/foresay/smr/kv"
	"github.com/foresay/foresay/wal"
)

// A replicaGroup is what a process has of one group: a replica with its store and its disk.
type replicaGroup struct {
	*Replica
	number  int       // from 0 on
	machine *kv.Store // of the node's goroutine
	disk    string
	node    *host.Node[smr.Message]
	lessor  *lessor
	asking  callers.Table[smr.Status]
	handing callers.Table[smr.HandingOver]
}

// addGroup adds a group's replica, on its disk.
func (r *Replica) addGroup(i int) error {
	disk, err := openDisk(r.cfg, i, r.store)
	if err != nil {
		return err
	}
	g := &replicaGroup{Replica: r, number: i, machine: kv.New(), disk: disk.Identity(), lessor: newLessor(r, i)}
	g.asking.Most, g.handing.Most = maxQuestions, maxQuestions
	g.machine.ObserveLeases(g.lessor.observe)
	g.machine.ObserveChanges(g.noticed)
	cfg := r.cfg.replica(i, g.machine)
	cfg.Vouch = r.beats.vouch()
	cfg.Executed = func(o smr.Outcome, took time.Duration) {
		r.executed.WithLabelValues(o.String()).Observe(took.Seconds())
	}
	node, err := r.cfg.proto.NewReplica(cfg)
	if err != nil {
		return err
	}
	g.node, err = host.Add(r.host, host.Spec[smr.Message]{
		Group: nodeGroup(i), ID: r.cfg.ID, Node: node, Codec: r.cfg.proto.Codec, Disk: disk, App: g.onMessage,
		QueueBytes: r.cfg.ReceiveQueueBytes,
		Committed:  func(took time.Duration) { r.commits.Observe(took.Seconds()) },
	})
	if err != nil {
		return err
	}
	r.groups = append(r.groups, g)
	return nil
}

// openDisk finds a group's part of a replica's directory, which must be nobody else's.
func openDisk(cfg *Config, group int, store *wal.Store) (*waldisk.Disk, error) {
	names, err := store.Names()
	if err != nil {
		return nil, err
	}
	own := map[string]bool{}
	for i := range cfg.count() {
		own[diskName(cfg, i)] = true
	}
	for _, other := range names {
		if !own[other] {
			return nil, fmt.Errorf("the directory %s is that of %s, not of %s", cfg.Data, other, diskName(cfg, group))
		}
	}
	return waldisk.New(store, diskName(cfg, group))
}

// diskName names a group's part of a replica's directory.
func diskName(cfg *Config, group int) string {
	name := fmt.Sprintf("%s/replica-%d", cfg.Protocol, cfg.ID)
	if cfg.Recovery != "" {
		name += "/recovery-" + cfg.Recovery
	}
	if cfg.count() > 1 {
		name += fmt.Sprintf("/%v/group-%d", cfg.Routing, group+1)
	}
	return name
}

// onMessage takes what the replica says to its application. It is called by the replica's
// goroutine, and does not wait.
func (g *replicaGroup) onMessage(msg smr.Message) {
	switch m := msg.(type) {
	case smr.Status:
		g.asking.Answer(uint64(m.ID), m)
	case smr.HandingOver:
		g.handing.Answer(uint64(m.ID), m)
	case smr.MembersChanged:
		if i := slices.IndexFunc(m.Members, func(x smr.Member) bool { return x.ID == m.Joining }); i >= 0 {
			g.news.joining(m.Members[i])
			return
		}
		g.lessor.know(m.Members)
		g.news.members(g.number, m.Members)
	case smr.ClockOff:
		g.logClock(m)
	case smr.MembersDiffer:
		g.log.Warn("replica: the files of a new group name different members, and replicas whose files differ do not "+
			"begin with each other: stop those whose file is wrong, correct it, empty their data directories, since they "+
			"have not taken part, and start them", "id", g.cfg.ID, "members", m.Own, "other", m.Replica, "members of other",
			m.Theirs)
	case smr.Refused:
		g.news.refused(g.number, m)
	}
}

// logClock says that the replica's clock is off, and when it is right again.
func (g *replicaGroup) logClock(m smr.ClockOff) {
	switch {
	case m.Alone > 0:
		g.log.Warn("replica: what it has promised is ahead of the time of the group, since its clock is ahead, or was: "+
			"until the group's time is there, it neither votes for nor proposes new commands; set its clock right, and if "+
			"that is too long, remove this replica and add one with an empty disk and another ID", "id", g.cfg.ID, "ahead",
			m.Alone)
	case m.Held > 0:
		g.log.Warn("replica: its clock has jumped ahead, or was ahead at the start, and no other member's is as far: the "+
			"replica does not follow it, and goes on by the group's time; if the clock is right, nothing need be done, else "+
			"set it right", "id", g.cfg.ID, "ahead", m.Held)
	case m.Behind > 0:
		g.log.Warn("replica: its clock is behind the time of the group: it is slow, or a majority of the clocks was ahead; "+
			"check the clocks of all members and set them right; nothing is lost, but until the clock has caught up "+
			"commands take some round trips more", "id", g.cfg.ID, "behind", m.Behind)
	default:
		g.log.Info("replica: its clock is right again, as far as the group's time goes", "id", g.cfg.ID)
	}
}

// news is what the replicas of a process say that concerns all of it.
type news struct {
	wake chan struct{} // of one place

	mu     sync.Mutex
	groups []groupNews
	joins  map[protocol.ID]smr.Member // that somebody wants to be added, since they were taken last
}

// groupNews is what one group has said last.
type groupNews struct {
	members []smr.Member
	refused smr.Refused // why it must not take part; no reason if it may
}

func newNews(groups int) *news {
	return &news{wake: make(chan struct{}, 1), groups: make([]groupNews, groups),
		joins: map[protocol.ID]smr.Member{}}
}

func (n *news) note(group int, f func(*groupNews)) {
	n.mu.Lock()
	defer n.mu.Unlock()
	f(&n.groups[group])
	n.tell()
}

// tell wakes whoever takes the news.
func (n *news) tell() {
	select {
	case n.wake <- struct{}{}:
	default:
	}
}

func (n *news) members(group int, members []smr.Member) {
	n.note(group, func(g *groupNews) { g.members = members })
}

// joining notes a replica that somebody wants to be added.
func (n *news) joining(m smr.Member) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.joins[m.ID] = m
	n.tell()
}

// takeJoining returns those that somebody wants to be added, each once.
func (n *news) takeJoining() map[protocol.ID]smr.Member {
	n.mu.Lock()
	defer n.mu.Unlock()
	joins := n.joins
	n.joins = map[protocol.ID]smr.Member{}
	return joins
}

func (n *news) refused(group int, why smr.Refused) {
	n.note(group, func(g *groupNews) { g.refused = why })
}

// take returns what all groups have said last.
func (n *news) take() []groupNews {
	n.mu.Lock()
	defer n.mu.Unlock()
	return append([]groupNews(nil), n.groups...)
}

// verdict returns why the process must end, "" if it goes on: a replica must not take part. One
// that was removed from its group need not, and waits for the other groups to remove theirs: a
// group that is still to do so may need it.
func verdict(groups []groupNews) string {
	reason, refused := "", 0
	for _, g := range groups {
		switch {
		case g.refused.Reason == "":
			continue
		case !g.refused.Removed:
			return g.refused.Reason
		}
		reason = g.refused.Reason
		refused++
	}
	if refused < len(groups) {
		return ""
	}
	return reason
}
