package storeservice

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	pb "github.com/foresay/foresay/api/foresay/store/v1"
	"github.com/foresay/foresay/internal/nearest"
	"github.com/foresay/foresay/store"
	"github.com/foresay/foresay/store/storeconfig"
)

// A CopyMove is an order to move a partition's copy from one site to another while the store runs.
// Groups that only coordinate are numbered behind the partitions.
type CopyMove struct {
	Partition int
	From, To  string
	// Say gets a line for each thing that is done, and Waits, now and then, what the move waits for.
	Say   func(format string, a ...any)
	Waits func(MoveStatus)
}

// MoveStatus is how far the move of a partition's copy is.
type MoveStatus struct {
	From string `json:"from"`
	To   string `json:"to"`
	// Back says that it is being taken back: the copy stays where it was.
	Back bool `json:"back,omitempty"`
	// Joins says that the server waits to be made a member of the partition's group, and has got
	// ArrivedBytes since it began; Left that it is a member no more.
	Joins        bool   `json:"joins,omitempty"`
	Left         bool   `json:"left,omitempty"`
	ArrivedBytes uint64 `json:"arrived_bytes,omitempty"`
	// Leads says that the server leads the group. Only then it knows whether the group is done with
	// it, and the copy Moved, or what that Waits for.
	Leads bool   `json:"leads,omitempty"`
	Done  bool   `json:"done,omitempty"`
	Moved bool   `json:"moved,omitempty"`
	Waits string `json:"waits,omitempty"`
}

// movePoll is how often machines are asked how far a move is.
const movePoll = 200 * time.Millisecond

// MoveCopy moves a partition's copy, and returns the store's file in whose epoch it is over; before
// says that it was over already. The store goes on in another epoch for it, in which both sites
// have a server, and then in one in which the old one is gone. MoveCopy can be called again after
// any failure of anybody, and goes on with what was begun. The opposite order takes a move back
// that is under way, if the group has not done without the old copy before.
func (c *Client) MoveCopy(ctx context.Context, o CopyMove) (s *storeconfig.Store, before bool, err error) {
	if err := o.valid(c.Store()); err != nil {
		return nil, false, err
	}
	var leads map[int]string
	for before = true; ; before = false {
		if s, err = c.latest(ctx); err != nil {
			return nil, false, err
		}
		if leads == nil {
			leads = c.leaders(ctx)
		}
		next, err := c.nextStep(ctx, s, o)
		if err != nil {
			return nil, false, err
		}
		if next == nil {
			return s, before, nil
		}
		chosen, err := c.Change(ctx, next, "", o.Say)
		if err != nil {
			return nil, false, err
		}
		if same, err := sameFile(next, chosen); err != nil || !same {
			return nil, false, cmp.Or(err, fmt.Errorf("another change was under way, and epoch %d is what it wanted; run the "+
				"command again", chosen.Epoch))
		}
		if _, err := c.latest(ctx); err != nil {
			return nil, false, err
		}
		c.leadAgain(ctx, leads, o.Say)
	}
}

func sameFile(a, b *storeconfig.Store) (bool, error) {
	x, err := a.Encode()
	if err != nil {
		return false, err
	}
	y, err := b.Encode()
	return bytes.Equal(x, y), err
}

// latest returns the store's file as the machines have it, of the latest epoch that one of them
// knows, and has the client go on in that.
func (c *Client) latest(ctx context.Context) (*storeconfig.Store, error) {
	known := c.newest()
	var best *pb.ChangeResponse
	from := ""
	for m, answer := range c.askAll(ctx, members(known.store), &pb.ChangeRequest{}) {
		if best == nil || answer.GetEpoch() > best.GetEpoch() {
			best, from = answer, m
		}
	}
	if best == nil {
		return nil, errors.New("no machine answers")
	}
	s, err := parseEpoch(best.GetStore(), known.store)
	if err != nil {
		return nil, err
	}
	for s.Epoch > c.newest().store.Epoch {
		l := c.newest()
		c.outdated(l, from)
		if !c.moved(ctx, l) {
			return nil, fmt.Errorf("machine %s is of epoch %d, in which the client cannot go on", from, s.Epoch)
		}
	}
	return s, nil
}

// nextStep returns the store's next epoch on the way to where a copy has moved; nil: there is
// nothing left to do. It waits for what the next epoch needs.
func (c *Client) nextStep(ctx context.Context, s *storeconfig.Store, o CopyMove) (*storeconfig.Store, error) {
	t := s.Topology()
	now, under := t.UnderWay()
	switch forth, back := now.From == o.From && now.To == o.To, now.From == o.To && now.To == o.From; {
	case !under && o.over(t):
		return nil, nil
	case !under:
		if err := o.may(t); err != nil {
			return nil, err
		}
		next, err := s.Moving(o.Partition, o.From, o.To)
		if err == nil {
			err = c.reaches(ctx, next, o)
		}
		return next, err
	case now.Shard != o.Partition || !forth && !back:
		return nil, fmt.Errorf("partition %d is being moved from %s to %s: complete that first, by 'foresay store move "+
			"--partition %d --from %s --to %s', or take it back, by the same with the sites exchanged", now.Shard, now.From,
			now.To, now.Shard, now.From, now.To)
	case back && !now.Back:
		return s.TakingBack()
	case forth && now.Back:
		return nil, fmt.Errorf("the move is being taken back: complete that first, by 'foresay store move --partition %d "+
			"--from %s --to %s'", now.Shard, now.To, now.From)
	}
	moved, err := c.awaitMove(ctx, s, o)
	if err != nil {
		return nil, err
	}
	return s.Moved(moved)
}

// valid returns an error unless there are such a partition and such sites, of a store whose
// protocol moves copies.
func (o CopyMove) valid(s *storeconfig.Store) error {
	t, names := s.Topology(), s.SiteNames()
	switch p := s.StoreProtocol(); {
	case !p.Leads && !p.FixedSites:
		return fmt.Errorf("with the protocol %s all sites have all partitions: 'foresay store resolve --replace' has "+
			"another site take the place of one", p.Name)
	case !p.Leads:
		return fmt.Errorf("the protocol %s keeps its copies where they are: 'foresay store export' and 'foresay store "+
			"import' bring the keys to a store with another placement", p.Name)
	case o.Partition < 0 || o.Partition >= t.Groups():
		return fmt.Errorf("there is no partition %d (there are %d, from 0 on)", o.Partition, t.Groups())
	}
	for _, site := range []string{o.From, o.To} {
		if !slices.Contains(names, site) {
			return fmt.Errorf("there is no site %q%s", site, nearest.Hint(site, names))
		}
	}
	if o.From == o.To {
		return fmt.Errorf("from %s to %s is no move", o.From, o.To)
	}
	return nil
}

// over reports whether the move has been made, and none of the partition since.
func (o CopyMove) over(t store.Topology) bool {
	for _, m := range slices.Backward(t.Moves) {
		if m.Shard == o.Partition {
			return m.Done && (m.From == o.From && m.To == o.To && !m.Back || m.From == o.To && m.To == o.From && m.Back)
		}
	}
	return false
}

// may returns an error unless the one site has a copy, and the other one has none.
func (o CopyMove) may(t store.Topology) error {
	var with []string
	for i, site := range t.Sites {
		if t.Has(i, o.Partition) {
			with = append(with, site.Name)
		}
	}
	switch {
	case len(with) == len(t.Sites):
		return fmt.Errorf("all sites have a copy of partition %d", o.Partition)
	case !slices.Contains(with, o.From):
		return fmt.Errorf("site %s has no copy of partition %d (%s have)", o.From, o.Partition, strings.Join(with, ", "))
	case slices.Contains(with, o.To):
		return fmt.Errorf("site %s has a copy of partition %d already (%s have)", o.To, o.Partition, strings.Join(with, ", "))
	}
	return nil
}

// reaches returns an error unless the machine answers that is to have the copy.
func (c *Client) reaches(ctx context.Context, next *storeconfig.Store, o CopyMove) error {
	t := next.Topology()
	i := slices.Index(next.SiteNames(), o.To)
	m := t.Sites[i].Machines[t.MachineOf(i, o.Partition)].Name
	if c.askAll(ctx, []string{m}, &pb.ChangeRequest{})[m] == nil {
		return fmt.Errorf("machine %s, which is to have the copy, cannot be reached; nothing was changed", m)
	}
	return nil
}

// awaitMove waits until the partition's group has made the move that is under way, or taken it
// back, and tells which of the two sites has the copy.
func (c *Client) awaitMove(ctx context.Context, s *storeconfig.Store, o CopyMove) (moved bool, err error) {
	why := "nobody leads it"
	for {
		look, cancel := context.WithTimeout(ctx, max(8*s.RoundTripTime(), 2*time.Second))
		statuses := c.Status(look)
		cancel()
		if now := c.newest().store.Epoch; now != s.Epoch {
			return false, fmt.Errorf("the store went on in epoch %d meanwhile: somebody else changes it; run the command "+
				"again", now)
		}
		if m, _ := MoveUnderWay(statuses); m != nil {
			if m.Done {
				return m.Moved, nil
			}
			why = cmp.Or(m.Waits, why)
			if o.Waits != nil {
				o.Waits(*m)
			}
		}
		select {
		case <-time.After(movePoll):
		case <-ctx.Done():
			return false, fmt.Errorf("partition %d is still being moved from %s to %s: %s; run the command again to go on",
				o.Partition, o.From, o.To, why)
		}
	}
}

// MoveUnderWay returns how far the move is that is under way, as all servers of the partition
// together know; nil: there is none.
func MoveUnderWay(statuses []Status) (out *MoveStatus, partition int) {
	for _, s := range statuses {
		for _, sh := range s.Shards {
			m := sh.Move
			if m == nil {
				continue
			}
			if out == nil {
				out, partition = &MoveStatus{From: m.From, To: m.To, Back: m.Back}, int(sh.Shard)
			}
			if s.Site == m.To {
				out.Joins, out.ArrivedBytes = m.Joins, m.ArrivedBytes
			}
			out.Left = out.Left || m.Left
			if m.Leads && !out.Done { // one that was deposed may take itself for the leader
				out.Leads, out.Done, out.Moved, out.Waits = true, m.Done, m.Moved, m.Waits
			}
		}
	}
	return out, partition
}

// leaders returns the sites that lead the store's groups, as far as they say so.
func (c *Client) leaders(ctx context.Context) map[int]string {
	ctx, cancel := context.WithTimeout(ctx, c.patience())
	defer cancel()
	l := c.newest()
	t := l.store.Topology()
	var mu sync.Mutex
	out := map[int]string{}
	var all errgroup.Group
	all.SetLimit(maxAsked)
	for k := range t.Groups() {
		for i, site := range t.Sites {
			if !t.Has(i, k) {
				continue
			}
			all.Go(func() error {
				r := &pb.HandOverRequest{Shard: uint32(k), Site: site.Name, Epoch: t.Epoch} // to itself: a question
				if said, err := l.conn.HandOver(ctx, site.Machines[t.MachineOf(i, k)].Name, r); err == nil && said.GetLeads() {
					mu.Lock()
					defer mu.Unlock()
					out[k] = site.Name
				}
				return nil
			})
		}
	}
	_ = all.Wait() // none returns an error
	return out
}

// maxAsked bounds the questions that are under way at once.
const maxAsked = 64

// patience is for how long a few round trips are waited for.
func (c *Client) patience() time.Duration {
	return max(16*c.newest().store.RoundTripTime(), 4*time.Second)
}

// leadAgain has groups be led where they were before machines went on in another epoch, which began
// with elections. It is no mistake if one is not.
func (c *Client) leadAgain(ctx context.Context, before map[int]string, say func(string, ...any)) {
	ctx, cancel := context.WithTimeout(ctx, c.patience())
	defer cancel()
	t := c.Store().Topology()
	var all errgroup.Group
	all.SetLimit(maxAsked)
	for k, site := range before {
		all.Go(func() error {
			if i := slices.IndexFunc(t.Sites, func(s store.TopologySite) bool { return s.Name == site }); !t.Has(i, k) {
				site = t.Moves[len(t.Moves)-1].To
			}
			if _, err := c.HandOver(ctx, k, site); err != nil {
				say("partition %d is not led where it was: %v", k, err)
			}
			return nil
		})
	}
	_ = all.Wait() // none returns an error
}

// describeMoves adds to statuses what the store's file says of the move that is under way.
func describeMoves(statuses []Status, t store.Topology) {
	now, ok := t.UnderWay()
	for i := range statuses {
		for j := range statuses[i].Shards {
			switch m := statuses[i].Shards[j].Move; {
			case m == nil:
			case !ok || statuses[i].Epoch != t.Epoch:
				statuses[i].Shards[j].Move = nil
			default:
				m.From, m.To, m.Back = now.From, now.To, now.Back
			}
		}
	}
}
