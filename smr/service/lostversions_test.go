package service

import (
	"context"
	"errors"
	"path/filepath"
	"testing"
	"time"

	"github.com/foresay/foresay/protocol"
)

// TestLostVersions: the disk of which a new group is made has not heard of the last versions that
// clients were told. They are not given again: not to a key, not to a lease, not as a lock's token.
// Who has one is told so.
func TestLostVersions(t *testing.T) {
	inWorld(t, "raft", func(w *world) {
		all := []*ran{w.start(1), w.start(2), w.start(3)}
		var kept, lost uint64
		w.client(func(ctx context.Context, c *Client) {
			kept = w.put(ctx, c, "k")
			w.equal(ctx, c)
			if err := all[2].end(); err != nil {
				w.Error(err)
			}
			for range 10 {
				lost = w.put(ctx, c, "k")
			}
		})
		for _, r := range all[:2] {
			if err := r.end(); err != nil {
				w.Error(err)
			}
		}
		r, err := Recover(RecoverOptions{
			Config: filepath.Join(w.dir, ConfigFile(3)), Client: filepath.Join(w.dir, ClientFile),
			Dead: []protocol.ID{1, 2}, AcceptLoss: true, Dial: w.net.DialContext("c"),
		})
		if err != nil {
			w.Fatal(err)
		}
		if r.Version != kept || r.SkippedVersions != DefaultSkipVersions {
			w.Errorf("recovered version %d of %d, %d skipped", r.Version, kept, r.SkippedVersions)
		}
		if w.cfg, err = ReadClientConfig(filepath.Join(w.dir, ClientFile)); err != nil {
			w.Fatal(err)
		}
		w.start(3)
		w.client(func(ctx context.Context, c *Client) { w.staysLost(ctx, c, lost) })
	})
}

func (w *world) put(ctx context.Context, c *Client, key string) uint64 {
	w.Helper()
	version, err := c.Put(ctx, key, nil)
	if err != nil {
		w.Fatal(err)
	}
	return version
}

// staysLost checks that nothing has a version up to one that was lost.
func (w *world) staysLost(ctx context.Context, c *Client, lost uint64) {
	w.Helper()
	w.forgotten(ctx, c, lost)
	for range 10 { // as many as were lost
		if version := w.put(ctx, c, "k"); version <= lost {
			w.Errorf("version %d was given twice", version)
		}
	}
	w.forgotten(ctx, c, lost)
	_, err := c.CompareAndSet(ctx, "k", lost, nil)
	if _, conflict := errors.AsType[*ConflictError](err); !conflict {
		w.Errorf("a change of the version %d, which was lost: %v", lost, err)
	}
	if lease, err := c.Grant(ctx, time.Minute); err != nil || uint64(lease) <= lost {
		w.Errorf("lease %d, %v", lease, err)
	}
	err = c.WithLock(ctx, "lock", time.Minute, func(_ context.Context, token uint64) error {
		if token <= lost {
			w.Errorf("the lock's token %d may be that of another holder", token)
		}
		return nil
	})
	if err != nil {
		w.Error(err)
	}
}
