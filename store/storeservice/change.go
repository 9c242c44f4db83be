package storeservice

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	pb "github.com/foresay/foresay/api/foresay/store/v1"
	"github.com/foresay/foresay/store/epoch"
	"github.com/foresay/foresay/store/storeconfig"
)

// ballotState is what is on disk of the agreement on an epoch.
type ballotState struct {
	Epoch   uint64      `json:"epoch"` // the one to be made
	State   epoch.State `json:"state"`
	Retired bool        `json:"retired,omitempty"` // the machine's site leaves with that epoch
	// Together is the latest epoch of which all machines of the site are, or were: none of them is
	// in an earlier one again.
	Together uint64          `json:"together,omitempty"`
	Store    json.RawMessage `json:"store,omitempty"` // the newest file of the store that the machine has learned
}

// changes is a machine's part in the agreement on the next epoch. Its state is on disk before
// anybody hears of it.
type changes struct {
	name string
	own  *storeconfig.Store // what the machine runs with

	mu      sync.Mutex
	disk    ballotState
	next    *storeconfig.Store                         // chosen, and to be run with; nil: none
	retire  func(ctx context.Context) (int, error)     // has the machine's servers vote for nothing new
	learned chan struct{}                              // is closed when there is a next one
	refuse  func(next *storeconfig.Store) (why string) // why the machine has no part in an epoch; empty: it has
}

// openChanges reads a machine's state, and has it go on in the newest epoch that it has learned of,
// if the store's file is of an earlier one.
func openChanges(cfg *storeconfig.MachineConfig) (*changes, error) {
	c := &changes{name: filepath.Join(cfg.Data, "epoch.json"), learned: make(chan struct{})}
	c.refuse = func(next *storeconfig.Store) string { return leaves(next, cfg.Machine) }
	b, err := os.ReadFile(c.name)
	if err == nil {
		err = json.Unmarshal(b, &c.disk)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%s: %w", c.name, err)
	}
	if len(c.disk.Store) > 0 {
		learned, err := storeconfig.ParseStore(c.disk.Store)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", c.name, err)
		}
		read, err := cfg.Store.Encode()
		if err != nil {
			return nil, err
		}
		switch {
		case learned.Epoch > cfg.Store.Epoch:
			cfg.Store = learned
		case learned.Epoch == cfg.Store.Epoch && !bytes.Equal(c.disk.Store, read):
			return nil, fmt.Errorf("the file %s is another epoch %d than the one that the machines have agreed on, which is "+
				"in %s", cfg.StoreFile, learned.Epoch, c.name)
		}
	}
	if why := c.refuse(cfg.Store); why != "" {
		return nil, errors.New(why)
	}
	c.own = cfg.Store
	if c.disk.Epoch != c.own.Epoch+1 {
		c.disk.Epoch, c.disk.State, c.disk.Retired = c.own.Epoch+1, epoch.State{}, false
	}
	return c, nil
}

// leaves tells why a machine has no part in an epoch, empty if it has one.
func leaves(next *storeconfig.Store, machine string) string {
	i, _, ok := next.Topology().Find(machine)
	switch {
	case !ok:
		return fmt.Sprintf("machine %s is not of the store any more: its site was replaced as of epoch %d", machine,
			next.Epoch)
	case next.Sites[i].Fenced:
		return fmt.Sprintf("machine %s must not take part any more: its site %s is fenced as of epoch %d", machine,
			next.Sites[i].Name, next.Epoch)
	}
	return ""
}

// save makes a state durable, and then the machine's.
func (c *changes) save(next ballotState) error {
	b, err := json.Marshal(next)
	if err == nil {
		err = writeDurably(c.name, b)
	}
	if err == nil {
		c.disk = next
	}
	return err
}

// step answers a call of Change.
func (c *changes) step(ctx context.Context, r *pb.ChangeRequest) (*pb.ChangeResponse, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	ok, err := c.take(r)
	if err != nil {
		return nil, status.Error(codes.Internal, err.Error())
	}
	own, err := c.own.Encode()
	if err != nil {
		return nil, status.Error(codes.Internal, err.Error())
	}
	d := &c.disk
	out := &pb.ChangeResponse{
		Epoch: c.own.Epoch, Store: own, Ok: ok, Retired: d.Retired, AcceptedStore: d.State.Value,
		Promised: ballotToWire(d.State.Promised), Accepted: ballotToWire(d.State.Accepted),
	}
	if c.next != nil && c.refuse(c.next) != "" { // it goes on in no epoch
		out.Epoch, out.Store = c.next.Epoch, d.Store
	}
	if d.Retired && c.retire != nil && c.next == nil {
		ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
		defer cancel()
		n, err := c.retire(ctx)
		if err != nil {
			return nil, status.Error(codes.Unavailable, err.Error())
		}
		out.Unsettled = uint64(n)
	}
	return out, nil
}

// take takes a step, and reports whether it could.
func (c *changes) take(r *pb.ChangeRequest) (bool, error) {
	next := c.disk
	switch r.GetStep() {
	case pb.ChangeRequest_LOOK:
		return true, nil
	case pb.ChangeRequest_LEARN:
		return c.learn(r.GetStore())
	}
	if r.GetEpoch() != c.own.Epoch+1 || c.next != nil {
		return false, nil
	}
	switch r.GetStep() {
	case pb.ChangeRequest_PREPARE:
		if !next.State.Prepare(ballotFromWire(r.GetBallot())) {
			return false, nil
		}
	case pb.ChangeRequest_ACCEPT:
		s, err := parseEpoch(r.GetStore(), c.own)
		if err != nil || s.Epoch != r.GetEpoch() || !next.State.Accept(ballotFromWire(r.GetBallot()), r.GetStore()) {
			return false, nil
		}
	case pb.ChangeRequest_RETIRE:
		next.Retired = true
	default:
		return false, nil
	}
	return true, c.save(next)
}

// learn notes what was chosen. The machine stops, and goes on with that.
func (c *changes) learn(b []byte) (bool, error) {
	s, err := parseEpoch(b, c.own)
	if err != nil || s.Epoch <= c.own.Epoch || c.next != nil {
		return err == nil && (s.Epoch == c.own.Epoch || c.next != nil && c.next.Epoch == s.Epoch), nil
	}
	next := c.disk
	next.Store = bytes.Clone(b)
	if err := c.save(next); err != nil {
		return false, err
	}
	c.next = s
	close(c.learned)
	return true, nil
}

func ballotToWire(b epoch.Ballot) *pb.Ballot { return &pb.Ballot{Round: b.Round, Proposer: b.Proposer} }

func ballotFromWire(b *pb.Ballot) epoch.Ballot {
	return epoch.Ballot{Round: b.GetRound(), Proposer: b.GetProposer()}
}
