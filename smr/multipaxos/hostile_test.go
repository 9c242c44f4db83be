package multipaxos_test

import (
	"testing"

	"github.com/foresay/foresay/smr"
	"github.com/foresay/foresay/smr/kit"
	"github.com/foresay/foresay/smr/kv"
	"github.com/foresay/foresay/smr/multipaxos"
	"github.com/foresay/foresay/smr/smrtest"
)

// FuzzReceive gives replicas messages as they like to be.
func FuzzReceive(f *testing.F) {
	smrtest.Hostile(f, multipaxos.Codec(), messages(), func(cfg smr.ReplicaConfig) (smrtest.Replica,
		func() kit.Incarnation, error) {
		cfg.Machine = kv.New()
		r, err := multipaxos.NewReplica(cfg)
		return r, nil, err
	})
}
