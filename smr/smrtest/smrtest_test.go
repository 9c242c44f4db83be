package smrtest

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/foresay/foresay/history"
	"github.com/foresay/foresay/internal/wirefmt/wiretest"
	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/smr"
	"github.com/foresay/foresay/smr/kit"
	"github.com/foresay/foresay/smr/raft"
)

// planted is a node with a bug: it meddles with what a right one gets and wants done.
type planted struct {
	protocol.Node[smr.Message]
	id protocol.ID
	// receive may change a message, or drop it. nil: nothing.
	receive func(env *protocol.Env[smr.Message], from protocol.ID, msg smr.Message) (smr.Message, bool)
	// effect may change an effect, or drop it. nil: nothing.
	effect func(env *protocol.Env[smr.Message], e *protocol.Effect[smr.Message]) bool
}

func (p *planted) Start(env *protocol.Env[smr.Message], log []protocol.Record[smr.Message]) {
	p.Node.Start(env, log)
	p.meddle(env)
}

func (p *planted) Receive(env *protocol.Env[smr.Message], from protocol.ID, msg smr.Message) {
	ok := true
	if p.receive != nil {
		msg, ok = p.receive(env, from, msg)
	}
	if ok {
		p.Node.Receive(env, from, msg)
	}
	p.meddle(env)
}

func (p *planted) Expire(env *protocol.Env[smr.Message], t protocol.Timer) {
	p.Node.Expire(env, t)
	p.meddle(env)
}

func (p *planted) meddle(env *protocol.Env[smr.Message]) {
	if p.effect != nil {
		for i := 0; i < len(env.Out); i++ {
			if !p.effect(env, &env.Out[i]) {
				env.Out = slices.Delete(env.Out, i, i+1)
				i--
			}
		}
	}
}

// replicas returns Raft with a bug in its replicas.
func replicas(plant func(*planted, smr.ReplicaConfig)) smr.Protocol {
	p := raft.Protocol()
	right := p.NewReplica
	p.NewReplica = func(cfg smr.ReplicaConfig) (protocol.Node[smr.Message], error) {
		n, err := right(cfg)
		bad := &planted{Node: n, id: cfg.ID}
		plant(bad, cfg)
		return bad, err
	}
	return p
}

// clients returns Raft with a bug in its clients.
func clients(plant func(*planted)) smr.Protocol {
	p := raft.Protocol()
	right := p.NewClient
	p.NewClient = func(cfg smr.ClientConfig) (protocol.Node[smr.Message], error) {
		n, err := right(cfg)
		bad := &planted{Node: n, id: cfg.ID}
		plant(bad)
		return bad, err
	}
	return p
}

// machines returns Raft whose replicas have a bug in front of their state machines.
func machines(wrap func(protocol.ID, smr.StateMachine) smr.StateMachine) smr.Protocol {
	p := raft.Protocol()
	right := p.NewReplica
	p.NewReplica = func(cfg smr.ReplicaConfig) (protocol.Node[smr.Message], error) {
		cfg.Machine = wrap(cfg.ID, cfg.Machine)
		return right(cfg)
	}
	return p
}

// swapper applies every tenth command of a replica after the one that follows.
type swapper struct {
	smr.StateMachine
	n    int
	kept []byte
}

func (s *swapper) Apply(command []byte) []byte {
	s.n++
	if s.n%10 == 0 {
		s.kept = command
		return outputLayout.Encode(history.KVOutput{})
	}
	r := s.StateMachine.Apply(command)
	if s.kept != nil {
		s.StateMachine.Apply(s.kept)
		s.kept = nil
	}
	return r
}

// bug is a planted bug, and what finds it.
type bug struct {
	name     string
	protocol smr.Protocol
	script   string // that finds it; "" for seeds under faults
	seeds    uint64 // within which it is found
	want     string // in the error
}

func bugs() []bug {
	return []bug{
		{"answers before the disk", replicas(answersEarly), "all crash", 10,
			"Durability|Agreement|linearizability|older copy of itself"},
		{"applies in another order", machines(func(id protocol.ID, m smr.StateMachine) smr.StateMachine {
			if id == 2 {
				return &swapper{StateMachine: m}
			}
			return m
		}), "calm", 1, "Agreement"},
		{"makes up commands", replicas(makesUp), "calm", 1, "Validity"},
		{"does not know a command again", replicas(forgetsSeqs), "", 20, "exactly once"},
		{"answers reads from a cache", replicas(cachesReads), "calm", 1, "linearizability"},
		{"tells a client that a command is done that is not", clients(tooOptimistic), "", 20,
			"Durability|linearizability|Agreement"},
		{"says twice that a call is done", clients(saysTwice), "calm", 1, "done twice"},
		{"never says that a call is done", clients(saysNothing), "calm", 1, "liveness"},
		{"stands still after a partition", replicas(standsStill), "", 20, "liveness"},
		{"does not miss a leader", replicas(trustsForEver), "failover", 1, "liveness"},
		{"keeps its log for ever", configured(func(c *smr.ReplicaConfig) {
			c.SnapshotEvery = 1 << 30
		}), "catch up", 1, "compaction"},
		{"takes no snapshot from others", replicas(takesNoSnapshot), "catch up", 1, "liveness"},
		{"welcomes any disk", replicas(welcomesAll), "lost disk", 5, "identity|Agreement"},
		{"says that it changed the members", clients(changesNothing), "members", 1, "members|not equal"},
		{"looks at the wall clock", replicas(looksAtClock), "twice", 3, "determinism"},
	}
}

func answersEarly(p *planted, _ smr.ReplicaConfig) {
	p.effect = func(_ *protocol.Env[smr.Message], e *protocol.Effect[smr.Message]) bool {
		if e.Kind == protocol.KindSend && e.To != protocol.App {
			e.Kind = protocol.KindSendAhead
		}
		return true
	}
}

func makesUp(p *planted, _ smr.ReplicaConfig) {
	p.receive = func(_ *protocol.Env[smr.Message], _ protocol.ID, msg smr.Message) (smr.Message, bool) {
		if r, ok := msg.(kit.Request); ok && r.Commands[0].Seq == 5 {
			c, err := commandLayout.Decode(r.Commands[0].Command)
			if err == nil {
				c.id += 1 << 40
				r.Commands = slices.Clone(r.Commands)
				r.Commands[0].Command = c.encode()
			}
			return r, true
		}
		return msg, true
	}
}

// forgetsSeqs takes a command that comes a second time for another one.
func forgetsSeqs(p *planted, _ smr.ReplicaConfig) {
	const further = 10000 // within the window of a session
	type key struct {
		s kit.SessionID
		q kit.Seq
	}
	seen := map[key]kit.Seq{}
	p.receive = func(_ *protocol.Env[smr.Message], from protocol.ID, msg smr.Message) (smr.Message, bool) {
		r, ok := msg.(kit.Request)
		if !ok || from == protocol.App {
			return msg, true
		}
		r.Commands = slices.Clone(r.Commands)
		for i, c := range r.Commands {
			k := key{r.Session, c.Seq}
			r.Commands[i].Seq += further * seen[k]
			seen[k]++
		}
		return r, true
	}
	p.effect = func(_ *protocol.Env[smr.Message], e *protocol.Effect[smr.Message]) bool {
		if r, ok := e.Msg.(kit.Replies); ok && e.Kind == protocol.KindSendAhead {
			r.Items = slices.Clone(r.Items)
			for i := range r.Items {
				r.Items[i].Seq %= further
			}
			e.Msg = r
		}
		return true
	}
}

// cachesReads answers a query again as it did before.
func cachesReads(p *planted, cfg smr.ReplicaConfig) {
	known := map[string][]byte{}
	p.receive = func(env *protocol.Env[smr.Message], from protocol.ID, msg smr.Message) (smr.Message, bool) {
		r, ok := msg.(kit.ReadRequest)
		if !ok {
			return msg, true
		}
		var out kit.ReadReplies
		for _, q := range r.Queries {
			key := string(q.Body)
			if known[key] == nil {
				known[key] = cfg.Machine.Read(q.Body)
			}
			out.Items = append(out.Items, kit.ReadReply{ID: q.ID, Result: known[key]})
		}
		env.Send(from, out)
		return nil, false
	}
}

// tooOptimistic takes what it proposed for done when it is sent, if it is not answered for long.
func tooOptimistic(p *planted) {
	p.receive = func(env *protocol.Env[smr.Message], from protocol.ID, msg smr.Message) (smr.Message, bool) {
		if c, ok := msg.(smr.Cancel); ok && from == protocol.App {
			p.effect = func(_ *protocol.Env[smr.Message], e *protocol.Effect[smr.Message]) bool {
				if d, ok := e.Msg.(smr.Done); ok && d.ID == c.ID && d.Outcome != smr.Committed {
					d.Outcome, d.Result = smr.Committed, outputLayout.Encode(history.KVOutput{})
					e.Msg = d
				}
				return true
			}
		}
		return msg, true
	}
}

func saysTwice(p *planted) {
	var last smr.Done
	p.receive = func(env *protocol.Env[smr.Message], _ protocol.ID, msg smr.Message) (smr.Message, bool) {
		if last.ID == 7 {
			env.Send(protocol.App, last)
		}
		return msg, true
	}
	p.effect = func(_ *protocol.Env[smr.Message], e *protocol.Effect[smr.Message]) bool {
		if d, ok := e.Msg.(smr.Done); ok {
			last = d
		}
		return true
	}
}

func saysNothing(p *planted) {
	p.effect = func(_ *protocol.Env[smr.Message], e *protocol.Effect[smr.Message]) bool {
		d, ok := e.Msg.(smr.Done)
		return !ok || d.ID < 20
	}
}

func standsStill(p *planted, _ smr.ReplicaConfig) {
	dead := false
	last := time.Duration(0)
	p.receive = func(env *protocol.Env[smr.Message], from protocol.ID, msg smr.Message) (smr.Message, bool) {
		dead = dead || p.id == 2 && last > 0 && env.Now-last > 150*time.Millisecond
		if from != protocol.App {
			last = env.Now
		}
		return msg, !dead
	}
	p.effect = func(*protocol.Env[smr.Message], *protocol.Effect[smr.Message]) bool { return !dead }
}

func trustsForEver(p *planted, _ smr.ReplicaConfig) {
	p.effect = func(env *protocol.Env[smr.Message], e *protocol.Effect[smr.Message]) bool {
		return e.Kind != protocol.KindAfter || e.Delay < 3*roundTrip || env.Now < time.Hour+time.Second
	}
}

func configured(change func(*smr.ReplicaConfig)) smr.Protocol {
	p := raft.Protocol()
	right := p.NewReplica
	p.NewReplica = func(cfg smr.ReplicaConfig) (protocol.Node[smr.Message], error) {
		change(&cfg)
		return right(cfg)
	}
	return p
}

func takesNoSnapshot(p *planted, _ smr.ReplicaConfig) {
	p.receive = func(_ *protocol.Env[smr.Message], _ protocol.ID, msg smr.Message) (smr.Message, bool) {
		_, chunk := kit.Inside(msg).(kit.SnapshotChunk)
		return msg, !chunk
	}
}

func welcomesAll(p *planted, _ smr.ReplicaConfig) {
	p.effect = func(_ *protocol.Env[smr.Message], e *protocol.Effect[smr.Message]) bool {
		if w, ok := e.Msg.(kit.Welcome); ok {
			w.Known, w.Reason = w.Asked, ""
			e.Msg = w
		}
		return true
	}
}

func changesNothing(p *planted) {
	p.receive = func(env *protocol.Env[smr.Message], from protocol.ID, msg smr.Message) (smr.Message, bool) {
		if c, ok := msg.(smr.Call); ok && c.Kind == smr.Reconfigure {
			env.Send(protocol.App, smr.Done{ID: c.ID, Outcome: smr.Committed})
			return nil, false
		}
		return msg, true
	}
}

func looksAtClock(p *planted, _ smr.ReplicaConfig) {
	p.effect = func(_ *protocol.Env[smr.Message], e *protocol.Effect[smr.Message]) bool {
		if e.Kind == protocol.KindAfter {
			e.Delay += time.Duration(time.Now().UnixNano() % 1000)
		}
		return true
	}
}

func TestPlantedBugsAreRejected(t *testing.T) {
	for _, b := range bugs() {
		t.Run(b.name, func(t *testing.T) {
			t.Parallel()
			var err error
			for seed := uint64(1); seed <= b.seeds && err == nil; seed++ {
				err = b.find(seed)
			}
			if err == nil {
				t.Fatalf("the suite does not notice it within %d seeds", b.seeds)
			}
			if !slices.ContainsFunc(strings.Split(b.want, "|"), func(w string) bool {
				return strings.Contains(strings.ToLower(err.Error()), strings.ToLower(w))
			}) {
				t.Errorf("got error %v, want one about %s", err, b.want)
			}
		})
	}
}

// find plays what finds the bug, with a seed.
func (b bug) find(seed uint64) error {
	if b.script == "" || b.script == "twice" {
		_, err := playSeed(b.protocol, seed, b.script == "twice")
		return err
	}
	for _, s := range scripts() {
		if s.name == b.script {
			_, err := s.once(b.protocol, seed, "")
			return err
		}
	}
	panic("no script " + b.script)
}

func Example() {
	r, err := Play(Scenario{Protocol: raft.Protocol(), Seed: 1, For: time.Second})
	fmt.Println(r.Committed > 0, r.Crashes, err)
	// Output: true 0 <nil>
}

// TestLayouts tests what the machine of the tests says.
func TestLayouts(t *testing.T) {
	there := history.KVState{Value: "v", Found: true}
	wiretest.Layouts(t,
		wiretest.Sample("command", commandLayout, command{id: 300, KVInput: history.KVInput{
			Kind: history.KVCAS, Key: "k", Value: "w", Expect: there,
		}}, cmp.AllowUnexported(command{})),
		wiretest.Sample("output", outputLayout, history.KVOutput{State: there, Swapped: true}),
		wiretest.Sample("contents", contentsLayout, contents{300, map[string]string{"a": "1", "b": ""}},
			cmp.AllowUnexported(contents{})),
		wiretest.Sample("changes", changesLayout, changes{300, map[string]history.KVState{"a": there, "b": {}}},
			cmp.AllowUnexported(changes{})))
}
