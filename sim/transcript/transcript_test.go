package transcript

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/sim"
	"github.com/foresay/foresay/sim/deploy"
	"github.com/foresay/foresay/wan"
)

// A Count is what counters tell each other: how far they have counted.
type Count struct {
	N    int
	From []Origin
}

// An Origin is where a Count came from.
type Origin struct {
	Node protocol.ID
	Sure bool
}

// counter adds what its application says and tells the others.
type counter struct {
	peers []protocol.ID
	n     int
}

func (c *counter) Start(*protocol.Env[any], []protocol.Record[any]) {}

func (c *counter) Receive(env *protocol.Env[any], from protocol.ID, msg any) {
	m, ok := msg.(Count)
	if !ok {
		panic(fmt.Sprintf("%v from %d", msg, from))
	}
	if c.n += m.N; from == protocol.App {
		for _, p := range c.peers {
			env.Send(p, Count{m.N, []Origin{{1, false}}})
		}
	}
}

func (c *counter) Expire(*protocol.Env[any], protocol.Timer) {}

// counters is the family of a scenario.
type counters struct{ nodes *deploy.Deployment[any] }

func (c *counters) Begin(s *Script[any], words []string) (*deploy.Deployment[any], error) {
	var err error
	c.nodes, err = deploy.New(deploy.Config[any]{Sim: sim.Config[any]{WAN: wan.Uniform(20*time.Millisecond, "a", "b",
		"c")}, Wrap: s.Wrap})
	if err != nil {
		return nil, err
	}
	for id := range protocol.ID(3) {
		site := wan.Site("abc"[id : id+1])
		err := c.nodes.Add(id+1, site, func() (protocol.Node[any], error) {
			return &counter{peers: []protocol.ID{1, 2, 3}}, nil
		})
		if err != nil {
			return nil, err
		}
	}
	return c.nodes, c.nodes.Pass(time.Second)
}

func (c *counters) count(id protocol.ID) int {
	n := c.nodes.Get(id).(*actor[any])
	return n.Node.(*counter).n
}

func (c *counters) Do(command string, words []string) (string, error) {
	if command != "add" {
		return "", fmt.Errorf("there is no such command")
	}
	c.nodes.Deliver(1, Count{N: len(words)})
	return fmt.Sprintf("to add %d\n", len(words)), nil
}

func (c *counters) Expect(words []string) error {
	for _, id := range c.nodes.IDs() {
		if got := fmt.Sprint(c.count(id)); got != words[0] {
			return fmt.Errorf("node %d has %s", id, got)
		}
	}
	return nil
}

func (*counters) Format(any) (string, bool) { return "", false }

func (*counters) Name(id protocol.ID) string { return fmt.Sprint("n", id) }

func TestScript(t *testing.T) { Play(t, "testdata", func() Family[any] { return &counters{} }) }

// TestErrors: what a scenario cannot do, or what does not hold, is an error of its command.
func TestErrors(t *testing.T) {
	for commands, want := range map[string]string{
		"run 5ms":                               "the first command is begin",
		"begin; run":                            "want a time",
		"begin; run fast":                       "invalid duration",
		"begin; jump":                           "there is no such command",
		"begin; crash n4":                       "there is no node n4",
		"begin; hold n1->n4":                    "there is no node n4",
		"begin; deliver n1->n2":                 "nothing of that is held",
		"begin; expect 1":                       "node 1 has 0",
		"begin; run until 1":                    "node 1 has 0",
		"begin; run until n1->n2":               "there was no such message",
		"begin; lose Count; add x; run until 2": "node 2 has 0",
		"begin; hold Other; add x; run 20ms; expect 2": "node 2 has 1",
	} {
		s := New[any](&counters{})
		var err error
		for command := range strings.SplitSeq(commands, "; ") {
			if err != nil {
				t.Errorf("%s: %v too early", commands, err)
			}
			_, err = s.Do(command)
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, want %q", commands, err, want)
		}
	}
}
