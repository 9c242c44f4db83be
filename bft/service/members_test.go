package service

import (
	"context"
	"path/filepath"
	"strings"
	"testing"

	"github.com/foresay/foresay/bft"
	"github.com/foresay/foresay/protocol"
)

// rotate gives a replica a key that it has had all the time, or gets now.
func (w *world) rotate(ctx context.Context, c *Client, id protocol.ID) {
	w.Helper()
	text, err := InitNextKey(w.config(id))
	if err != nil {
		w.Fatal(err)
	}
	key, err := ParseKey(text)
	if err != nil {
		w.Fatal(err)
	}
	w.change(ctx, c, bft.Change{Kind: bft.RotateKeys, Party: bft.Party{ID: id, Key: key}})
}

// change changes the members, and waits until a quorum is in the epoch that begins.
func (w *world) change(ctx context.Context, c *Client, change bft.Change) {
	w.Helper()
	e, err := c.Change(ctx, change)
	if err == nil {
		err = c.AwaitEpoch(ctx, e)
	}
	if err != nil {
		w.Fatalf("%v: %v", change, err)
	}
}

// TestAllKeysAreRotated has all replicas get other keys, one after the other, while one of them is
// down. It comes back, and so does a client that knows the first keys only.
func TestAllKeysAreRotated(t *testing.T) {
	inWorld(t, func(w *world) {
		for id := range protocol.ID(3) {
			w.start(w.config(id+1), "")
		}
		sleeper := w.start(w.config(4), "")
		w.client(0, func(ctx context.Context, c *Client) {
			w.add(ctx, c)
			if err := sleeper.end(); err != nil {
				t.Error(err)
			}
			for id := range protocol.ID(4) {
				w.rotate(ctx, c, id+1)
				if got, want := w.add(ctx, c), uint64(id)+2; got != want {
					t.Errorf("with another key of %d the counter says %d, want %d", id+1, got, want)
				}
			}
			w.start(w.config(4), "")
			for _, s := range w.caughtUp(ctx, c) {
				if s.Epoch != 4 || s.Role == Outside {
					t.Errorf("replica %d is %s in epoch %d", s.Replica, s.Role, s.Epoch)
				}
			}
		})
		w.client(1, func(ctx context.Context, c *Client) {
			if got := w.add(ctx, c); got != 6 {
				t.Errorf("the counter says %d, want 6", got)
			}
			_, err := c.Change(ctx, bft.Change{Kind: bft.Remove, Party: bft.Party{ID: 1}})
			if err == nil || !strings.Contains(err.Error(), "only an administrator") {
				t.Errorf("somebody else changes the members: %v", err)
			}
		})
	})
}

// TestADiskIsReplaced: a replica that has lost its disk does not start; one with another key takes
// its place, and the old key is nobody's.
func TestADiskIsReplaced(t *testing.T) {
	inWorld(t, func(w *world) {
		for id := range protocol.ID(3) {
			w.start(w.config(id+1), "")
		}
		old := w.config(4)
		lost := w.start(old, "")
		w.client(0, func(ctx context.Context, c *Client) {
			w.add(ctx, c)
			if err := lost.end(); err != nil {
				t.Error(err)
			}
			w.moveAway(filepath.Dir(filepath.Join(w.dir, ConfigFile(4))))
			cfg, err := InitJoin(w.dir, 4, "")
			if err != nil {
				t.Fatal(err)
			}
			w.start(cfg, "")
			key, err := ParseKey(cfg.PublicKey())
			if err != nil {
				t.Fatal(err)
			}
			w.change(ctx, c, bft.Change{Kind: bft.Replace, Party: bft.Party{ID: 4, Key: key}})
			w.add(ctx, c)
			for _, s := range w.caughtUp(ctx, c) {
				if s.Epoch != 1 || s.Role == Outside || s.Replica == 4 && s.Transfers == 0 {
					t.Errorf("replica %d is %s in epoch %d, with %d transfers", s.Replica, s.Role, s.Epoch, s.Transfers)
				}
			}
			_, err = c.Change(ctx, bft.Change{Kind: bft.RotateKeys, Party: bft.Party{ID: 4, Key: bft.NewSigner(old.key).Key()}})
			if err == nil || !strings.Contains(err.Error(), "is, or was, a member's") {
				t.Errorf("a key that was replaced is taken: %v", err)
			}
		})
	})
}
