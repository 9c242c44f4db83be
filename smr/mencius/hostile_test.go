package mencius

import (
	"testing"

	"github.com/foresay/foresay/smr"
	"github.com/foresay/foresay/smr/kit"
	"github.com/foresay/foresay/smr/kv"
	"github.com/foresay/foresay/smr/smrtest"
)

// FuzzReceive gives replicas messages as they like to be.
func FuzzReceive(f *testing.F) {
	smrtest.Hostile(f, codec(), messages(), func(cfg smr.ReplicaConfig) (smrtest.Replica, func() kit.Incarnation, error) {
		cfg.Machine = kv.New()
		r, err := newReplica(cfg)
		if err != nil {
			return nil, nil, err
		}
		return r, r.Admission.Own, nil
	})
}
