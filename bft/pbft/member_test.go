package pbft

import (
	"testing"

	"github.com/foresay/foresay/bft"
	"github.com/foresay/foresay/keyspace"
	"github.com/foresay/foresay/protocol"
)

type noService struct{ bft.Service }

// member returns the first of four replicas, with an empty disk.
func member(t *testing.T) *replica {
	t.Helper()
	var secrets bft.Secrets
	d := &bft.Directory{}
	for id := range protocol.ID(4) {
		d.Members = append(d.Members, bft.Party{ID: id + 1, Key: secrets.Signer(uint64(id)).Key()})
	}
	r, err := newReplica(bft.ReplicaConfig{ID: 1, Directory: d, Scheme: bft.NewScheme("test", &secrets),
		Signer: secrets.Signer(0), Service: noService{}})
	if err != nil {
		t.Fatal(err)
	}
	if r.state, err = keyspace.Open(protocol.NewEnv[bft.Message](nil, 1, nil), statePrefix); err != nil {
		t.Fatal(err)
	}
	return r
}
