package bfttest

import (
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/foresay/foresay/bft"

	"github.com/foresay/foresay/history"
	"github.com/foresay/foresay/internal/wirefmt"
	"github.com/foresay/foresay/keyspace"
	"github.com/foresay/foresay/protocol"
)

// A Workload is a service in a scenario, with what clients ask of it and how that is judged. Each
// scenario has one of its own.
type Workload interface {
	Service() bft.Service
	// Ask returns what a client asks next. With a result it stands on that of its call before, of
	// which it may have only guessed that it is right.
	Ask(c Caller, on *bft.Result) Question
	// Judge returns an error unless all that clients were told is right.
	Judge() error
}

// A Caller is a client that asks something, at a time.
type Caller struct {
	ID   protocol.ID
	Now  time.Duration
	Rand *rand.Rand
}

// A Question is a call of a client.
type Question struct {
	Command []byte
	Query   bool // the command changes nothing
	// Ended is told when the call has ended, and what was executed; nil says that nothing was.
	Ended func(now time.Duration, r *bft.Result) error
}

// Registers returns the workload of scenarios that have no other one: a key-value store as plain as
// it can be, judged by history.CheckKV.
func Registers() Workload {
	return NewKV(registers{}, inputLayout.Encode, func(_ history.KVInput, value []byte) (history.KVOutput, error) {
		return outputLayout.Decode(value)
	})
}

// KV is a Workload on a key-value store.
type KV struct {
	service bft.Service
	command func(history.KVInput) []byte
	output  func(history.KVInput, []byte) (history.KVOutput, error)
	ops     history.KVRecorder
	asked   int
}

// NewKV returns the workload of a service that has history.KVModel: a command for each input, nil
// if there is none, and what a result of the service says.
func NewKV(s bft.Service, command func(history.KVInput) []byte,
	output func(history.KVInput, []byte) (history.KVOutput, error)) *KV {
	return &KV{service: s, command: command, output: output}
}

// Service is part of Workload, as are Ask and Judge.
func (k *KV) Service() bft.Service { return k.service }

// Ask asks for a few keys, which are other ones twice a second.
func (k *KV) Ask(c Caller, _ *bft.Result) Question {
	k.asked++
	in := history.KVInput{Key: fmt.Sprintf("%d-%d", c.Now/(500*time.Millisecond), c.Rand.IntN(3))}
	switch n := c.Rand.IntN(10); {
	case n < 3:
		in.Kind = history.KVGet
	case n < 6:
		in.Kind, in.Value = history.KVPut, fmt.Sprint("v", k.asked)
	case n < 8:
		in.Kind, in.Value = history.KVAppend, fmt.Sprint("+", k.asked)
	case n < 9:
		in.Kind, in.Value = history.KVCAS, fmt.Sprint("v", k.asked)
	default:
		in.Kind = history.KVDelete
	}
	command := k.command(in)
	if command == nil {
		in.Kind = history.KVPut
		command = k.command(in)
	}
	record := k.ops.Invoke(history.Client(c.ID), c.Now, in)
	return Question{Command: command, Query: in.Kind == history.KVGet,
		Ended: func(now time.Duration, r *bft.Result) error {
			if r == nil {
				record.Fail(now)
				return nil
			}
			out, err := k.output(in, r.Value)
			if err == nil {
				record.Return(now, out)
			}
			return err
		}}
}

// Judge returns an error unless what clients saw is linearizable.
func (k *KV) Judge() error { return history.CheckKV(&k.ops, 20*time.Second) }

// registers is the service of scenarios: that of history.KVModel.
type registers struct{}

var inputLayout = wirefmt.NewLayout("the test's command", func(c *wirefmt.Coder, m *history.KVInput) {
	wirefmt.Enum(c, &m.Kind, 0, 255, "kind")
	wirefmt.String(c, &m.Key)
	wirefmt.String(c, &m.Value)
	wirefmt.String(c, &m.Expect.Value)
	wirefmt.Bool(c, &m.Expect.Found)
})

var outputLayout = wirefmt.NewLayout("the test's output", func(c *wirefmt.Coder, o *history.KVOutput) {
	wirefmt.String(c, &o.State.Value)
	wirefmt.Bool(c, &o.State.Found)
	wirefmt.Bool(c, &o.Swapped)
})

func stateOf(keys keyspace.Reader, key string) history.KVState {
	v, ok := keys.Get([]byte(key))
	return history.KVState{Value: string(v), Found: ok}
}

// Apply is part of bft.Service.
func (registers) Apply(space keyspace.Space, _ time.Duration, command []byte) []byte {
	in, err := inputLayout.Decode(command)
	if err != nil {
		return []byte(err.Error())
	}
	now := stateOf(space, in.Key)
	out := history.KVOutput{Swapped: in.Kind == history.KVCAS && now == in.Expect}
	if in.Kind == history.KVGet {
		out.State = now
	}
	if next, _ := history.KVModel().Step(now, in, nil); next != now {
		if next.Found {
			space.Put([]byte(in.Key), []byte(next.Value))
		} else {
			space.Delete([]byte(in.Key))
		}
	}
	return outputLayout.Encode(out)
}

// Read is part of bft.Service.
func (registers) Read(keys keyspace.Reader, query []byte) []byte {
	in, err := inputLayout.Decode(query)
	if err != nil {
		return []byte(err.Error())
	}
	return outputLayout.Encode(history.KVOutput{State: stateOf(keys, in.Key)})
}
