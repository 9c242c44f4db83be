package etcd

import (
	"fmt"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/foresay/foresay/control"
)

// Config describes a KV.
type Config struct {
	// Far is asked for linearizable reads, and makes the writes. Required.
	Far *clientv3.Client
	// Near is asked for serializable reads: a client whose only endpoint is the
	// nearest member. nil: Far.
	Near *clientv3.Client
	// Name begins the names of the sites. Default "etcd".
	Name string
	// Mode and Share say for which requests the near member is asked, and its
	// answers taken: see control.CallSiteConfig. Without one that is none.
	Mode  control.Mode
	Share float64
	// Control, if not nil, switches the call sites. It knows them until it is told to
	// Remove them.
	Control *control.Control
	// SameRevision accepts a near answer only if its header has the revision of
	// the linearizable one, too: if nothing at all was written in between.
	SameRevision bool
	// Concurrent sends linearizable reads without waiting for the earlier ones of
	// the goroutine. Each is linearizable, but a later one may see an older state.
	Concurrent bool
	// Limits bound what is predicted.
	Limits control.CallSiteLimits
}

// KV is a clientv3.KV whose reads run ahead, in tasks. It is safe for concurrent
// use. It does not own its clients.
type KV struct {
	clientv3.KV
	remote *remote
}

// New validates the configuration.
func New(cfg Config) (*KV, error) {
	if cfg.Far == nil {
		return nil, fmt.Errorf("etcd: Far is nil")
	}
	if cfg.Near == nil {
		cfg.Near = cfg.Far
	}
	if cfg.Name == "" {
		cfg.Name = "etcd"
	}
	r, err := newRemote(&cfg)
	if err != nil {
		return nil, fmt.Errorf("etcd: %w", err)
	}
	return &KV{KV: clientv3.NewKVFromKVClient(r, cfg.Far), remote: r}, nil
}

// CallSites returns the call sites of Get and of a Txn without writes.
func (kv *KV) CallSites() (get, txn *control.CallSite) {
	return kv.remote.ranges.CallSite(), kv.remote.txns.CallSite()
}
