package kit

import (
	"fmt"
	"iter"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/foresay/foresay/internal/diskid"
	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/smr"
)

// cluster is a group of nothing but admissions: what they send is delivered in any order, more than
// once or never, and disks are lost.
type cluster struct {
	rnd      *rand.Rand
	group    []smr.Member
	nodes    map[protocol.ID]*applicant
	wire     []letter
	admitted map[protocol.ID]Incarnation
	lost     int
}

type applicant struct {
	*Admission
	keys memory
	env  *protocol.Env[smr.Message]
}

type letter struct {
	from, to protocol.ID
	msg      smr.Message
}

// memory is a key space.
type memory map[string][]byte

func (m memory) Get(key []byte) ([]byte, bool) {
	v, ok := m[string(key)]
	return v, ok
}

func (m memory) Scan(lo, hi []byte) iter.Seq2[[]byte, []byte] {
	return func(yield func([]byte, []byte) bool) {
		var keys []string
		for k := range m {
			if k >= string(lo) && (hi == nil || k < string(hi)) {
				keys = append(keys, k)
			}
		}
		slices.Sort(keys)
		for _, k := range keys {
			if !yield([]byte(k), m[k]) {
				return
			}
		}
	}
}

func newCluster(n int, seed uint64) *cluster {
	c := &cluster{rnd: rand.New(rand.NewPCG(seed, 1)), nodes: map[protocol.ID]*applicant{},
		admitted: map[protocol.ID]Incarnation{}}
	for id := range n {
		c.group = append(c.group, smr.Member{ID: protocol.ID(id + 1)})
	}
	return c
}

func (c *cluster) start(id protocol.ID, keys memory) { c.startWith(id, keys, c.group) }

// startWith starts a replica whose file names a group.
func (c *cluster) startWith(id protocol.ID, keys memory, group []smr.Member) {
	cfg := smr.ReplicaConfig{ID: id, Members: group, RoundTrip: time.Second}
	a := &applicant{NewAdmission(cfg, NewState(&journal{}, group)), keys, protocol.NewEnv[smr.Message](keys, 1, c.rnd)}
	c.nodes[id] = a
	c.step(a, func() { a.Start(a.env, true) })
}

// step makes a call and carries out its effects.
func (c *cluster) step(a *applicant, call func()) {
	a.env.Begin(0)
	call()
	for _, e := range a.env.Out {
		switch e.Kind {
		case protocol.KindPut:
			a.keys[string(e.Key)] = e.Value
		case protocol.KindSend, protocol.KindSendAhead:
			c.wire = append(c.wire, letter{a.self, e.To, e.Msg})
		}
	}
}

// deliver hands over a letter, which may stay on the wire.
func (c *cluster) deliver(i int, stays bool) {
	l := c.wire[i]
	if !stays {
		c.wire = slices.Delete(c.wire, i, i+1)
	}
	a := c.nodes[l.to]
	if a == nil {
		return
	}
	switch m := l.msg.(type) {
	case Hello:
		c.step(a, func() { a.Hello(a.env, l.from, m) })
	case Welcome:
		c.step(a, func() { a.Welcome(a.env, l.from, m) })
	case Founding:
		c.step(a, func() { a.Founding(a.env, l.from, m) })
	case OtherGroup:
		c.step(a, func() { a.OtherGroup(a.env, l.from, m) })
	}
}

// check tells of two disks that took part under one ID.
func (c *cluster) check() error {
	for id, a := range c.nodes {
		if !a.Admitted() {
			continue
		}
		if first, ok := c.admitted[id]; ok && first != a.Own() {
			return fmt.Errorf("replica %d took part with two disks", id)
		}
		c.admitted[id] = a.Own()
	}
	return nil
}

func (c *cluster) random() protocol.ID { return c.group[c.rnd.IntN(len(c.group))].ID }

// anything does something at random.
func (c *cluster) anything() {
	id := c.random()
	a := c.nodes[id]
	switch n := c.rnd.IntN(20); {
	case a == nil:
		c.start(id, memory{})
	case n == 0 && c.lost < max((len(c.group)-1)/2, 0):
		c.lost++
		c.start(id, memory{})
	case n == 1:
		c.start(id, a.keys)
	case n < 4:
		c.step(a, func() { a.Expire(a.env) })
	case len(c.wire) > 0 && n == 4:
		c.wire = slices.Delete(c.wire, 0, 1)
	case len(c.wire) > 0:
		c.deliver(c.rnd.IntN(len(c.wire)), n < 7)
	}
	if len(c.wire) > 200 {
		c.wire = c.wire[100:]
	}
}

// TestNoSecondDisk plays groups of two to seven at random, with as many lost disks as they
// tolerate. No two disks take part under one ID; and those that lost nothing all take part in the
// end, if enough that said yes are left.
func TestNoSecondDisk(t *testing.T) {
	refused, admitted := 0, 0
	for seed := range uint64(1500) {
		c := newCluster(2+int(seed%6), seed)
		for range 250 {
			c.anything()
			if err := c.check(); err != nil {
				t.Fatalf("seed %d, %d replicas: %v", seed, len(c.group), err)
			}
		}
		for _, a := range c.nodes {
			if a.Refused() {
				refused++
			}
		}
		admitted += len(c.admitted)
	}
	if refused < 100 || admitted < 700 {
		t.Errorf("%d were refused and %d took part in all runs", refused, admitted)
	}
}

// TestAllTakePartWithoutLosses has messages lost and replicas restarted, but no disk lost.
func TestAllTakePartWithoutLosses(t *testing.T) {
	for seed := range uint64(300) {
		c := newCluster(1+int(seed%6), seed)
		c.lost = 100
		for range 100 {
			c.anything()
		}
		for _, m := range c.group {
			if c.nodes[m.ID] == nil {
				c.start(m.ID, memory{})
			}
		}
		for range 3 {
			for _, m := range c.group {
				a := c.nodes[m.ID]
				c.step(a, func() { a.Expire(a.env) })
			}
			for len(c.wire) > 0 {
				c.deliver(0, false)
			}
		}
		for id, a := range c.nodes {
			if !a.Admitted() {
				t.Errorf("seed %d: replica %d of %d does not take part", seed, id, len(c.group))
			}
		}
	}
}

// TestMembersDiffer has the file of one replica of a new group name another member beside the
// right ones. It says so at once, as the others do, nobody has said yes to its disk, and with the
// right file and an empty disk it takes part.
func TestMembersDiffer(t *testing.T) {
	c := newCluster(3, 1)
	wrong := group(1, 2, 3, 4)
	told := map[protocol.ID]smr.MembersDiffer{}
	settle := func() {
		for range 3 {
			for id := protocol.ID(1); id <= 3; id++ {
				a := c.nodes[id]
				c.step(a, func() { a.Expire(a.env) })
			}
			for len(c.wire) > 0 {
				if m, ok := c.wire[0].msg.(smr.MembersDiffer); ok {
					if _, twice := told[c.wire[0].from]; twice && c.wire[0].from == 3 && m.Replica == told[3].Replica {
						t.Error("replica 3 says it twice")
					}
					told[c.wire[0].from] = m
				}
				c.deliver(0, false)
			}
		}
	}
	c.start(1, memory{})
	c.start(2, memory{})
	c.startWith(3, memory{}, wrong)
	settle()
	for id := protocol.ID(1); id <= 3; id++ {
		a := c.nodes[id]
		if a.Admitted() || a.Refused() || !strings.Contains(a.Waits(), "members differ") {
			t.Errorf("replica %d: admitted %v, refused %v, it waits since %q", id, a.Admitted(), a.Refused(), a.Waits())
		}
	}
	if m := told[1]; m.Replica != 3 || !slices.Equal(m.Theirs, []protocol.ID{1, 2, 3, 4}) ||
		!slices.Equal(m.Own, []protocol.ID{1, 2, 3}) {
		t.Errorf("replica 1 told %+v", m)
	}
	if want := "the members differ: replica 1 begins with 1,2,3, this one with 1,2,3,4"; c.nodes[3].Waits() != want {
		t.Errorf("replica 3 waits since %q, want %q", c.nodes[3].Waits(), want)
	}
	c.start(3, memory{})
	settle()
	for id := protocol.ID(1); id <= 3; id++ {
		if a := c.nodes[id]; !a.Admitted() || a.Waits() != "" {
			t.Errorf("replica %d does not take part: %q", id, a.Waits())
		}
	}
}

// TestLateMemberNamesOthers has a member that was away in the beginning start with another list.
// The group goes on, and both say why the member does not take part.
func TestLateMemberNamesOthers(t *testing.T) {
	state := NewState(&journal{}, group(1, 2, 3))
	a := NewAdmission(smr.ReplicaConfig{ID: 1, Members: group(1, 2, 3), RoundTrip: time.Second}, state)
	a.own, a.admitted = 7, true
	env := protocol.NewEnv[smr.Message](memory{}, 1, rand.New(rand.NewPCG(1, 1)))
	for range 2 {
		env.Begin(0)
		a.Founding(env, 3, Founding{Disk: 9, Group: []protocol.ID{2, 3}})
		sent := sentTo(env)
		m, ok := sent[len(sent)-1].msg.(OtherGroup)
		if !ok || m.Asked != 9 || !slices.Equal(m.Group, []protocol.ID{1, 2, 3}) {
			t.Errorf("it answers %+v", sent)
		}
	}
	state.members = members{now: []identified{{Member: smr.Member{ID: 1}}, {Member: smr.Member{ID: 3}}},
		removed: []protocol.ID{2}}
	env.Begin(0)
	a.Founding(env, 3, Founding{Disk: 9, Group: []protocol.ID{1, 2, 3}})
	if m, ok := sentTo(env)[0].msg.(Welcome); !ok || m.Known != 9 {
		t.Errorf("once members have changed it answers %+v, want a yes: nobody knows any more with whom it began", m)
	}
}

func TestLostDiskIsToldWhy(t *testing.T) {
	c := newCluster(3, 1)
	for id := protocol.ID(1); id <= 3; id++ {
		c.start(id, memory{})
	}
	for id := protocol.ID(1); id <= 3; id++ {
		a := c.nodes[id]
		c.step(a, func() { a.Expire(a.env) })
	}
	for len(c.wire) > 0 {
		c.deliver(0, false)
	}
	old := c.nodes[2].Own()
	c.start(2, memory{})
	told := ""
	for len(c.wire) > 0 {
		if r, ok := c.wire[0].msg.(smr.Refused); ok {
			told = r.Reason
		}
		c.deliver(0, false)
	}
	a := c.nodes[2]
	if !a.Refused() || a.Admitted() || !strings.Contains(told, "another disk of replica 2") {
		t.Errorf("refused %v, admitted %v, told %q", a.Refused(), a.Admitted(), told)
	}
	c.start(2, a.keys)
	if !c.nodes[2].Refused() {
		t.Error("it has forgotten that it was refused")
	}
	one := c.nodes[1]
	c.step(one, func() {
		if one.Genuine(one.env, 2, a.Own()) && one.Genuine(one.env, 2, old) {
			t.Error("messages from both disks are taken")
		}
	})
}

// TestJoinerIsBoundByTheLog has a replica added with one disk, and come back with another.
func TestJoinerIsBoundByTheLog(t *testing.T) {
	state := NewState(&journal{}, nil)
	cfg := smr.ReplicaConfig{ID: 4, Members: group(1, 2, 3), Join: true, RoundTrip: time.Second}
	a := NewAdmission(cfg, state)
	env := protocol.NewEnv[smr.Message](memory{}, 1, rand.New(rand.NewPCG(1, 1)))
	env.Begin(0)
	a.Start(env, true)
	for from := protocol.ID(1); from <= 3; from++ {
		a.Welcome(env, from, Welcome{Disk: 1, Asked: a.Own(), Known: a.Own()})
	}
	if a.Admitted() {
		t.Error("it takes part without being a member")
	}
	for _, c := range []struct {
		disk              Incarnation
		admitted, refused bool
	}{{a.Own(), true, false}, {a.Own() + 1, false, true}} {
		state.members = members{now: []identified{{Member: smr.Member{ID: 1}}, {smr.Member{ID: 4}, c.disk}}}
		a.MembersChanged(env)
		if a.Admitted() != c.admitted || a.Refused() != c.refused {
			t.Errorf("bound to its own disk: %v; admitted %v, refused %v", c.disk == a.Own(), a.Admitted(), a.Refused())
		}
	}
}

// TestLostDiskCannotJoin has a member from the beginning come back with an empty disk as one that
// joins. Nobody lets it, not even those who never knew its first disk.
func TestLostDiskCannotJoin(t *testing.T) {
	a := NewAdmission(smr.ReplicaConfig{ID: 2, Members: group(1, 2, 3), Join: true, RoundTrip: time.Second},
		NewState(&journal{}, nil))
	other := NewAdmission(smr.ReplicaConfig{ID: 1, Members: group(1, 2, 3), RoundTrip: time.Second},
		NewState(&journal{}, group(1, 2, 3)))
	env := protocol.NewEnv[smr.Message](memory{}, 1, rand.New(rand.NewPCG(1, 1)))
	env.Begin(0)
	a.Start(env, true)
	if a.Votes() {
		t.Error("it votes before anybody was asked")
	}
	env.Begin(0)
	other.Hello(env, 2, Hello{Disk: a.Own(), Join: true})
	sent := sentTo(env)
	if len(sent) != 1 || sent[0].to != 2 {
		t.Fatalf("sent %v", sent)
	}
	a.Welcome(env, 1, sent[0].msg.(Welcome))
	if a.Votes() || !a.Refused() {
		t.Errorf("it votes: %v, it is refused: %v", a.Votes(), a.Refused())
	}
}

func TestJoinerVotesWhenItIsWelcome(t *testing.T) {
	a := NewAdmission(smr.ReplicaConfig{ID: 4, Members: group(1, 2, 3), Join: true, RoundTrip: time.Second},
		NewState(&journal{}, nil))
	other := NewAdmission(smr.ReplicaConfig{ID: 1, Members: group(1, 2, 3), RoundTrip: time.Second},
		NewState(&journal{}, group(1, 2, 3)))
	env := protocol.NewEnv[smr.Message](memory{}, 1, rand.New(rand.NewPCG(1, 1)))
	env.Begin(0)
	a.Start(env, true)
	env.Begin(0)
	other.Hello(env, 4, Hello{Disk: a.Own(), Join: true})
	a.Welcome(env, 1, sentTo(env)[0].msg.(Welcome))
	if !a.Votes() || a.Admitted() {
		t.Errorf("it votes: %v, it takes part: %v", a.Votes(), a.Admitted())
	}
}

// TestStartedAgain: a replica that is started again neither votes nor takes part until the others
// know no greater mark of its disk, or have had time to say so; and not at all if one does.
func TestStartedAgain(t *testing.T) {
	for name, answers := range map[string]struct {
		of       []protocol.ID // who answers
		know     uint64        // what they know, beyond where the disk began
		expired  int           // how often the time of a round trip passes
		votes    bool
		refused  bool
		nextAsks int // members that are asked when it passes once more
	}{
		"nobody has":                  {expired: markPatience - 1, nextAsks: 2},
		"one has":                     {of: []protocol.ID{2}, nextAsks: 1},
		"all have":                    {of: []protocol.ID{2, 3}, votes: true},
		"one has, the other had time": {of: []protocol.ID{3}, expired: markPatience, votes: true},
		"all had time":                {expired: markPatience, votes: true},
		"one knows more":              {of: []protocol.ID{2}, know: 1, refused: true},
		"the last knows more":         {of: []protocol.ID{3}, know: 7, expired: 2, refused: true},
	} {
		keys := memory{}
		start := func() (*Admission, *protocol.Env[smr.Message]) {
			a := NewAdmission(smr.ReplicaConfig{ID: 1, Members: group(1, 2, 3), RoundTrip: time.Second},
				NewState(&journal{}, group(1, 2, 3)))
			env := protocol.NewEnv[smr.Message](keys, 5, rand.New(rand.NewPCG(1, uint64(len(keys)))))
			env.Begin(0)
			a.Start(env, len(keys) == 0)
			return a, env
		}
		keep := func(env *protocol.Env[smr.Message]) {
			for _, e := range env.Out {
				if e.Kind == protocol.KindPut {
					keys[string(e.Key)] = e.Value
				}
			}
			env.Begin(0)
		}
		a, env := start()
		for from := protocol.ID(2); from <= 3; from++ {
			a.Welcome(env, from, Welcome{Disk: 1, Asked: a.Own(), Known: a.Own()})
		}
		if keep(env); !a.Admitted() || !a.Votes() {
			t.Fatalf("%s: a new replica takes part: %v, votes: %v", name, a.Admitted(), a.Votes())
		}
		a, env = start()
		if a.Admitted() || a.Votes() || a.Refused() {
			t.Errorf("%s: before anybody was asked it takes part: %v, votes: %v, is refused: %v", name, a.Admitted(), a.Votes(),
				a.Refused())
		}
		asked := map[protocol.ID]Hello{}
		for _, s := range sentTo(env) {
			if h, ok := s.msg.(Hello); ok {
				asked[s.to] = h
			}
		}
		for range answers.expired {
			env.Begin(0)
			a.Expire(env)
		}
		for _, from := range answers.of {
			other := NewAdmission(smr.ReplicaConfig{ID: from, Members: group(1, 2, 3), RoundTrip: time.Second},
				NewState(&journal{}, group(1, 2, 3)))
			told := protocol.NewEnv[smr.Message](memory{}, 1, rand.New(rand.NewPCG(2, 1)))
			told.Begin(0)
			if answers.know > 0 {
				other.marks[1] = markedDisk{a.Own(), DiskMark{asked[from].Mark.Next + answers.know, 1}}
			}
			other.Hello(told, 1, asked[from])
			for _, s := range sentTo(told) {
				a.Welcome(env, from, s.msg.(Welcome))
			}
		}
		if a.Votes() != answers.votes || a.Admitted() != answers.votes || a.Refused() != answers.refused {
			t.Errorf("%s: votes %v, takes part %v, is refused %v, want %v, %v, %v", name, a.Votes(), a.Admitted(), a.Refused(),
				answers.votes, answers.votes, answers.refused)
		}
		env.Begin(0)
		a.Expire(env)
		asks := 0
		for _, s := range sentTo(env) {
			if h, ok := s.msg.(Hello); ok && h.Ask {
				asks++
			}
		}
		if asks != answers.nextAsks {
			t.Errorf("%s: then %d are asked, want %d", name, asks, answers.nextAsks)
		}
	}
}

// TestMarksAreTold has a replica that takes part write, again and again. The others are told how
// far its disk is, once in a while as long as it writes, and are not woken for nothing.
func TestMarksAreTold(t *testing.T) {
	r, env := writer(t)
	timers := func() (n int) {
		for _, e := range env.Out {
			if e.Kind == protocol.KindAfter && e.Timer == (AdmissionTimer{}) && e.Delay == markEvery*time.Second {
				n++
			}
		}
		return n
	}
	for range 3 {
		env.Begin(0)
		for range 5 {
			r.Receive(env, 9, Request{})
		}
		if n := timers(); n != 1 {
			t.Fatalf("while it writes the timer is set %d times, want once", n)
		}
		env.Begin(0)
		r.Expire(env, AdmissionTimer{})
		told := map[protocol.ID]uint64{}
		for _, s := range sentTo(env) {
			if h, ok := s.msg.(Hello); ok {
				told[s.to] = h.Mark.Next
			}
		}
		if want := env.NextIndex(); len(told) != 2 || told[2] != want || told[3] != want {
			t.Fatalf("the disk is at %d, and told are %v", want, told)
		}
		env.Begin(0)
		r.Receive(env, 9, ReadRequest{})
		if r.Expire(env, AdmissionTimer{}); timers() > 0 || len(sentTo(env)) > 0 {
			t.Fatalf("nothing was written, and it does %+v", env.Out)
		}
	}
}

// writer is replica 1 of three, which takes part and writes each request down.
func writer(t *testing.T) (*Replica, *protocol.Env[smr.Message]) {
	t.Helper()
	r, err := NewReplica("test", smr.ReplicaConfig{ID: 1, Members: group(1, 2, 3), Machine: &journal{},
		RoundTrip: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	r.Follow(Rules{
		Load: func(*protocol.Env[smr.Message], []protocol.Record[smr.Message]) (bool, error) { return true, nil },
		Client: func(env *protocol.Env[smr.Message], _ protocol.ID, msg smr.Message) {
			if _, ok := msg.(Request); ok {
				env.Append(msg)
			}
		},
	})
	env := protocol.NewEnv[smr.Message](memory{}, 1, rand.New(rand.NewPCG(1, 1)))
	env.Begin(0)
	r.Start(env, nil)
	for from := protocol.ID(2); from <= 3; from++ {
		r.Receive(env, from, Welcome{Disk: 1, Asked: r.Admission.Own(), Known: r.Admission.Own()})
	}
	if !r.Admission.Admitted() {
		t.Fatal("it does not take part")
	}
	r.Expire(env, AdmissionTimer{})
	return &r, env
}

// TestSalvageKnowsItsDisk salvages replicas that joined their group with their disk. One whose disk
// executes a change of the members is not refused as if it had another one; one that was added with
// another one is.
func TestSalvageKnowsItsDisk(t *testing.T) {
	for added, refused := range map[Incarnation]bool{7: false, 8: true} {
		keys := memory{selfKey: nil}
		r, err := NewReplica("test", smr.ReplicaConfig{ID: 4, Members: group(1, 2, 3), Join: true, Machine: &journal{}})
		if err != nil {
			t.Fatal(err)
		}
		r.Follow(Rules{
			Load: func(*protocol.Env[smr.Message], []protocol.Record[smr.Message]) (bool, error) { return false, nil },
			Doubtful: func(env *protocol.Env[smr.Message]) (int, error) {
				r.State.members = members{now: []identified{{Member: smr.Member{ID: 1}}, {smr.Member{ID: 4}, added}}}
				r.MembersChanged(env)
				return 1, nil
			},
		})
		env := protocol.NewEnv[smr.Message](keys, 1, rand.New(rand.NewPCG(1, 1)))
		diskid.Identity{Disk: 7, Joined: true}.Write(env, selfKey)
		keys[selfKey] = env.Out[0].Value
		switch s, err := r.Salvage(env, nil); {
		case refused && (err == nil || !strings.Contains(err.Error(), "another disk")):
			t.Errorf("it was added with another disk: %v", err)
		case !refused && (err != nil || s.Doubtful != 1):
			t.Errorf("it was added with its disk: %+v, %v", s, err)
		}
	}
}
