package replicatedcommit

import (
	"encoding/binary"
	"fmt"

	"github.com/foresay/foresay/internal/wirefmt"
	"github.com/foresay/foresay/protocol"
)

type helloTimer struct{}

// admission keeps a server from voting with a disk that has forgotten the votes of an earlier one. A new disk asks the servers of its shard at the
// other sites, each of which says yes to one disk per site for good, durably and before it says so.
type admission struct {
	disk     uint64
	admitted bool
	refused  string
	agreed   map[protocol.ID]bool
	known    map[protocol.ID]uint64
}

// neededWelcomes returns how many servers of the n-1 other sites must know no other disk. With f = (n-1)/2 disks lost at once, any so many include one
// that knows the earlier disk, if that ever took part: its yeses, less f-1 that were lost too, and those of the new disk share a server.
func neededWelcomes(n int) int {
	if n <= 1 {
		return 0
	}
	f := (n - 1) / 2
	return (n-1+max(f-1, 0))/2 + 1
}

// startAdmission tells whether the disk is a new one.
func (s *Server) startAdmission(env *protocol.Env[Message]) (newDisk bool) {
	a := &s.admission
	a.agreed, a.known = map[protocol.ID]bool{}, map[protocol.ID]uint64{}
	for k, v := range env.Scan([]byte(peerPrefix), []byte(peerPrefix+"\xff")) {
		if len(k) == len(peerPrefix)+4 && len(v) == 8 {
			a.known[protocol.ID(binary.BigEndian.Uint32(k[len(peerPrefix):]))] = binary.BigEndian.Uint64(v)
		}
	}
	if b, ok := env.Get([]byte(selfKey)); ok {
		r := wirefmt.NewReader(b)
		a.disk, a.admitted, a.refused = r.Uint(), r.Bool(), r.String()
		if err := r.Close(); err != nil {
			a.refused = fmt.Sprintf("the server's identity on disk cannot be read: %v", err)
		}
	} else {
		newDisk = true
		for a.disk == 0 {
			a.disk = env.Rand.Uint64()
		}
		s.saveAdmission(env)
	}
	if a.refused != "" {
		env.Send(protocol.App, Refused{a.refused})
		return newDisk
	}
	if s.cfg.skip.has(ruleAdmission) {
		a.admitted = true
	}
	s.maybeAdmit(env)
	s.askAdmission(env)
	return newDisk
}

func (s *Server) saveAdmission(env *protocol.Env[Message]) {
	var w wirefmt.Writer
	w.Uint(s.admission.disk)
	w.Bool(s.admission.admitted)
	w.String(s.admission.refused)
	env.Put([]byte(selfKey), w.Buf)
}

func (s *Server) askAdmission(env *protocol.Env[Message]) {
	if s.admission.admitted || s.admission.refused != "" {
		return
	}
	for _, peer := range s.peers {
		if !s.admission.agreed[peer] {
			env.Send(peer, Hello{s.admission.disk})
		}
	}
	env.After(s.cfg.RoundTrip, helloTimer{})
}

func (s *Server) maybeAdmit(env *protocol.Env[Message]) {
	a := &s.admission
	if !a.admitted && a.refused == "" && len(a.agreed) >= neededWelcomes(len(s.cfg.Layout.Sites)) {
		a.admitted = true
		s.saveAdmission(env)
		env.Stop(helloTimer{})
	}
}

func (s *Server) onHello(env *protocol.Env[Message], from protocol.ID, m Hello) {
	a := &s.admission
	if !s.isPeer(from) || m.Disk == 0 || a.refused != "" {
		return
	}
	if _, ok := a.known[from]; !ok {
		a.known[from] = m.Disk
		env.Put(binary.BigEndian.AppendUint32([]byte(peerPrefix), uint32(from)), binary.BigEndian.AppendUint64(nil, m.Disk))
	}
	env.Send(from, Welcome{Asked: m.Disk, Known: a.known[from]})
}

func (s *Server) onWelcome(env *protocol.Env[Message], from protocol.ID, m Welcome) {
	a := &s.admission
	switch {
	case !s.isPeer(from) || m.Asked != a.disk || a.admitted || a.refused != "":
	case m.Known != a.disk:
		a.refused = fmt.Sprintf("server %d knows another disk of server %d, whose votes this one has not: a lost disk comes back as a new site", from, s.cfg.ID)
		s.saveAdmission(env)
		env.Stop(helloTimer{})
		env.Send(protocol.App, Refused{a.refused})
	default:
		a.agreed[from] = true
		s.maybeAdmit(env)
	}
}
