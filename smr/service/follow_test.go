package service

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/smr"
)

// replace has a replica take another one's place, whose process ends.
func (w *world) replace(ctx context.Context, c *Client, old *ran, id protocol.ID) *ran {
	w.Helper()
	address := fmt.Sprintf("%s:1", worldSites[id-1])
	if _, err := InitJoin(w.dir, id, address); err != nil {
		w.Fatal(err)
	}
	r := w.start(id)
	if w.proto().Learns {
		if _, err := c.AwaitLearner(ctx, id, nil); err != nil {
			w.Fatal(err)
		}
	}
	for _, change := range []smr.Change{{Add: smrMembers([]Member{{id, address}})[0]}, {Remove: old.cfg.ID}} {
		if err := c.Change(ctx, change); err != nil {
			w.Fatalf("%v: %v", change, err)
		}
	}
	old.stop()
	<-old.done // Run may have ended before, refused
	return r
}

// TestClientsFollowTheMembers: a client that runs on goes on when no replica is left that its file
// names, with several groups too, of which it has used only one. Replicas are added to groups that
// nobody has used yet.
func TestClientsFollowTheMembers(t *testing.T) {
	follows := func(w *world) {
		one, two, three := w.start(1), w.start(2), w.start(3)
		w.client(func(ctx context.Context, c *Client) {
			if _, err := c.Put(ctx, "k", []byte("v")); err != nil {
				w.Fatal(err)
			}
			// The operator's client is another one.
			w.client(func(ctx context.Context, operator *Client) {
				w.replace(ctx, operator, one, 4)
				w.replace(ctx, operator, two, 5)
			})
			time.Sleep(2 * time.Second)
			three.stop()
			<-three.done
			for i := range 12 {
				began := time.Now()
				if _, err := c.Put(ctx, fmt.Sprint(i), nil); err != nil {
					w.Fatalf("a put beside new members only: %v", err)
				}
				if took := time.Since(began); took > 3*time.Second {
					w.Errorf("a put beside new members only took %v", took)
				}
			}
			s, err := c.Status(ctx)
			if err != nil || len(ofGroup(s, 1)) != 3 {
				w.Errorf("the client knows of %+v, %v", s, err)
			}
		})
	}
	for _, name := range protocolNames() {
		t.Run(name, func(t *testing.T) { inWorld(t, name, follows) })
	}
	t.Run("groups", func(t *testing.T) { inGroups(t, "mencius", Routing{Groups: 2}, follows) })
}

// TestRemovedReplicasEnd: the process of a replica that was removed ends by itself, in a group that
// nobody calls too, and in one of several groups that rest.
func TestRemovedReplicasEnd(t *testing.T) {
	ends := func(w *world) {
		w.start(1)
		two := w.start(2)
		w.start(3)
		w.client(func(ctx context.Context, c *Client) {
			if _, err := c.Put(ctx, "k", []byte("v")); err != nil {
				w.Fatal(err)
			}
			time.Sleep(5 * time.Second) // groups that rest do
			if err := c.Change(ctx, smr.Change{Remove: 2}); err != nil {
				w.Fatal(err)
			}
		})
		select {
		case err := <-two.done:
			if refused, ok := errors.AsType[*RefusedError](err); !ok || refused.ID != 2 {
				w.Errorf("the removed replica ended with %v", err)
			}
		case <-time.After(20 * time.Second):
			w.Error("the removed replica does not end")
		}
	}
	for _, name := range protocolNames() {
		t.Run(name, func(t *testing.T) { inWorld(t, name, ends) })
	}
	for _, name := range []string{"raft", "multipaxos", "mencius"} {
		t.Run(name+" in groups", func(t *testing.T) { inGroups(t, name, Routing{Groups: 3}, ends) })
	}
}
