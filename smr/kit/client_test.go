package kit

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/foresay/foresay/internal/heap"
	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/smr"
)

// chaos is a group of replicas that answers a client as it likes, but never with what is not true.
type chaos struct {
	rnd    *rand.Rand
	client *Client
	env    *protocol.Env[smr.Message]
	state  *State
	timers map[protocol.Timer]time.Duration
	mail   []letter
	done   map[smr.CallID]smr.Done
	twice  []smr.CallID
	silent bool // nobody answers
}

func newChaos(t *testing.T, seed uint64, cfg smr.ClientConfig) *chaos {
	t.Helper()
	cfg.ID, cfg.Members = 9, group(1, 2, 3)
	client, err := NewClient(cfg, Hooks{})
	if err != nil {
		t.Fatal(err)
	}
	rnd := rand.New(rand.NewPCG(seed, 7))
	c := &chaos{
		rnd: rnd, client: client, env: protocol.NewEnv[smr.Message](nil, 1, rnd), state: NewState(&journal{}, cfg.Members),
		timers: map[protocol.Timer]time.Duration{}, done: map[smr.CallID]smr.Done{},
	}
	c.step(t, 0, func() { client.Start(c.env, nil) })
	return c
}

func (c *chaos) step(t *testing.T, now time.Duration, call func()) {
	t.Helper()
	c.env.Begin(now)
	call()
	if err := c.client.Check(); err != nil {
		t.Fatal(err)
	}
	for _, e := range c.env.Out {
		switch {
		case e.Kind == protocol.KindAfter:
			c.timers[e.Timer] = now + e.Delay
		case e.Kind == protocol.KindStop:
			delete(c.timers, e.Timer)
		case e.To != protocol.App:
			c.mail = append(c.mail, letter{9, e.To, e.Msg})
		default:
			if d, ok := e.Msg.(smr.Done); ok {
				if _, again := c.done[d.ID]; again {
					c.twice = append(c.twice, d.ID)
				}
				c.done[d.ID] = d
			}
		}
	}
}

// answer has a replica answer a letter, perhaps wildly.
func (c *chaos) answer(l letter) smr.Message {
	if c.rnd.IntN(3) == 0 {
		return []smr.Message{
			Redirect{}, Redirect{Leader: smr.Member{ID: protocol.ID(1 + c.rnd.IntN(5))}}, Busy{Open: true}, OpenReply{Nonce: 1},
			// of a session that it does not have any more
			Replies{Session: 99, Items: []CommandReply{{Seq: Seq(1 + c.rnd.IntN(40)), Outcome: smr.Committed}}},
		}[c.rnd.IntN(5)]
	}
	apply := func(e Entry) Reply { return c.state.Apply(c.state.Applied()+1, e) }
	switch m := l.msg.(type) {
	case OpenRequest:
		r := apply(Entry{Kind: OpenSession, Client: 9, Seq: m.Nonce, Open: &Open{MaxSessions: 1 + uint64(c.rnd.IntN(2)),
			Window: 20}})
		return OpenReply{Nonce: m.Nonce, Session: r.Session, Window: r.Window}
	case Request:
		out := Replies{Session: m.Session}
		busy := Busy{Session: m.Session}
		for _, q := range m.Commands {
			if c.rnd.IntN(8) == 0 {
				busy.Seqs = append(busy.Seqs, q.Seq)
				continue
			}
			r := apply(Entry{Kind: Command, Client: 9, Session: m.Session, Seq: q.Seq, Acked: m.Acked, Command: q.Command})
			out.Items = append(out.Items, CommandReply{q.Seq, r.Outcome, r.Slot, r.Result, r.Reason, r.Gone})
		}
		if c.rnd.IntN(4) == 0 {
			return busy
		}
		return out
	case ChangeRequest:
		return NotYet{m.Session, m.Seq, "not now"}
	case ReadRequest:
		out := ReadReplies{}
		for _, q := range m.Queries {
			out.Items = append(out.Items, ReadReply{ID: q.ID, Result: c.state.Read(q.Body)})
		}
		return out
	}
	return nil
}

// pass lets time pass, from one event to the next.
func (c *chaos) pass(t *testing.T, now time.Duration) {
	t.Helper()
	for _, timer := range []protocol.Timer{FlushTimer{}, TickTimer{}} {
		if at, ok := c.timers[timer]; ok && at <= now {
			delete(c.timers, timer)
			c.step(t, now, func() { c.client.Expire(c.env, timer) })
		}
	}
	for range len(c.mail) {
		i := c.rnd.IntN(len(c.mail))
		l := c.mail[i]
		c.mail = append(c.mail[:i], c.mail[i+1:]...)
		if c.silent || c.rnd.IntN(4) == 0 {
			continue
		}
		if l.to == 9 {
			c.step(t, now, func() { c.client.Receive(c.env, l.from, l.msg) })
			if c.rnd.IntN(8) == 0 {
				c.step(t, now, func() { c.client.Receive(c.env, l.from, l.msg) })
			}
			continue
		}
		c.mail = append(c.mail, letter{l.to, 9, c.answer(l)})
	}
}

// TestOneDoneForEachCall has replicas answer as they like. Each call is done once; what was
// executed was executed once, and is told so or as unknown.
func TestOneDoneForEachCall(t *testing.T) {
	outcomes := map[smr.Outcome]int{}
	for seed := range uint64(200) {
		c := newChaos(t, seed, smr.ClientConfig{RoundTrip: 10 * time.Millisecond, MaxPending: 30})
		calls, commands := smr.CallID(0), map[smr.CallID]bool{}
		for ms := range 4000 {
			now := time.Duration(ms) * time.Millisecond
			if ms < 1000 && ms%10 == 0 {
				for range c.rnd.IntN(5) {
					calls++
					call := smr.Call{ID: calls, Kind: smr.CallKind(1 + c.rnd.IntN(3)), Command: fmt.Append(nil, calls)}
					if c.rnd.IntN(20) == 0 {
						call.Kind, call.Change = smr.Reconfigure, smr.Change{Remove: 3}
					}
					commands[calls] = call.Kind < smr.Read
					c.step(t, now, func() { c.client.Receive(c.env, protocol.App, call) })
				}
				if c.rnd.IntN(20) == 0 {
					members := []smr.Member{{ID: 1}, {ID: 2}, {ID: 3}, {ID: 4}, {ID: 5}}[c.rnd.IntN(3):][:c.rnd.IntN(4)]
					c.step(t, now, func() { c.client.Receive(c.env, protocol.App, smr.MembersAre{Members: members}) })
				}
				if c.rnd.IntN(5) == 0 && calls > 0 {
					c.step(t, now, func() { c.client.Receive(c.env, protocol.App, smr.Cancel{ID: calls}) })
				}
			}
			c.silent = ms/200%4 == 3
			c.pass(t, now)
		}
		executed := map[string]int{}
		for _, command := range c.state.machine.(*journal).commands {
			executed[string(command)]++
		}
		for id := smr.CallID(1); id <= calls; id++ {
			d, ok := c.done[id]
			n := executed[fmt.Sprint(id)]
			if !ok || n > 1 || n == 1 && d.Outcome == smr.Rejected || n == 0 && d.Outcome == smr.Committed && commands[id] {
				t.Fatalf("seed %d, call %d: done %v, %+v, executed %d times", seed, id, ok, d, n)
			}
			outcomes[d.Outcome]++
		}
		if len(c.twice) > 0 {
			t.Fatalf("seed %d: calls %v were done twice", seed, c.twice)
		}
	}
	for _, o := range []smr.Outcome{smr.Committed, smr.Rejected, smr.Unknown} {
		if outcomes[o] < 100 {
			t.Errorf("%d calls were %v", outcomes[o], o)
		}
	}
}

// TestNobodyAnswers has all calls end within the client's patience, those that nobody was asked for
// as rejected.
func TestNobodyAnswers(t *testing.T) {
	c := newChaos(t, 1, smr.ClientConfig{RoundTrip: 10 * time.Millisecond})
	c.silent = true
	c.step(t, 0, func() { c.client.Receive(c.env, protocol.App, smr.Call{ID: 1, Kind: smr.Execute}) })
	c.step(t, 0, func() { c.client.Receive(c.env, protocol.App, smr.Call{ID: 2, Kind: smr.Read}) })
	sent := 0
	for ms := range 2000 {
		c.pass(t, time.Duration(ms)*time.Millisecond)
		sent += len(c.mail)
	}
	if d := c.done[1]; d.Outcome != smr.Rejected {
		t.Errorf("a command without a session: %+v", d)
	}
	if d := c.done[2]; d.Outcome != smr.Unknown {
		t.Errorf("a read: %+v", d)
	}
	if sent > 100 {
		t.Errorf("%d messages were sent to nobody in two seconds", sent)
	}
}

func TestClientRejects(t *testing.T) {
	c := newChaos(t, 1, smr.ClientConfig{MaxPending: 2})
	for id, call := range []smr.Call{
		{Kind: 99}, {Kind: smr.Reconfigure}, {Kind: smr.Execute}, {Kind: smr.Read}, {Kind: smr.Execute},
	} {
		call.ID = smr.CallID(id)
		c.step(t, 0, func() { c.client.Receive(c.env, protocol.App, call) })
	}
	for id, want := range map[smr.CallID]bool{0: true, 1: true, 2: false, 3: false, 4: true} {
		if d, ok := c.done[id]; ok != want || ok && (d.Outcome != smr.Rejected || d.Reason == "") {
			t.Errorf("call %d: %+v, %v", id, d, ok)
		}
	}
}

func TestConfigurationsAreChecked(t *testing.T) {
	for want, cfg := range map[string]smr.ClientConfig{
		"ClientConfig.Members":    {ID: 9},
		"there twice":             {ID: 9, Members: group(1, 1)},
		"ClientConfig.ID is 0":    {Members: group(1)},
		"1 is a member":           {ID: 1, Members: group(1)},
		"ClientConfig.Nearest":    {ID: 9, Members: group(1), Nearest: 2},
		"ClientConfig.RoundTrip":  {ID: 9, Members: group(1), RoundTrip: -1},
		"ClientConfig.MaxPending": {ID: 9, Members: group(1), MaxPending: -1},
	} {
		if _, err := NewClient(cfg, Hooks{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v, want %q", cfg, err, want)
		}
	}
	j := &journal{}
	for want, cfg := range map[string]smr.ReplicaConfig{
		"ReplicaConfig.Members: one has": {ID: 1, Members: group(0, 1), Machine: j},
		"does not have the replica":      {ID: 4, Members: group(1), Machine: j},
		"ReplicaConfig.ID is 0":          {Members: group(1), Machine: j},
		"ReplicaConfig.Machine":          {ID: 1, Members: group(1)},
		"ReplicaConfig.Leader":           {ID: 1, Members: group(1), Machine: j, Leader: 2},
		"ReplicaConfig.RoundTrip":        {ID: 1, Members: group(1), Machine: j, RoundTrip: -1},
		"ReplicaConfig.MaxBatch":         {ID: 1, Members: group(1), Machine: j, MaxBatch: -1},
		"ReplicaConfig.MaxPending":       {ID: 1, Members: group(1), Machine: j, MaxPending: -1},
		"ReplicaConfig.SnapshotEvery":    {ID: 1, Members: group(1), Machine: j, SnapshotEvery: -1},
		"ReplicaConfig.MaxSessions":      {ID: 1, Members: group(1), Machine: j, MaxSessions: -1},
	} {
		if _, err := cfg.WithDefaults(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v, want %q", cfg, err, want)
		}
	}
	cfg, err := smr.ReplicaConfig{ID: 2, Members: group(3, 2), Machine: j}.WithDefaults()
	if err != nil || cfg.RoundTrip != 100*time.Millisecond || cfg.MaxBatch != 1024 || cfg.Members[0].ID != 2 {
		t.Errorf("%+v, %v", cfg, err)
	}
}

func TestMain(m *testing.M) { os.Exit(heap.RunTests(m)) }
