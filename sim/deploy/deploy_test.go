package deploy_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/sim"
	"github.com/foresay/foresay/sim/deploy"
	"github.com/foresay/foresay/wan"
)

// A question is a call's number, or the answer to it.
type question struct {
	n      uint64
	answer bool
}

// oracle answers questions of its application as often as it says.
type oracle struct{ times int }

func (oracle) Start(*protocol.Env[question], []protocol.Record[question]) {}

func (o oracle) Receive(env *protocol.Env[question], from protocol.ID, q question) {
	for range o.times {
		env.Send(from, question{q.n, true})
	}
}

func (oracle) Expire(*protocol.Env[question], protocol.Timer) {}

// forwarder has node 1 answer what its application asks.
type forwarder struct{}

func (forwarder) Start(*protocol.Env[question], []protocol.Record[question]) {}

func (forwarder) Receive(env *protocol.Env[question], from protocol.ID, q question) {
	if from == protocol.App {
		env.Send(1, q)
		return
	}
	env.Send(protocol.App, q)
}

func (forwarder) Expire(*protocol.Env[question], protocol.Timer) {}

func answers(q question) (uint64, bool) { return q.n, q.answer }

func deployed(t *testing.T, times int, c deploy.Config[question]) *deploy.Deployment[question] {
	t.Helper()
	c.Sim.WAN, c.Answers = wan.Uniform(40*time.Millisecond, "here", "there"), answers
	d, err := deploy.New(c)
	if err != nil {
		t.Fatal(err)
	}
	for id, n := range map[protocol.ID]protocol.Node[question]{1: oracle{times}, 2: forwarder{}} {
		site := map[protocol.ID]wan.Site{1: "there", 2: "here"}[id]
		if err := d.Add(id, site, func() (protocol.Node[question], error) { return n, nil }); err != nil {
			t.Fatal(err)
		}
	}
	return d
}

func TestCall(t *testing.T) {
	d := deployed(t, 1, deploy.Config[question]{})
	var got []deploy.Answer[question]
	for want := uint64(1); want <= 2; want++ {
		n := d.Call(2, func(n uint64) question { return question{n: n} }, func(a deploy.Answer[question]) {
			got = append(got, a)
		})
		if n != want || !d.Waiting(2, n) || d.Unanswered() != 1 || d.Calls(2) != int(want) {
			t.Errorf("call %d is %d, waits: %v, %d of %d have no answer", want, n, d.Waiting(2, n), d.Unanswered(), d.Calls(2))
		}
		if err := d.Await(time.Second, func() bool { return d.Unanswered() == 0 }); err != nil {
			t.Fatal(err)
		}
		if a := got[want-1]; a.Call != n || a.Client != 2 || a.Site != "here" || a.Took != 40*time.Millisecond ||
			a.Began != d.Now()-a.Took || !a.Msg.answer {
			t.Errorf("the answer is %+v", a)
		}
	}
}

// TestAnswersAreWaitedFor: an answer that nobody waits for, as there was one, fails the run.
func TestAnswersAreWaitedFor(t *testing.T) {
	d := deployed(t, 2, deploy.Config[question]{})
	d.Call(2, func(n uint64) question { return question{n: n} }, func(deploy.Answer[question]) {})
	err := d.Pass(time.Second)
	if err == nil || !strings.Contains(err.Error(), "at 40ms: client 2: call 1 is done twice") ||
		!errors.Is(d.Err(), err) {
		t.Errorf("error %v", err)
	}
	d.Fail("too late")
	if again := d.Await(time.Second, func() bool { return false }); !errors.Is(again, err) {
		t.Errorf("the first failure was %v, now it is %v", err, again)
	}
}

// TestNodesAreTried: what a constructor says is an error where the node is added. Each node has
// its clock, and what is put around it in each incarnation.
func TestNodesAreTried(t *testing.T) {
	wrapped := map[protocol.ID]int{}
	d := deployed(t, 1, deploy.Config[question]{
		Clock: func(id protocol.ID) sim.Clock { return sim.Clock{Offset: time.Duration(id) * time.Minute} },
		Wrap: func(id protocol.ID, n protocol.Node[question]) protocol.Node[question] {
			wrapped[id]++
			return n
		},
	})
	wrong := errors.New("no such option")
	if err := d.Add(3, "here", func() (protocol.Node[question], error) { return nil, wrong }); !errors.Is(err, wrong) {
		t.Errorf("error %v", err)
	}
	if off := d.Clock(2) - d.Clock(1); off != time.Minute {
		t.Errorf("clocks are %v apart", off)
	}
	d.Crash(1, sim.KeepAll)
	d.Restart(1)
	if got := fmt.Sprint(wrapped); got != "map[1:2 2:1]" {
		t.Errorf("wrapped: %s", got)
	}
}
