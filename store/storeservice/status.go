package storeservice

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc/status"

	pb "github.com/foresay/foresay/api/foresay/store/v1"
)

// Status is how a machine is, for people and programs.
type Status struct {
	Site          string        `json:"site"`
	Machine       string        `json:"machine"`
	Address       string        `json:"address"` // where it was asked
	State         string        `json:"state"`   // the worst of its shards', or one of OtherEpoch, Fenced and Unreachable
	Epoch         uint64        `json:"epoch"`
	UptimeSeconds int64         `json:"uptime_seconds"`
	Shards        []ShardStatus `json:"shards"`
	Error         string        `json:"error,omitempty"` // why it is unreachable
}

// ShardStatus is how a shard's server is.
type ShardStatus struct {
	Shard        uint32 `json:"shard"`
	State        string `json:"state"`
	Refused      string `json:"refused,omitempty"` // why
	Transactions uint64 `json:"transactions"`
	Undecided    uint64 `json:"undecided"`
	Blocked      uint64 `json:"blocked"`
	Wanting      uint64 `json:"wanting"`
	Locked       uint64 `json:"locked"`
	Waiting      uint64 `json:"waiting"`
	Reserved     uint64 `json:"reserved"`
	// OldestUndecidedSeconds is the age of the oldest transaction that is not decided, 0 if there is none.
	OldestUndecidedSeconds float64 `json:"oldest_undecided_seconds"`
}

// States of machines and shards, the better ones first.
const (
	Admitted    = "admitted" // it takes part
	Syncing     = "syncing"  // it copies what another site has
	New         = "new"      // it waits for the other sites to know its disk
	Refused     = "refused"  // it must not take part
	OtherEpoch  = "of another epoch"
	Fenced      = "fenced" // its site does not take part any more
	Unreachable = "unreachable"
)

func rank(state string) int {
	return slices.Index([]string{Admitted, Syncing, New, Refused, OtherEpoch, Fenced, Unreachable}, state)
}

// describe makes a machine's answer a Status.
func describe(m *pb.StatusResponse, now time.Time) Status {
	s := Status{Site: m.GetSite(), Machine: m.GetMachine(), State: Admitted, Epoch: m.GetEpoch(), UptimeSeconds: m.GetUptimeSeconds(), Shards: []ShardStatus{}}
	for _, sh := range m.GetShards() {
		out := ShardStatus{
			Shard: sh.GetShard(), State: New, Refused: sh.GetRefused(), Transactions: sh.GetTransactions(), Undecided: sh.GetUndecided(), Blocked: sh.GetBlocked(),
			Wanting: sh.GetWanting(), Locked: sh.GetLocks(), Waiting: sh.GetWaiting(), Reserved: sh.GetReservations(),
		}
		switch {
		case out.Refused != "":
			out.State = Refused
		case sh.GetSyncing():
			out.State = Syncing
		case sh.GetAdmitted():
			out.State = Admitted
		}
		if oldest := sh.GetOldestUndecided(); oldest != nil {
			out.OldestUndecidedSeconds = max(0, now.Sub(time.Unix(0, int64(oldest.GetTime()))).Seconds())
		}
		if rank(out.State) > rank(s.State) {
			s.State = out.State
		}
		s.Shards = append(s.Shards, out)
	}
	slices.SortFunc(s.Shards, func(a, b ShardStatus) int { return int(a.Shard) - int(b.Shard) })
	return s
}

// Status asks all machines how they are, and returns when all have answered, cannot be reached, or ctx is done. The statuses are in the order of the store's file.
func (c *Client) Status(ctx context.Context) []Status {
	var out []Status
	for _, site := range c.cfg.Store.Sites {
		for _, m := range site.Machines {
			s := Status{Site: site.Name, Machine: m.Name, Address: m.Client, State: Fenced, Shards: []ShardStatus{}}
			if !site.Fenced {
				s.State = ""
			}
			out = append(out, s)
		}
	}
	var wg sync.WaitGroup
	for i := range out {
		if s := &out[i]; s.State == "" {
			wg.Go(func() { c.ask(ctx, s) })
		}
	}
	wg.Wait()
	return out
}

func (c *Client) ask(ctx context.Context, s *Status) {
	answer, err := c.Conn.Status(ctx, s.Machine)
	if err != nil {
		s.State, s.Error = Unreachable, status.Convert(err).Message()
		return
	}
	address := s.Address
	*s = describe(answer, time.Now())
	s.Address = address
	if known := c.cfg.Store.Epoch; s.Epoch != known {
		s.State, s.Error = OtherEpoch, fmt.Sprintf("it is of epoch %d, and the file that was read here of epoch %d", s.Epoch, known)
	}
}

// Ready tells whether all machines that are not fenced answer and take part, in the same epoch.
func Ready(statuses []Status) bool {
	n, epoch := 0, uint64(0)
	for _, s := range statuses {
		if s.State == Fenced {
			continue
		}
		if s.State != Admitted || n > 0 && s.Epoch != epoch {
			return false
		}
		epoch = s.Epoch
		n++
	}
	return n > 0
}

// Complaints says what is wrong with the machines that do not take part, empty if all do.
func Complaints(statuses []Status) string {
	var out []string
	for _, s := range statuses {
		why := s.Error
		for _, sh := range s.Shards {
			if sh.Refused != "" {
				why = sh.Refused
			}
		}
		if s.State != Admitted && s.State != Fenced {
			text := "machine " + s.Machine + " is " + s.State
			if why != "" {
				text += ": " + why
			}
			out = append(out, text)
		}
	}
	return strings.Join(out, "; ")
}
