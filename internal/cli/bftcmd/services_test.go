package bftcmd

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/foresay/foresay/bft"
	"github.com/foresay/foresay/internal/catalog"
	"github.com/foresay/foresay/internal/cli/command"
	"github.com/foresay/foresay/keyspace"
	"github.com/foresay/foresay/protocol"
)

// TestServices: the commands know what each service is asked for, and the service knows it too.
func TestServices(t *testing.T) {
	for _, name := range catalog.ServiceNames() {
		service, err := catalog.Service(name)
		if err != nil {
			t.Fatal(err)
		}
		s, ok := services()[name]
		if !ok {
			t.Errorf("no command knows the service %s", name)
			continue
		}
		random := rand.New(rand.NewPCG(1, 1))
		l := &command.ClosedLoop{Keys: 1, ValueBytes: 3}
		state, err := keyspace.Open(protocol.NewEnv[bft.Message](nil, 1, nil), "s/")
		if err != nil {
			t.Fatal(err)
		}
		layer := state.Push()
		for _, call := range []bft.Call{s.write(l, random), s.read(l, random), s.write(l, random)} {
			r := bft.Result{Outcome: bft.Executed, Value: service.Apply(layer, time.Second, call.Command)}
			if err := s.failed(r); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
		read := s.read(l, random)
		r := bft.Result{Outcome: bft.Executed, Value: service.Read(layer, read.Command)}
		if err := s.failed(r); err != nil || !read.Read {
			t.Errorf("%s: a read is %+v, and came to %v", name, read, err)
		}
		if len(s.verbs(&dev{})) == 0 {
			t.Errorf("%s has nothing to do at the prompt", name)
		}
	}
}
