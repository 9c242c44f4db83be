package storeservice

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	pb "github.com/foresay/foresay/api/foresay/store/v1"
	"github.com/foresay/foresay/internal/plainerr"
	"github.com/foresay/foresay/store"
	"github.com/foresay/foresay/store/storeconfig"
)

// Status is how a machine is, for people and programs.
type Status struct {
	Site    string `json:"site"`
	Machine string `json:"machine"`
	Address string `json:"address"` // where it was asked
	// the worst of its shards', or one of OtherEpoch, Fenced and Unreachable
	State         string        `json:"state"`
	Epoch         uint64        `json:"epoch"`
	UptimeSeconds int64         `json:"uptime_seconds"`
	Shards        []ShardStatus `json:"shards"`
	Peers         []PeerStatus  `json:"peers,omitempty"` // how it stands with the other machines
	Error         string        `json:"error,omitempty"` // why it is unreachable, or what it waits for
	// New says that its site is in another one's place since this epoch.
	New bool `json:"new,omitempty"`
	// Speculation is what the machine's coordinator has seen of transactions that build on each other;
	// nil: the protocol has none.
	Speculation *SpeculationStatus `json:"speculation,omitempty"`
	// MachineClock is how the machine's clock stands to those of the others; nil: it is not known.
	MachineClock *MachineClock `json:"machine_clock,omitempty"`

	clock *clockReading // nil: the machine has not answered
}

// PeerStatus is how a machine stands with another one.
type PeerStatus struct {
	Machine   string `json:"machine"`
	Site      string `json:"site"`
	Reachable bool   `json:"reachable"`
	Error     string `json:"error,omitempty"`   // why it is not
	Refused   bool   `json:"refused,omitempty"` // the two do not belong together: by certificate, store, epoch or protocol
}

// BlockedTxn is a transaction that cannot be decided before a site is back or fenced.
type BlockedTxn struct {
	ID         string  `json:"id"`
	AgeSeconds float64 `json:"age_seconds"`
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
	Held         uint64 `json:"held"` // requests for a vote that wait for keys
	// TransactionBytes is what keys and values of remembered transactions take in memory.
	TransactionBytes uint64 `json:"transaction_bytes"`
	// CopiedValues and CopiedBytes are what the shard has copied from other sites since its machine
	// started: as it took the place of another one, or after it was away.
	CopiedValues uint64 `json:"copied_values"`
	CopiedBytes  uint64 `json:"copied_bytes"`
	// CopiedServers is how many of NeededServers are copied whole, if the shard is Syncing.
	CopiedServers uint32 `json:"copied_servers,omitempty"`
	NeededServers uint32 `json:"needed_servers,omitempty"`
	// BlockedTransactions are the oldest of the blocked ones.
	BlockedTransactions []BlockedTxn `json:"blocked_transactions,omitempty"`
	// OldestUndecidedSeconds is the age of the oldest transaction that is not decided, 0 if there
	// is none.
	OldestUndecidedSeconds float64 `json:"oldest_undecided_seconds"`
	// Move is how far the shard's copy is on its way to another site; nil: it is not being moved.
	Move *MoveStatus `json:"move,omitempty"`
	// Leads says that the server leads its shard's group, and Term which term it is in; 0: the
	// protocol has no groups, or the server is in none.
	Leads bool   `json:"leads,omitempty"`
	Term  uint64 `json:"term,omitempty"`
	// Clock is what reads at timestamps go by; nil: the protocol has none.
	Clock *ClockStatus `json:"clock,omitempty"`
	// Snapshots is what transactions' snapshots go by here; nil: the protocol reads none at servers.
	Snapshots *SnapshotStatus `json:"snapshots,omitempty"`
	// Order is what becomes of requests that are handled by arrival; nil: they are not.
	Order *OrderStatus `json:"order,omitempty"`
}

// OrderStatus is about requests with the time at which they should have arrived at all servers that
// they are sent to.
type OrderStatus struct {
	Holding uint64 `json:"holding"` // that wait for their time
	// Held is how many have waited since the machine's start, Late how many came after their time,
	// and Full how many found no room. The latter two were handled at once.
	Held   uint64  `json:"held"`
	Late   uint64  `json:"late"`
	Full   uint64  `json:"full"`
	MeanMS float64 `json:"mean_ms"` // for which the last ones were held
}

func describeOrder(o *pb.OrderStatus) *OrderStatus {
	if o == nil {
		return nil
	}
	return &OrderStatus{Holding: o.GetHolding(), Held: o.GetHeld(), Late: o.GetLate(), Full: o.GetFull(),
		MeanMS: float64(o.GetMeanNs()) / 1e6}
}

// ClockStatus is what a shard's server goes by that serves reads at timestamps.
type ClockStatus struct {
	Leads bool `json:"leads"` // it serves them, as the shard's leader
	// ReadCeiling is what they are not above; nil: none has been served yet. It was so far ahead of
	// the time here when the server told it.
	ReadCeiling             *time.Time `json:"read_ceiling,omitempty"`
	ReadCeilingAheadSeconds float64    `json:"read_ceiling_ahead_seconds,omitempty"`
	// Of so many other sites' clocks OffsetMS is how far the machine's is ahead of a typical one,
	// give or take WithinMS.
	Sites       uint32  `json:"sites_measured"`
	OffsetMS    float64 `json:"offset_ms"`
	WithinMS    float64 `json:"offset_within_ms"`
	MaxOffsetMS float64 `json:"max_offset_ms"`
	// Off says that it is surely more than MaxOffsetMS: the machine serves nothing strict at
	// timestamps.
	Off bool `json:"off"`
}

func describeClock(c *pb.ClockStatus, now time.Time) *ClockStatus {
	if c == nil {
		return nil
	}
	ms := func(ns int64) float64 { return float64(ns) / 1e6 }
	out := &ClockStatus{Leads: c.GetLeads(), Sites: c.GetSites(), OffsetMS: ms(c.GetAhead()),
		WithinMS: ms(int64(c.GetWithin())), MaxOffsetMS: ms(int64(c.GetMaxOffset())), Off: c.GetOff()}
	if ns := c.GetCeiling(); ns > 0 {
		at := time.Unix(0, int64(ns)).UTC()
		out.ReadCeiling, out.ReadCeilingAheadSeconds = &at, at.Sub(now).Seconds()
	}
	return out
}

// States of machines and shards, the better ones first.
const (
	Admitted    = "admitted" // it takes part
	Joining     = "joining"  // of a shard: its copy is being moved to here, and has not come yet
	Left        = "left"     // of a shard: its copy was moved from here
	Syncing     = "syncing"  // it copies what another site has
	New         = "new"      // it waits for the other sites to know its disk, or for the other machines of its site
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
	s := Status{Site: m.GetSite(), Machine: m.GetMachine(), State: Admitted, Epoch: m.GetEpoch(),
		UptimeSeconds: m.GetUptimeSeconds(), Shards: []ShardStatus{}, Speculation: describeSpeculation(m.GetSpeculation())}
	for _, p := range m.GetPeers() {
		s.Peers = append(s.Peers, PeerStatus{Machine: p.GetMachine(), Site: p.GetSite(), Reachable: p.GetReachable(),
			Error: p.GetError(), Refused: p.GetRefused()})
	}
	age := func(v *pb.Version) float64 { return max(0, now.Sub(time.Unix(0, int64(v.GetTime()))).Seconds()) }
	for _, sh := range m.GetShards() {
		out := ShardStatus{
			Shard: sh.GetShard(), State: New, Refused: sh.GetRefused(), Transactions: sh.GetTransactions(),
			Undecided: sh.GetUndecided(), Blocked: sh.GetBlocked(),
			Wanting: sh.GetWanting(), Locked: sh.GetLocks(), Waiting: sh.GetWaiting(), Reserved: sh.GetReservations(),
			Held:             sh.GetHeld(),
			TransactionBytes: sh.GetTransactionBytes(), CopiedValues: sh.GetCopiedValues(), CopiedBytes: sh.GetCopiedBytes(),
			CopiedServers: sh.GetCopiedServers(), NeededServers: sh.GetNeededServers(),
			Leads: sh.GetLeads(), Term: sh.GetTerm(),
			Clock: describeClock(sh.GetClock(), now), Order: describeOrder(sh.GetOrder()),
			Snapshots: describeSnapshots(sh.GetSnapshots(), now),
		}
		if m := sh.GetMove(); m != nil {
			out.Move = &MoveStatus{Joins: m.GetJoins(), Left: m.GetLeft(), ArrivedBytes: m.GetArrivedBytes(),
				Leads: m.GetLeads(), Done: m.GetDone(), Moved: m.GetMoved(), Waits: m.GetWaits()}
		}
		switch {
		case out.Refused != "":
			out.State = Refused
		case sh.GetMove().GetJoins():
			out.State = Joining
		case sh.GetMove().GetLeft():
			out.State = Left
		case sh.GetSyncing():
			out.State = Syncing
		case sh.GetAdmitted():
			out.State = Admitted
		}
		if oldest := sh.GetOldestUndecided(); oldest != nil {
			out.OldestUndecidedSeconds = age(oldest)
		}
		for _, b := range sh.GetBlockedTransactions() {
			id := store.TxnID{Time: b.GetTime(), Client: store.ClientID(b.GetClient())}
			out.BlockedTransactions = append(out.BlockedTransactions, BlockedTxn{ID: id.String(), AgeSeconds: age(b)})
		}
		if rank(out.State) > rank(s.State) { // those that join or have left have no rank
			s.State = out.State
		}
		s.Shards = append(s.Shards, out)
	}
	if m.GetAwaits() != "" {
		s.State, s.Error = New, m.GetAwaits()
	}
	slices.SortFunc(s.Shards, func(a, b ShardStatus) int { return int(a.Shard) - int(b.Shard) })
	return s
}

// Status asks all machines how they are, and returns when all have answered, cannot be reached, or
// ctx is done. The statuses are in the order of the store's file. If one is of a later epoch than
// the client, the client goes on in that, and asks all again.
func (c *Client) Status(ctx context.Context) []Status {
	for {
		l := c.newest()
		if out := c.statusOf(ctx, l); !c.moved(ctx, l) {
			return out
		}
	}
}

// statusOf is Status by the link of one epoch.
func (c *Client) statusOf(ctx context.Context, l *link) []Status {
	var out []Status
	for _, site := range l.store.Sites {
		for _, m := range site.Machines {
			s := Status{Site: site.Name, Machine: m.Name, Address: m.Client, State: Fenced, Shards: []ShardStatus{},
				New: site.Since == l.store.Epoch}
			if !site.Fenced {
				s.State = ""
			}
			out = append(out, s)
		}
	}
	var wg sync.WaitGroup
	for i := range out {
		if s := &out[i]; s.State == "" {
			wg.Go(func() { c.ask(ctx, l, s) })
		}
	}
	wg.Wait()
	compareClocks(out, clockBound(l.store))
	describeMoves(out, l.store.Topology())
	return out
}

func (c *Client) ask(ctx context.Context, l *link, s *Status) {
	asked := time.Now()
	answer, err := l.conn.Status(ctx, s.Machine)
	trip := time.Since(asked)
	if err != nil {
		s.State, s.Error = Unreachable, plainerr.Text(err)
		return
	}
	address, isNew := s.Address, s.New
	*s = describe(answer, time.Now())
	s.Address, s.New = address, isNew
	if at := answer.GetTime(); at > 0 {
		s.clock = &clockReading{time.Duration(int64(at)-asked.UnixNano()) - trip/2, trip / 2}
	}
	if known := l.store.Epoch; s.Epoch != known {
		s.State, s.Error = OtherEpoch, fmt.Sprintf("it is of epoch %d, and the file that was read here of epoch %d", s.Epoch,
			known)
		if s.Epoch > known {
			c.outdated(l, s.Machine)
		}
	}
}

// Ready reports whether all machines that are not fenced answer and take part, in the same epoch.
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

// Complaints says what is wrong with the machines that do not take part, and why as far as they
// know, and which machines refuse each other; empty if there are none.
func Complaints(statuses []Status) string {
	var out []string
	for _, s := range statuses {
		if s.State == Admitted { // since before it ran with others than these, perhaps
			for _, p := range s.Peers {
				if p.Refused {
					out = append(out, fmt.Sprintf("machine %s is refused by %s: %s", s.Machine, p.Machine, p.Error))
				}
			}
			continue
		}
		if s.State == Fenced {
			continue
		}
		text := "machine " + s.Machine + " is " + s.State
		if why := s.why(); why != "" {
			text += ": " + why
		}
		out = append(out, text)
	}
	return strings.Join(out, "; ")
}

// why returns why a machine does not take part, empty if it does or does not know.
func (s Status) why() string {
	for _, sh := range s.Shards {
		if sh.Refused != "" {
			return sh.Refused
		}
	}
	if s.Error != "" {
		return s.Error
	}
	if s.State == New || s.State == Syncing {
		return s.lonely()
	}
	return ""
}

// lonely says which machines a machine does not reach, empty if it reaches all.
func (s Status) lonely() string {
	var out []string
	for _, p := range s.Peers {
		switch {
		case p.Refused:
			out = append(out, p.Machine+" does not belong together with it: "+p.Error)
		case !p.Reachable && p.Error != "":
			out = append(out, "it does not reach "+p.Machine+": "+p.Error)
		case !p.Reachable:
			out = append(out, "it does not reach "+p.Machine)
		}
	}
	return strings.Join(out, "; ")
}

// When says in which case a remedy's command is to be run.
func (r Remedy) When() string {
	if r.Starts {
		return "there run"
	}
	return "if it is gone for good, run"
}

// A Remedy is what ends a trouble of a site.
type Remedy struct {
	Site    string `json:"site"`
	Trouble string `json:"trouble"`
	Command string `json:"command"` // for an operator, if starting the site's machines again is no way
	Starts  bool   `json:"-"`       // the command starts a machine
}

// Remedies says which sites are in trouble that ends by a command, with the store's files in a
// directory: those that are gone while transactions are blocked, and those whose disks must not
// take part.
func Remedies(statuses []Status, dir string) []Remedy {
	var out []Remedy
	blocked, oldest := 0, BlockedTxn{}
	for _, s := range statuses {
		for _, sh := range s.Shards {
			blocked = max(blocked, int(sh.Blocked))
			for _, b := range sh.BlockedTransactions {
				if b.AgeSeconds > oldest.AgeSeconds || oldest.ID == "" {
					oldest = b
				}
			}
		}
	}
	resolve := fmt.Sprintf("foresay store resolve --dir %s --site ", dir)
	sites, away := sitesOf(statuses), 0
	for _, s := range statuses {
		if s.New && s.State == Unreachable && gone(statuses, s.Site) {
			out = append(out, Remedy{
				Site: s.Site, Trouble: "it is new, and machine " + s.Machine +
					" has not started yet, or is away: what is blocked waits for it",
				Command: "foresay store serve --config " + filepath.Join(dir, storeconfig.MachineFile(s.Machine)), Starts: true,
			})
		}
	}
	for _, site := range sites {
		if gone(statuses, site) {
			away++
		}
	}
	for _, site := range sites {
		switch refused := refusedAt(statuses, site); {
		case refused != "":
			out = append(out, Remedy{Site: site, Trouble: "its disk must not take part: " + refused, Command: resolve + site +
				" --replace NEWSITE=PEERS/CLIENT"})
		case slices.ContainsFunc(out, func(r Remedy) bool { return r.Site == site }):
		case blocked > 0 && gone(statuses, site) && 2*away < len(sites): // else it is rather who asks that is cut off
			out = append(out, Remedy{
				Site: site,
				Trouble: fmt.Sprintf("it is away, and blocks transactions: up to %d at a shard, the oldest shown is %s of %.0f "+
					"s; they are decided when it is back", blocked, oldest.ID, oldest.AgeSeconds),
				Command: resolve + site,
			})
		}
	}
	return out
}

func sitesOf(statuses []Status) []string {
	var out []string
	for _, s := range statuses {
		if !slices.Contains(out, s.Site) {
			out = append(out, s.Site)
		}
	}
	for _, s := range statuses { // a machine's own status tells of others
		for _, p := range s.Peers {
			if !slices.Contains(out, p.Site) {
				out = append(out, p.Site)
			}
		}
	}
	return out
}

// refusedAt returns why a shard of a site must not take part, empty if none says so.
func refusedAt(statuses []Status, site string) string {
	for _, s := range statuses {
		for _, sh := range s.Shards {
			if s.Site == site && sh.Refused != "" {
				return sh.Refused
			}
		}
	}
	return ""
}

// gone reports whether nobody reaches a site: neither who asks for statuses, nor any machine of
// another site that answers.
func gone(statuses []Status, site string) bool {
	for _, s := range statuses {
		if s.Site == site && s.State != Unreachable {
			return false
		}
		for _, p := range s.Peers {
			if s.Site != site && p.Site == site && p.Reachable {
				return false
			}
		}
	}
	return true
}
