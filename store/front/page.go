package front

import (
	"context"
	"errors"
	"fmt"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	pb "github.com/foresay/foresay/api/foresay/store/v1"
	"github.com/foresay/foresay/clock"
	"github.com/foresay/foresay/internal/plainerr"
	"github.com/foresay/foresay/store"
	"github.com/foresay/foresay/store/mvcc"
)

// ErrNoSnapshots is what Page returns for stores whose protocol keeps no versions.
var ErrNoSnapshots = errors.New("front: the store's protocol keeps no versions")

// An AheadError says that a snapshot's time has not come yet, by the clock of the site that was
// asked.
type AheadError struct{ At clock.Stamp }

func (e *AheadError) Error() string { return fmt.Sprintf("front: timestamp %v is in the future", e.At) }

// pageAgain is how long a machine is left until it is asked again for a snapshot's page.
const pageAgain = 50 * time.Millisecond

// Page returns a page of the snapshot of a timestamp, or of the present if that is 0: the answer
// says which it is. It waits until no transaction can get such a timestamp any more. The error is
// ErrNoSnapshots, an *AheadError, a *mvcc.HorizonError if the snapshot is not kept any more, or
// says why no site with the shard answers.
func (c *Conn) Page(ctx context.Context, shard int, at clock.Stamp, from mvcc.Cursor) (store.PageReply, error) {
	if !c.cfg.Protocol.Snapshots {
		return store.PageReply{}, ErrNoSnapshots
	}
	ask := &pb.PageRequest{Shard: uint32(shard), At: uint64(at), From: from, Epoch: c.cfg.Topology.Epoch}
	for {
		r, err := c.page(ctx, shard, ask)
		if err != nil {
			return r, err
		}
		switch r.Reason {
		case store.NoReason:
			return r, nil
		case store.Ahead:
			return r, &AheadError{clock.Stamp(r.At)}
		case store.Old:
			return r, &mvcc.HorizonError{At: clock.Stamp(r.At), Horizon: clock.Stamp(r.Horizon)}
		}
		ask.At = r.At // of the first answer: the present goes on
		select {
		case <-time.After(pageAgain):
		case <-ctx.Done():
			return r, fmt.Errorf("front: shard %d: a transaction from before the snapshot has not ended: %w", shard, ctx.Err())
		}
	}
}

// page asks the sites that have the shard, the one that leads it first, until one answers.
func (c *Conn) page(ctx context.Context, shard int, ask *pb.PageRequest) (store.PageReply, error) {
	layout, err := c.cfg.Topology.Layout()
	if err != nil {
		return store.PageReply{}, err
	}
	if shard < 0 || shard >= len(layout.Sites[0].Shards) {
		return store.PageReply{}, fmt.Errorf("front: there is no shard %d", shard)
	}
	sites := layout.HoldersOf(shard)
	for i, first := range sites {
		if first == layout.FirstOf(shard) {
			sites = append(sites[i:len(sites):len(sites)], sites[:i]...)
			break
		}
	}
	last := fmt.Errorf("front: no machine is known that has shard %d", shard)
	for _, i := range sites {
		m := c.machines[layout.Sites[i].Shards[shard]]
		if m == nil {
			continue
		}
		r, err := m.stub.Page(ctx, ask)
		if err == nil && reasonFromWire(r.GetReason()) == store.Fenced && i != sites[len(sites)-1] {
			continue // it serves no reads at present
		}
		if err == nil {
			return pageFromWire(r), nil
		}
		if status.Code(err) == codes.Unimplemented {
			return store.PageReply{}, ErrNoSnapshots
		}
		last = fmt.Errorf("front: machine %s: %s", m.name, plainerr.Text(err))
		if ctx.Err() != nil {
			break
		}
	}
	return store.PageReply{}, last
}
