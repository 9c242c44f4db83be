package replicatedcommit

import (
	"cmp"
	"fmt"
	"time"

	"github.com/foresay/foresay/internal/diskid"
	"github.com/foresay/foresay/internal/wirefmt"
	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/quorum"
	"github.com/foresay/foresay/store"
)

// Timers of admission.
type (
	helloTimer struct{} // until peers that have not answered are told again
	markTimer  struct{} // until what was written is marked
	heardTimer struct{} // until the marks of peers are written
)

const (
	// markEvery is how many round trips pass from a write until the next one marks it too, and as
	// many again until it is marked without: marks and what is heard of those of others cost no
	// syncs of their own while there is load, as votes that are late by a sync are votes in another
	// order.
	markEvery = 4
	// hearAll is how many round trips a disk that was admitted before waits for all of its peers,
	// when enough have answered.
	hearAll = 2
	// lastHello bounds the pause, in round trips, after which a peer that does not answer is told
	// again.
	lastHello = 16
)

// A diskMark is how far a disk was, as its peers know it. A disk only ever raises it: at each
// start, and while it writes. So a disk that is below what a peer knows has forgotten what it had
// written: it was restored from a backup, or lost the end of its log.
type diskMark struct {
	disk  uint64
	mark  uint64
	start uint64 // random; tells two starts apart that have the same mark
}

var diskMarkLayout = wirefmt.NewLayout("replicatedcommit: a disk's mark", func(c *wirefmt.Coder, d *diskMark) {
	wirefmt.Uint(c, &d.disk)
	wirefmt.Uint(c, &d.mark)
	wirefmt.Uint(c, &d.start)
})

// admission keeps a server from voting with a disk that has forgotten votes: those of an earlier
// disk under its ID, or its own. It asks the servers of its shard at the other sites. Each says yes
// to one disk for good, and knows the highest mark that it was told; both are on its disk before it
// says so.
type admission struct {
	own      diskMark
	joined   bool // the disk was admitted at some time. It is on disk
	admitted bool // the server takes part
	refused  string
	agreed   map[protocol.ID]uint64 // the highest mark of this start that a peer knows
	known    map[protocol.ID]diskMark
	waited   int  // round trips since the start, up to hearAll
	pause    int  // until the next Hello, in round trips
	marking  bool // a markTimer runs
	due      bool // what is written next is marked
	// heard are marks of peers that are not on disk yet. They get no answer before.
	heard map[protocol.ID]diskMark
}

// startAdmission reports whether the disk is a new one.
func (s *server) startAdmission(env *protocol.Env[message]) (newDisk bool) {
	a := &s.admission
	a.agreed, a.known, a.heard = map[protocol.ID]uint64{}, map[protocol.ID]diskMark{}, map[protocol.ID]diskMark{}
	id, found, err := diskid.Read(env, selfKey)
	a.own.disk, a.joined, a.refused = id.Disk, id.Joined, id.Refused
	if err != nil {
		a.refused = fmt.Sprintf("the server's %v", err)
	}
	if err := s.readMarks(env); err != nil {
		a.refused = cmp.Or(a.refused, err.Error())
	}
	if newDisk = !found; newDisk {
		a.own.disk = diskid.New(env.Rand).Disk
		s.saveAdmission(env)
	}
	if a.refused != "" {
		env.Send(protocol.App, store.Refused{Reason: a.refused, Forgot: true})
		return newDisk
	}
	a.own.start = env.Rand.Uint64()
	s.raiseMark(env)
	s.maybeAdmit(env)
	return newDisk
}

// readMarks reads how far the disk and those of peers are known to have been.
func (s *server) readMarks(env *protocol.Env[message]) (err error) {
	a := &s.admission
	for k, b := range env.Scan([]byte(peerPrefix), afterPrefix(peerPrefix)) {
		peer, ok := parsePeerKey(peerPrefix, k)
		if !ok {
			continue
		}
		if a.known[peer], err = diskMarkLayout.Decode(b); err != nil {
			return fmt.Errorf("of server %d: %w", peer, err)
		}
	}
	a.own.mark, err = readNumber(env, markKey)
	return err
}

func (s *server) saveAdmission(env *protocol.Env[message]) {
	a := &s.admission
	diskid.Identity{Disk: a.own.disk, Joined: a.joined, Refused: a.refused}.Write(env, selfKey)
}

// raiseMark has the disk's mark be above all that was written before, and tells the peers once it
// is durable.
func (s *server) raiseMark(env *protocol.Env[message]) {
	a := &s.admission
	a.own.mark++
	env.Put([]byte(markKey), numberLayout.Encode(a.own.mark))
	a.pause = 1
	if a.admitted {
		a.pause = markEvery
	}
	s.sayHello(env)
}

// marked has what is written now be marked soon, and writes what waits for a write to go with.
func (s *server) marked(env *protocol.Env[message]) {
	a := &s.admission
	switch {
	case a.due:
		a.due, a.marking = false, false
		env.Stop(markTimer{})
		s.keepDone(env)
		s.raiseMark(env)
	case !a.marking:
		a.marking = true
		env.After(markEvery*s.cfg.RoundTrip, markTimer{})
	}
	s.keepHeard(env)
}

func (s *server) endMarking(env *protocol.Env[message]) {
	a := &s.admission
	switch {
	case a.refused != "":
	case !a.due:
		a.due = true
		env.After(markEvery*s.cfg.RoundTrip, markTimer{})
	default: // nothing was written since
		a.due, a.marking = false, false
		s.keepDone(env)
		s.raiseMark(env)
	}
}

// keepHeard writes what was heard of peers' marks, and says so.
func (s *server) keepHeard(env *protocol.Env[message]) {
	a := &s.admission
	if len(a.heard) == 0 || a.refused != "" {
		return
	}
	env.Stop(heardTimer{})
	for _, peer := range s.peers {
		if m, ok := a.heard[peer]; ok {
			s.know(env, peer, m)
		}
	}
	clear(a.heard)
}

// know writes how far a peer's disk is, and tells it.
func (s *server) know(env *protocol.Env[message], peer protocol.ID, m diskMark) {
	s.admission.known[peer] = m
	env.Put(peerKey(peerPrefix, peer), diskMarkLayout.Encode(m))
	env.Send(peer, welcome{Asked: m.start, Disk: m.disk, Mark: m.mark, Start: m.start})
}

// sayHello tells the peers that do not know it how far the disk is, until they say that they do.
func (s *server) sayHello(env *protocol.Env[message]) {
	a := &s.admission
	if a.refused != "" {
		return
	}
	behind := false
	for _, peer := range s.peers {
		if a.agreed[peer] < a.own.mark {
			behind = true
			env.Send(peer, hello{Disk: a.own.disk, Mark: a.own.mark, Start: a.own.start})
		}
	}
	if behind {
		env.After(time.Duration(a.pause)*s.cfg.RoundTrip, helloTimer{})
	}
}

// helloAgain is for peers that have not answered.
func (s *server) helloAgain(env *protocol.Env[message]) {
	a := &s.admission
	a.waited = min(a.waited+1, hearAll)
	if a.admitted {
		a.pause = min(2*a.pause, lastHello)
	}
	s.maybeAdmit(env)
	s.sayHello(env)
}

// maybeAdmit lets the server take part when enough peers know its disk. If that took part before,
// those are enough that make a majority with it, without which it decides nothing anyway; but
// others may know more, and are waited for a little.
func (s *server) maybeAdmit(env *protocol.Env[message]) {
	a := &s.admission
	enough := quorum.FirstDisk(len(s.cfg.Layout.Sites))
	if a.joined {
		enough = s.cfg.Layout.Majority() - 1
		if len(a.agreed) < len(s.peers) && a.waited < hearAll {
			return
		}
	}
	if a.admitted || a.refused != "" || len(a.agreed) < enough {
		return
	}
	a.admitted = true
	if !a.joined {
		a.joined = true
		s.saveAdmission(env)
	}
}

func (s *server) onHello(env *protocol.Env[message], from protocol.ID, m hello) {
	a := &s.admission
	if !s.isPeer(from) || m.Disk == 0 || a.refused != "" {
		return
	}
	told := diskMark{m.Disk, m.Mark, m.Start}
	known, ok := a.known[from]
	if late, waits := a.heard[from]; waits && late.mark >= m.Mark && late.start == m.Start {
		return // it is answered with that
	}
	switch {
	case !ok:
		s.know(env, from, told)
		s.marked(env) // it is a promise, as a vote is
	case known.disk != m.Disk || known.mark >= m.Mark:
		env.Send(from, welcome{Asked: m.Start, Disk: known.disk, Mark: known.mark, Start: known.start})
	case known.start != m.Start: // who asks waits to take part
		delete(a.heard, from)
		s.know(env, from, told)
	default:
		if len(a.heard) == 0 {
			env.After(markEvery*s.cfg.RoundTrip, heardTimer{})
		}
		a.heard[from] = told
	}
}

func (s *server) onWelcome(env *protocol.Env[message], from protocol.ID, m welcome) {
	a := &s.admission
	switch {
	case !s.isPeer(from) || m.Asked != a.own.start || a.refused != "":
	case m.Disk != a.own.disk:
		s.refuseDisk(env, fmt.Sprintf("server %d knows another disk of server %d, whose votes this one has not: a lost "+
			"disk comes back as a new site", from, s.cfg.ID))
	case m.Start != a.own.start:
		s.refuseDisk(env, fmt.Sprintf("server %d knows that the disk of server %d had reached mark %d, and it began at %d "+
			"now: it is an older copy of itself, restored from a backup or "+
			"without the end of its log, and has forgotten what it had voted: like a lost disk, it comes back as a new site",
			from, s.cfg.ID, m.Mark, a.own.mark))
	default:
		a.agreed[from] = max(a.agreed[from], m.Mark)
		s.maybeAdmit(env)
	}
}

// refuseDisk ends the part of the server's disk, for good.
func (s *server) refuseDisk(env *protocol.Env[message], why string) {
	s.admission.refused = why
	s.saveAdmission(env)
	env.Stop(helloTimer{})
	env.Send(protocol.App, store.Refused{Reason: why, Forgot: true})
}
