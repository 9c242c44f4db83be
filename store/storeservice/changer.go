package storeservice

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"time"

	pb "github.com/foresay/foresay/api/foresay/store/v1"
	"github.com/foresay/foresay/store/epoch"
	"github.com/foresay/foresay/store/storeconfig"
)

// changePoll is how often machines are asked how far they are, changeTries how many ballots an
// operator makes before it gives way to another one, and changePatience how long a machine that
// leaves may say nothing, and more than it takes to end.
const (
	changePoll     = 200 * time.Millisecond
	changeTries    = 8
	changePatience = 5 * time.Second
)

// Change has the machines, which run, agree on a next epoch and go on in it. If another change is
// under way, it completes that one: what was chosen is returned. say gets a line for each thing
// that is done. lost is the site that is gone for good: those of its machines that still answer are
// ended. All machines of another one that leaves have to answer. An interrupted change is completed
// by calling Change again.
func (c *Client) Change(
	ctx context.Context, next *storeconfig.Store, lost string, say func(format string, a ...any),
) (*storeconfig.Store, error) {
	own := c.newest().store
	var sites epoch.Sites
	for _, s := range own.Sites {
		if s.Fenced {
			sites = append(sites, nil)
			continue
		}
		var names []string
		for _, m := range s.Machines {
			names = append(names, m.Name)
		}
		sites = append(sites, names)
	}
	if copies := c.copying(ctx); lost == "" && copies != "" {
		return nil, fmt.Errorf("machine %s still copies what the other sites have, and needs all of them: wait until "+
			"'foresay store status --wait' says that it is admitted", copies)
	}
	want, err := next.Encode()
	if err != nil {
		return nil, err
	}
	chosen, err := c.choose(ctx, sites, next.Epoch, want)
	if err != nil {
		return nil, err
	}
	s, err := storeconfig.ParseStore(chosen)
	if err != nil {
		return nil, err
	}
	say("the sites agree on epoch %d", s.Epoch)
	var leaving, staying []string
	for _, names := range sites {
		for _, m := range names {
			if leaves(s, m) != "" {
				leaving = append(leaving, m)
			} else {
				staying = append(staying, m)
			}
		}
	}
	learn := &pb.ChangeRequest{Step: pb.ChangeRequest_LEARN, Epoch: s.Epoch, Store: chosen}
	for _, m := range leaving {
		var err error
		if i, _, _ := own.Topology().Find(m); own.Sites[i].Name == lost {
			err = c.end(ctx, m, learn, say)
		} else {
			err = c.retire(ctx, m, s.Epoch, staying, say)
		}
		if err != nil {
			return nil, err
		}
	}
	told := c.askAll(ctx, staying, learn)
	c.askAll(ctx, leaving, learn) // which end; that they have left is known by the others then
	for _, m := range staying {
		if told[m] == nil {
			say("machine %s is away, and learns of the epoch from the others when it is back; other machines of its site "+
				"wait for it", m)
			continue
		}
		if err := c.follows(ctx, m, s.Epoch); err != nil {
			return nil, err
		}
		say("machine %s is of epoch %d", m, s.Epoch)
	}
	return s, nil
}

// copying returns a machine that has not copied all that the others have, empty if there is none.
// Two such machines of three would wait for each other.
func (c *Client) copying(ctx context.Context) string {
	ctx, cancel := context.WithTimeout(ctx, max(8*c.newest().store.RoundTripTime(), 2*time.Second))
	defer cancel()
	for _, s := range c.Status(ctx) {
		if slices.ContainsFunc(s.Shards, func(sh ShardStatus) bool { return sh.State == Syncing }) {
			return s.Machine
		}
	}
	return ""
}

// askAll asks machines at the same time, and returns the answers of those that answer.
func (c *Client) askAll(ctx context.Context, machines []string, r *pb.ChangeRequest) map[string]*pb.ChangeResponse {
	ctx, cancel := context.WithTimeout(ctx, max(8*c.newest().store.RoundTripTime(), 2*time.Second))
	defer cancel()
	var mu sync.Mutex
	var wg sync.WaitGroup
	out := map[string]*pb.ChangeResponse{}
	for _, m := range machines {
		wg.Go(func() {
			l := c.newest()
			answer, err := l.conn.Change(ctx, m, r)
			if err != nil && c.moved(ctx, l) {
				answer, err = c.newest().conn.Change(ctx, m, r)
			}
			if err == nil {
				mu.Lock()
				defer mu.Unlock()
				out[m] = answer
			}
		})
	}
	wg.Wait()
	return out
}

// choose returns the file of an epoch that the sites agree on: the wanted one, unless another one
// may have been chosen before.
func (c *Client) choose(ctx context.Context, sites epoch.Sites, number uint64, want []byte) ([]byte, error) {
	var all []string
	for _, names := range sites {
		all = append(all, names...)
	}
	b := epoch.Ballot{Proposer: rand.Uint64()}
	for range changeTries {
		seen := c.askAll(ctx, all, &pb.ChangeRequest{})
		for _, answer := range seen {
			if answer.GetEpoch() == number {
				return answer.GetStore(), nil // it was chosen, and this machine goes on with it already
			}
			if answer.GetEpoch() > number {
				return nil, fmt.Errorf("the store is of epoch %d by now: take the file of that epoch from the other operator",
					answer.GetEpoch())
			}
			b.Round = max(b.Round, answer.GetPromised().GetRound())
		}
		if !sites.Quorum(func(m string) bool { return seen[m] != nil }) {
			var away []string
			for _, m := range all {
				if seen[m] == nil {
					away = append(away, m)
				}
			}
			return nil, fmt.Errorf("no majority of the %d sites answers, which a change needs: machines %s cannot be reached",
				len(sites), strings.Join(away, ", "))
		}
		b.Round++
		if value, ok := c.ballot(ctx, epoch.Propose(sites, b, want), all, number); ok {
			return value, nil
		}
		select {
		case <-time.After(rand.N(changePoll)):
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
	return nil, fmt.Errorf("another change is under way: wait until it has ended, and try again")
}

// ballot makes one ballot.
func (c *Client) ballot(ctx context.Context, p *epoch.Proposal, all []string, number uint64) ([]byte, bool) {
	r := &pb.ChangeRequest{Step: pb.ChangeRequest_PREPARE, Epoch: number, Ballot: ballotToWire(p.Ballot)}
	for m, answer := range c.askAll(ctx, all, r) {
		if answer.GetOk() {
			p.Promised(m, stateOf(answer))
		}
	}
	value, ok := p.Value()
	if !ok {
		return nil, false
	}
	r = &pb.ChangeRequest{Step: pb.ChangeRequest_ACCEPT, Epoch: number, Ballot: ballotToWire(p.Ballot), Store: value}
	for m, answer := range c.askAll(ctx, all, r) {
		if answer.GetOk() {
			p.Accepted(m, stateOf(answer))
		}
	}
	return value, p.Chosen()
}

func stateOf(r *pb.ChangeResponse) epoch.State {
	return epoch.State{Promised: ballotFromWire(r.GetPromised()), Accepted: ballotFromWire(r.GetAccepted()),
		Value: bytes.Clone(r.GetAcceptedStore())}
}

// end ends a machine of a site that is lost, if it runs: in the next epoch the site's missing votes
// count as no, so none of its machines may go on by them then.
func (c *Client) end(ctx context.Context, machine string, learn *pb.ChangeRequest, say func(string, ...any)) error {
	var told time.Time
	for {
		answer := c.askAll(ctx, []string{machine}, learn)[machine]
		switch {
		case answer == nil && ctx.Err() == nil && told.IsZero():
			say("machine %s does not answer: its missing votes count as no", machine)
			return nil
		case answer == nil && ctx.Err() == nil && time.Since(told) > changePatience:
			say("machine %s has ended: its missing votes count as no", machine)
			return nil
		case answer != nil && told.IsZero():
			told = time.Now()
		}
		select {
		case <-time.After(changePoll):
		case <-ctx.Done():
			return fmt.Errorf("machine %s, whose site is lost, has not ended yet: stop it, and run the command again: %w",
				machine, context.Cause(ctx))
		}
	}
}

// retire has a machine of the site that leaves vote for nothing new, and waits until what it has
// voted for is carried out elsewhere. One that does not answer has left when somebody made the same
// change: those that stay are told of an epoch only after that.
func (c *Client) retire(
	ctx context.Context, machine string, number uint64, staying []string, say func(string, ...any),
) error {
	last := uint64(0)
	asked := time.Now()
	for {
		answer := c.askAll(ctx, []string{machine}, &pb.ChangeRequest{Step: pb.ChangeRequest_RETIRE, Epoch: number})[machine]
		switch {
		case answer == nil && ctx.Err() == nil && c.anyOf(ctx, staying, number):
			say("machine %s has left", machine)
			return nil
		case answer == nil && time.Since(asked) < changePatience:
		case answer == nil && ctx.Err() == nil:
			return fmt.Errorf("machine %s, which is to leave, does not answer, or waits for another machine of its site (see "+
				"'foresay store status'); start what is missing and run the command for its site again, or with --lost if that "+
				"is gone for good", machine)
		case answer == nil:
		case answer.GetEpoch() >= number || answer.GetRetired() && answer.GetUnsettled() == 0:
			say("machine %s votes for nothing any more, and all that it voted for is carried out", machine)
			return nil
		case answer.GetUnsettled() != last:
			last = answer.GetUnsettled()
			say("machine %s waits for %d transactions", machine, last)
		}
		select {
		case <-time.After(changePoll):
		case <-ctx.Done():
			return fmt.Errorf("machine %s has voted for %d transactions that are not carried out everywhere yet (is another "+
				"site away?); run the command again to go on: %w",
				machine, cmp.Or(last, 1), context.Cause(ctx))
		}
	}
}

// anyOf reports whether some of the machines are of an epoch, or a later one.
func (c *Client) anyOf(ctx context.Context, machines []string, number uint64) bool {
	for _, answer := range c.askAll(ctx, machines, &pb.ChangeRequest{}) {
		if answer.GetEpoch() >= number {
			return true
		}
	}
	return false
}

// follows waits until a machine is of an epoch.
func (c *Client) follows(ctx context.Context, machine string, number uint64) error {
	for {
		if answer := c.askAll(ctx, []string{machine}, &pb.ChangeRequest{})[machine]; answer.GetEpoch() >= number {
			return nil
		}
		select {
		case <-time.After(changePoll):
		case <-ctx.Done():
			return fmt.Errorf("machine %s has learned of epoch %d and does not answer since: %w", machine, number,
				context.Cause(ctx))
		}
	}
}
