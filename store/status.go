package store

import "time"

// What servers and coordinators, and their applications, say.
type (
	// StatusQuery asks a server how it does. It comes from the server's application; ServerStatus
	// answers it, also if the server takes no part. A coordinator answers with SpeculationStatus
	// (Protocol.CoordinatorStatus).
	StatusQuery struct{ Ref uint64 }

	// ServerStatus is what a server knows of itself.
	ServerStatus struct {
		Ref   uint64
		Site  int // its place in the layout
		Shard int
		Epoch uint64
		// Admitted says that the others know the server's disk. Before that it says nothing to
		// anybody.
		Admitted bool
		// Syncing says that the server takes the place of a lost one and copies what the others
		// have. Until it has, it votes for nothing and answers no reads.
		Syncing bool
		Copied  int    // how many servers it has copied since
		Needed  int    // how many it has to; 0 unless Syncing
		Refused string // why it may not take part; empty: it may

		Txns         int // transactions that it remembers
		TxnBytes     int // what keys and values of those take that are in memory with them
		Undecided    int // of these: it has voted and knows no decision
		Blocked      int // of these: it has asked twice or more, and nobody could say
		Open         int // of these: not decided here, or others may not have carried out what was decided
		Wanting      int // committed, but what they write is not known here yet
		Locks        int // keys that are locked
		Waiting      int // reads that wait for them
		Reservations int // keys that are reserved for transactions that are tried again
		Held         int // requests for a vote that wait until other transactions leave their keys

		OldestUndecided TxnID   // zero: none
		OldestBlocked   []TxnID // a few, the oldest first
		Counts          Counts
		Retired         bool // see Retire
		// if so: transactions that it may have voted for and that others may not have carried out
		Unsettled int
		Old       uint64 // the time up to which transactions are forgotten once they are carried out everywhere
		// Joins says that the server waits to be made a member of its shard's group, of whose state it
		// has so many bytes since it began; Left that it is a member no more (Replace).
		Joins, Left  bool
		ArrivedBytes uint64
		// Leads says that the server leads its shard's group (Protocol.Leads), and Term which term it is
		// in; 0: it is in no group.
		Leads bool
		Term  uint64
		// Clock is what reads at timestamps go by, of protocols that have them (Protocol.Clocked); nil:
		// there are none.
		Clock *ClockStatus
		// Snapshots is what a server goes by that serves snapshots to coordinators, of protocols whose
		// transactions read these (Protocol.Steps); nil: there are none.
		Snapshots *SnapshotStatus
		// Order is what becomes of requests that are handled in the order in which they should have
		// arrived (Config.ByArrival); nil: they are not.
		Order *OrderStatus
	}

	// HandOver has the server of another site lead a shard, if this one leads it (Protocol.Leads). It
	// comes from the server's application. HandingOver answers it, before it is done.
	HandOver struct {
		Ref  uint64
		Site int // its place in the layout
	}

	// HandingOver says what comes of a HandOver.
	HandingOver struct {
		Ref   uint64
		Leads bool // this server led the shard when it was asked
		// Reason is why it does not hand over; empty: it has begun to, or it is the one that is to
		// lead.
		Reason string
	}

	// Replace has the group of a shard take the server of one site for a member in place of that of
	// another one, if this server leads it (Protocol.Leads). It comes from the server's application,
	// again and again until Replacing says that it is done: each time the next step is taken that can
	// be. Any member may lead meanwhile, and whoever asks may begin anew.
	Replace struct {
		Ref      uint64
		From, To int // places in the layout
		// Back says that the group is to do without the new server, unless it does without the old one
		// already. Whoever may still be told to replace that by the new one has to be stopped before.
		Back bool
	}

	// Replacing answers Replace.
	Replacing struct {
		Ref   uint64
		Leads bool // this server led the shard when it was asked
		Done  bool // and then Moved: it is the new server that the group has
		Moved bool
		// Reason is what it waits for, or why it cannot be.
		Reason string
	}

	// ClockStatus is what a server goes by that serves reads at timestamps.
	ClockStatus struct {
		Leads   bool   // it serves them, as its shard's leader
		Ceiling uint64 // nothing is served above it; 0: nothing has been served yet
		// Sites is how many other sites have answered what time it is. Of these Ahead is how far the
		// own clock is ahead of a typical one, give or take Within: more than half of them are no
		// nearer. Off says that it is surely further from that than MaxOffset, so that nothing strict
		// is served.
		Sites                    int
		Ahead, Within, MaxOffset time.Duration
		Off                      bool
	}

	// OrderStatus is what a server has seen of requests with the time at which they should have
	// arrived at all servers that they are sent to (Config.ByArrival).
	OrderStatus struct {
		Holding int // it holds as many until their time
		// Held is how many it has held since its start, Late how many came after their time, and Full
		// how many found no room. The latter two were handled at once.
		Held, Late, Full uint64
		Mean             time.Duration // for which the last ones were held
		// Times counts those of Held whose time has come by how long they were held: as the first of
		// HeldBounds that is not less or, in the last place, as longer than all. Sum is of these times.
		Times [HeldCounts]uint64
		Sum   time.Duration
	}

	// Retire has a server vote for no transaction that it has not voted for: its site is about to
	// leave the store, and when all that rests on its votes is carried out elsewhere nothing is
	// lost with it. It comes from the server's application, and holds until the server is started
	// again. ServerStatus tells how much is left.
	Retire struct{}

	// Full tells the application of a server or a coordinator that it takes no new transactions at
	// present, as it has as many as it may remember. It comes now and then while that is so.
	Full struct{ Transactions int }

	// Refused tells a server's application that its disk may not take part, and why.
	Refused struct {
		Reason string
		Forgot bool // the disk is lost, or has forgotten what it had voted: its site has to be replaced
	}
)

// HeldCounts is how many counts OrderStatus.Times has: one more than there are HeldBounds.
const HeldCounts = 12

// HeldBounds are the bounds of OrderStatus.Times, in ascending order: powers of two from 1 ms on.
func HeldBounds() (bounds [HeldCounts - 1]time.Duration) {
	for i := range bounds {
		bounds[i] = time.Millisecond << i
	}
	return bounds
}
