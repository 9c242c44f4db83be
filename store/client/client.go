package client

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/foresay/foresay/control"
	"github.com/foresay/foresay/driver"
	"github.com/foresay/foresay/store"
)

// Client makes transactions. Its methods may be called concurrently.
type Client struct {
	cfg    Config
	read   *control.CallSite // what speculates
	commit *control.CallSite
	local  *control.CallSite // commits that are guessed by their local commits; nil: there are none
	// domain tells the engine that the store keeps a task's transactions in order by itself, if it has
	// local commits: then one does not wait for those before it.
	domain  *driver.Domain
	control controller
	name    string // of the client as a connection, to the engine
	stats   counters
	rates   rates
	begun   atomic.Uint64 // how many attempts of tasks have read snapshots: it numbers them
}

// New returns a client. The error names the field of the configuration that is wrong.
func New(cfg Config) (*Client, error) {
	switch {
	case cfg.Backend == nil:
		return nil, errors.New("client: Config.Backend is missing")
	case int(cfg.Mode) >= len(modeNames()):
		return nil, fmt.Errorf("client: Config.Mode is %d", cfg.Mode)
	case cfg.MaxAttempts < 0 || cfg.Backoff < 0 || cfg.QuorumAfter < 0:
		return nil, fmt.Errorf("client: Config.MaxAttempts, Backoff or QuorumAfter of %d, %v, %v is negative",
			cfg.MaxAttempts, cfg.Backoff, cfg.QuorumAfter)
	}
	cfg.Backoff = cmp.Or(cfg.Backoff, 6*time.Millisecond)
	cfg.QuorumAfter = cmp.Or(cfg.QuorumAfter, 500*time.Millisecond)
	cfg.Limits.Depth = cmp.Or(cfg.Limits.Depth, store.MaxAccesses)
	c := &Client{cfg: cfg}
	c.name = fmt.Sprintf("store@%p", c)
	mode := control.ModeOn
	if cfg.Mode == Off || cfg.Mode == GRPC {
		mode = control.ModeOff
	}
	var err error
	if c.read, err = control.NewCallSite(control.CallSiteConfig{Name: "store.Read", Mode: mode,
		Effect: control.EffectNone}); err != nil {
		return nil, err
	}
	if speculates(cfg.Backend) && mode == control.ModeOn {
		if c.local, err = control.NewCallSite(control.CallSiteConfig{Name: "store.LocalCommit", Mode: mode,
			Effect: control.EffectStaged, ServerPredictions: true}); err != nil {
			return nil, err
		}
		c.domain = new(driver.Domain)
	}
	c.commit, err = control.NewCallSite(control.CallSiteConfig{Name: "store.Commit", Mode: control.ModeOff,
		Effect: control.EffectImmediate})
	return c, err
}

// Txn runs f as a transaction, again until it is committed: see the package's documentation for
// what f may do. The error is f's own, if that rests on valid reads; one of this package's, which
// say what became of the transaction; or ctx's.
func (c *Client) Txn(ctx context.Context, f func(ctx context.Context, tx *Tx) error, opts ...Option) error {
	_, err := Run(ctx, c, func(ctx context.Context, tx *Tx) (struct{}, error) { return struct{}{}, f(ctx, tx) }, opts...)
	return err
}
