package service

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/foresay/foresay/internal/catalog"
	"github.com/foresay/foresay/protocol"
)

// TestFilesNameOtherMembers: the file of one replica of a new group names another member beside the
// right ones. Nobody begins; all say why, in the status and in the log, and with the file corrected
// and an empty directory the group begins.
func TestFilesNameOtherMembers(t *testing.T) {
	for _, name := range catalog.Names() {
		t.Run(name, func(t *testing.T) {
			inWorld(t, name, func(w *world) {
				right := w.replicaConfig(3).Members
				w.adjust(3, func(cfg *Config) { cfg.Members = append(slices.Clone(right), Member{4, "d:1"}) })
				ran := []*ran{w.start(1), w.start(2), w.start(3)}
				want := map[protocol.ID]string{
					1: "the members differ: replica 3 begins with 1,2,3,4, this one with 1,2,3",
					2: "the members differ: replica 3 begins with 1,2,3,4, this one with 1,2,3",
					3: "the members differ: replica 1 begins with 1,2,3, this one with 1,2,3,4",
				}
				w.client(func(ctx context.Context, c *Client) {
					began := time.Now()
					for left := want; len(left) > 0; {
						statuses, err := c.Status(ctx)
						if err != nil {
							w.Fatal(err)
						}
						for _, s := range statuses {
							if s.Waits == left[s.Replica] {
								delete(left, s.Replica)
							}
							if s.Ready {
								w.Errorf("replica %d is ready", s.Replica)
							}
						}
						if time.Since(began) > 2*time.Second {
							w.Fatalf("after %v the statuses are %+v", time.Since(began), statuses)
						}
						time.Sleep(10 * time.Millisecond)
					}
					for _, r := range ran {
						if err := r.end(); err != nil {
							w.Error(err)
						}
						const said = "files of a new group name different members"
						if n := strings.Count(r.log.String(), said); n < 1 || n > 2 {
							w.Errorf("replica %d has said %d times that members differ:\n%s", r.cfg.ID, n, r.log)
						}
					}
					w.adjust(3, func(cfg *Config) { cfg.Members = right })
					if err := os.RemoveAll(filepath.Join(w.dir, "replica-3")); err != nil {
						w.Fatal(err)
					}
					for id := range protocol.ID(3) {
						w.start(id + 1)
					}
					if _, err := c.Put(ctx, "k", nil); err != nil {
						w.Fatal(err)
					}
					for _, s := range w.equal(ctx, c) {
						if s.Waits != "" {
							w.Errorf("replica %d waits: %s", s.Replica, s.Waits)
						}
					}
				})
			})
		})
	}
}
