package bfttest

import (
	"time"

	"github.com/foresay/foresay/history"
	"github.com/foresay/foresay/internal/wirefmt"
	"github.com/foresay/foresay/keyspace"
)

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
