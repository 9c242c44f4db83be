package service

import (
	"context"
	"testing"
	"time"

	"github.com/foresay/foresay/internal/catalog"
	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/smr"
)

// TestLearnerThatWasAway: a learner that ends before it is added is one again when it is started,
// although somebody has asked for the change meanwhile, and has given up.
func TestLearnerThatWasAway(t *testing.T) {
	for _, name := range catalog.Names() {
		t.Run(name, func(t *testing.T) {
			inWorld(t, name, func(w *world) {
				if !w.proto().Learns {
					w.Skip("it has no learners")
				}
				for id := range protocol.ID(3) {
					w.start(id + 1)
				}
				if _, err := InitJoin(w.dir, 4, "d:1"); err != nil {
					w.Fatal(err)
				}
				four := w.start(4)
				w.client(func(ctx context.Context, c *Client) {
					learns := func() {
						w.Helper()
						ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
						defer cancel()
						if _, err := c.AwaitLearner(ctx, 4, nil); err != nil {
							w.Fatal(err)
						}
					}
					learns()
					if err := four.end(); err != nil {
						w.Fatal(err)
					}
					time.Sleep(2 * time.Second)
					short, cancel := context.WithTimeout(ctx, 2*time.Second)
					defer cancel()
					if err := c.Change(short, smr.Change{Add: smr.Member{ID: 4, Address: "d:1"}}); err == nil {
						w.Fatal("it was added while it was away")
					}
					w.start(4)
					learns()
					if _, err := c.Promote(ctx, 4); err != nil {
						w.Fatal(err)
					}
					if s := w.equal(ctx, c); len(s) != 4 {
						w.Errorf("the statuses are %+v", s)
					}
				})
			})
		})
	}
}
