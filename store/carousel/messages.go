package carousel

import (
	"slices"
	"time"

	"github.com/foresay/foresay/clock"
	"github.com/foresay/foresay/internal/wirefmt"
	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/smr/raft"
	"github.com/foresay/foresay/store"
	"github.com/foresay/foresay/store/kit"
)

// What agents say to servers, and servers to each other. Each can be repeated.
type (
	// prepareRequest asks a partition to prepare a part of a transaction: its leader and, on the
	// fast path, all members. With Values it answers the agent with what the keys that are read
	// hold, too: the thesis' ReadAndPrepare.
	prepareRequest struct {
		Part   partID
		Coord  uint32 // the transaction's coordinating partition
		Reads  []store.Key
		Writes []store.Key
		Values bool
		// Stood are the versions that the transaction stands on, of the keys that it reads and in their
		// order. A leader that holds others says so to the agent, by a staleReply. None: it does not
		// compare them.
		Stood []store.Version
		// Arrives is when the request should have arrived at all servers that it and those of other
		// parts are sent to, by their clocks: it is handled then. 0: at once.
		Arrives time.Duration
		// Priority is the age of a transaction that is tried again; zero: this is the first try.
		Priority store.Priority
		// Leader says that the receiver is taken for the leader.
		Leader bool
	}

	// valuesReply answers a prepareRequest with Values.
	valuesReply struct {
		Part   partID
		Shard  uint32
		Leader bool
		Values []store.Held // in the order of the keys
	}

	// staleReply answers a prepareRequest of what has read something else than the leader prepares:
	// the transaction is going to be aborted, and its client may go on with this.
	staleReply struct {
		ID      store.TxnID
		Shard   uint32
		Current []store.Current
	}

	// snapshotRequest asks a partition's leader for what a transaction that only reads sees at a
	// timestamp: see snapshots. With Values, of which the versions are not known yet, it is answered
	// with what the keys hold, else with whether they hold these versions. snapshotReply answers it.
	snapshotRequest struct {
		ID     store.TxnID
		At     clock.Stamp // 0: what is there now, whatever becomes of it
		Strict bool
		Values bool
		Reads  []store.Read
	}
	snapshotReply struct {
		ID     store.TxnID
		Shard  uint32
		At     clock.Stamp
		Reason store.Reason  // NoReason: it is served
		Values []store.Value // in the order of the keys
	}

	// closedRequest asks any member of a partition for what was there as of a timestamp, if that is
	// closed at this member; without reads it asks how far it has closed. closedReply answers it.
	closedRequest struct {
		ID    store.TxnID
		At    clock.Stamp
		Reads []store.Read // without versions
	}
	closedReply struct {
		ID     store.TxnID
		Shard  uint32
		At     clock.Stamp
		Closed clock.Stamp
		Reason store.Reason
		Values []store.Value // in the order of the keys
	}

	// timeRequest asks a machine of another site for its time; timeReply answers it.
	timeRequest struct{ Sent time.Duration }
	timeReply   struct {
		Sent time.Duration // as asked
		Now  time.Duration
	}

	// checkRequest asks a partition's leader whether what a transaction has read that writes nothing
	// is still so, and nobody is about to change it. checkReply answers it. At is the latest version
	// that the transaction has read anywhere: what is written afterwards is later.
	checkRequest struct {
		ID    store.TxnID
		At    clock.Stamp
		Reads []store.Read
	}
	checkReply struct {
		ID     store.TxnID
		Shard  uint32
		Reason store.Reason // NoReason: it is
	}

	// beginRequest tells a coordinator of a transaction whose keys are prepared while its client
	// still reads, and which partitions that are. The agent goes on saying so as long as the client
	// is there: else the transaction is aborted.
	beginRequest struct {
		ID     store.TxnID
		Shards []uint32
	}

	// commitRequest gives a coordinator what a transaction has read and writes, and the parts that
	// it consists of. store.Decided answers it.
	commitRequest struct {
		ID store.TxnID
		commitRecord
	}

	// abortRequest ends a transaction that its client has given up.
	abortRequest struct {
		ID     store.TxnID
		Shards []uint32
	}

	// voteMsg tells a coordinator how a partition's group has agreed to prepare a part. Doubt says
	// that it has been waiting for an end for long: what the coordinator does not know is aborted
	// then.
	voteMsg struct {
		Ref    partRef
		ID     store.TxnID
		Ballot ballot
		Doubt  bool
	}

	// fastVote tells a coordinator that a member has prepared a part, on its own.
	fastVote struct {
		Ref       partRef
		ID        store.TxnID
		Term      uint64
		Leader    bool
		Stamp     uint64 // of the leader's
		Footprint footprint
		// Members are those of the leader's group: they alone count, and that many make a supermajority.
		Members []protocol.ID
	}

	// storedVote tells a coordinator that a member has the leader's word on a part on its disk, as
	// the entry at a place of its log, and has stored it in the entry's own term: see tally.agreed.
	storedVote struct {
		Ref    partRef
		ID     store.TxnID
		At     raft.Position
		Ballot ballot
		// Members are those of the group, as of all changes of them before the entry: see fastVote.
		Members []protocol.ID
	}

	// voteWanted asks a partition's leader for its word on a part. If it does not know the part, it
	// will not be prepared any more.
	voteWanted struct {
		Part  partID
		Coord uint32
	}

	// finish tells a partition how a transaction has ended. The coordinator's group has that on
	// record. Writes are the partition's. finished answers it, when it is carried out.
	finish struct {
		ID      store.TxnID
		Coord   uint32
		Commit  bool
		Version store.Version
		Reason  store.Reason
		Writes  []store.Write
	}
	finished struct {
		ID    store.TxnID
		Shard uint32
	}

	// closeWanted tells a partition's leader that somebody reads at closed timestamps, at another
	// member. With Hold, it copies the snapshot of that timestamp, which is to be kept.
	closeWanted struct{ Hold clock.Stamp }

	// moved answers what is for a partition's leader, and says who that is, as far as is known.
	moved struct {
		Shard  uint32
		Leader uint32
		// ID is the transaction that the message was about.
		ID store.TxnID
	}

	// listWanted asks members of a group for their lists of what they have prepared on the fast path
	// in terms before this one, and that they prepare nothing more in those. listReply answers it.
	listWanted struct{ Term uint64 }
	listReply  struct {
		Term uint64
		List []pending
	}
)

// A commitRecord is what a coordinator's group records of a commit request.
type commitRecord struct {
	Parts  []partRef
	Reads  []store.Read
	Writes []store.Write
}

// Entries of a partition's log.
type (
	// prepared is the leader's word on a part, a yes or a no.
	prepared struct {
		Part   partID
		Coord  uint32
		Ballot ballot
		// Recovered says that the part may have been prepared on the fast path, with another stamp.
		Recovered bool
	}

	// ended carries out how a transaction has ended.
	ended struct{ finish }

	// checked asks what a checkRequest asks, at a place in the log.
	checked struct{ checkRequest }

	// raised puts a ceiling of reads on record: see mvcc.Reads.
	raised struct{ Ceiling clock.Stamp }

	// closed closes timestamps and, if it has a Horizon, gives up the snapshots before that.
	closed struct{ At, Horizon clock.Stamp }

	// begun, committing and decided are a coordinator's: see beginRequest, commitRequest, finish.
	// The first of committing and an abort counts.
	begun      struct{ beginRequest }
	committing struct{ commitRequest }
	decided    struct {
		ID      store.TxnID
		Commit  bool
		Version store.Version
		Reason  store.Reason
		Shards  []uint32 // which may have prepared, beside those on record
		// Alone says that it is an abort that does not follow from votes: a commit request that is
		// on record before it undoes it.
		Alone bool
	}

	// done says that all partitions have carried out a transaction's end.
	done struct{ ID store.TxnID }
)

// entryFormat is that of entries alone, which a server makes for itself: it is made in a tenth of
// the time.
func entryFormat() *wirefmt.Format[store.Message] {
	return wirefmt.NewFormat("carousel", 1, entryKinds()...)
}

// codec is that of messages and, from tag 48 on, of entries.
func codec() *wirefmt.Format[store.Message] {
	group := []wirefmt.Kind[store.Message]{wirefmt.NewKind[store.Message](16, kit.GroupedFields())}
	return wirefmt.NewFormat("carousel", 1, slices.Concat(store.RequestKinds(), store.SnapshotKinds(), group,
		prepareKinds(), agentKinds(), serverKinds(), entryKinds())...)
}

// prepareKinds are those of a prepareRequest: what an earlier version has no field for is sent so
// that it understands, if the field is empty.
func prepareKinds() []wirefmt.Kind[store.Message] {
	return []wirefmt.Kind[store.Message]{
		wirefmt.NewEarlierKind[store.Message](17, func(m prepareRequest) bool {
			return len(m.Stood) == 0 && m.Arrives == 0 && m.Priority.IsZero()
		}, prepareFields),
		wirefmt.NewEarlierKind[store.Message](42, func(m prepareRequest) bool {
			return m.Arrives == 0 && m.Priority.IsZero()
		}, stoodFields),
		wirefmt.NewKind[store.Message](44, func(c *wirefmt.Coder, m *prepareRequest) {
			stoodFields(c, m)
			wirefmt.Int(c, &m.Arrives)
			store.PriorityFields(c, &m.Priority)
		}),
	}
}

// agentKinds are those of what else agents say and hear.
func agentKinds() []wirefmt.Kind[store.Message] {
	return []wirefmt.Kind[store.Message]{
		wirefmt.NewKind[store.Message](43, func(c *wirefmt.Coder, m *staleReply) {
			store.VersionFields(c, &m.ID)
			wirefmt.Uint32(c, &m.Shard)
			wirefmt.List(c, &m.Current, 6, store.CurrentFields)
		}),
		wirefmt.NewKind[store.Message](18, func(c *wirefmt.Coder, m *valuesReply) {
			partFields(c, &m.Part)
			wirefmt.Uint32(c, &m.Shard)
			wirefmt.Bool(c, &m.Leader)
			wirefmt.List(c, &m.Values, 5, store.HeldFields)
		}),
		wirefmt.NewKind[store.Message](19, func(c *wirefmt.Coder, m *checkRequest) {
			checkFields(c, m)
			wirefmt.Uint(c, &m.At)
		}),
		wirefmt.NewKind[store.Message](20, func(c *wirefmt.Coder, m *checkReply) {
			store.VersionFields(c, &m.ID)
			wirefmt.Uint32(c, &m.Shard)
			store.ReasonFields(c, &m.Reason)
		}),
		wirefmt.NewKind[store.Message](21, beginFields),
		wirefmt.NewKind[store.Message](22, commitFields),
		wirefmt.NewKind[store.Message](23, func(c *wirefmt.Coder, m *abortRequest) {
			store.VersionFields(c, &m.ID)
			store.ShardsFields(c, &m.Shards)
		}),
		wirefmt.NewKind[store.Message](34, func(c *wirefmt.Coder, m *snapshotRequest) {
			store.VersionFields(c, &m.ID)
			wirefmt.Uint(c, &m.At)
			wirefmt.Bool(c, &m.Strict)
			wirefmt.Bool(c, &m.Values)
			readsFields(c, &m.Reads)
		}),
		wirefmt.NewKind[store.Message](35, func(c *wirefmt.Coder, m *snapshotReply) {
			store.VersionFields(c, &m.ID)
			wirefmt.Uint32(c, &m.Shard)
			wirefmt.Uint(c, &m.At)
			store.ReasonFields(c, &m.Reason)
			wirefmt.List(c, &m.Values, 3, store.ValueFields)
		}),
		wirefmt.NewKind[store.Message](40, func(c *wirefmt.Coder, m *closedRequest) {
			store.VersionFields(c, &m.ID)
			wirefmt.Uint(c, &m.At)
			readsFields(c, &m.Reads)
		}),
		wirefmt.NewKind[store.Message](41, func(c *wirefmt.Coder, m *closedReply) {
			store.VersionFields(c, &m.ID)
			wirefmt.Uint32(c, &m.Shard)
			wirefmt.Uint(c, &m.At)
			wirefmt.Uint(c, &m.Closed)
			store.ReasonFields(c, &m.Reason)
			wirefmt.List(c, &m.Values, 3, store.ValueFields)
		}),
		wirefmt.NewKind[store.Message](36, func(c *wirefmt.Coder, m *timeRequest) { wirefmt.Int(c, &m.Sent) }),
		wirefmt.NewKind[store.Message](37, func(c *wirefmt.Coder, m *timeReply) {
			wirefmt.Int(c, &m.Sent)
			wirefmt.Int(c, &m.Now)
		}),
	}
}

// serverKinds are those of what servers say to each other.
func serverKinds() []wirefmt.Kind[store.Message] {
	return []wirefmt.Kind[store.Message]{
		wirefmt.NewKind[store.Message](24, func(c *wirefmt.Coder, m *voteMsg) {
			refFields(c, &m.Ref)
			store.VersionFields(c, &m.ID)
			ballotFields(c, &m.Ballot)
			wirefmt.Bool(c, &m.Doubt)
		}),
		wirefmt.NewKind[store.Message](25, func(c *wirefmt.Coder, m *fastVote) {
			refFields(c, &m.Ref)
			store.VersionFields(c, &m.ID)
			wirefmt.Uint(c, &m.Term)
			wirefmt.Bool(c, &m.Leader)
			wirefmt.Uint(c, &m.Stamp)
			footprintFields(c, &m.Footprint)
			wirefmt.List(c, &m.Members, 1, wirefmt.Uint32)
		}),
		wirefmt.NewKind[store.Message](26, func(c *wirefmt.Coder, m *voteWanted) {
			partFields(c, &m.Part)
			wirefmt.Uint32(c, &m.Coord)
		}),
		wirefmt.NewKind[store.Message](27, finishFields),
		wirefmt.NewKind[store.Message](28, func(c *wirefmt.Coder, m *finished) {
			store.VersionFields(c, &m.ID)
			wirefmt.Uint32(c, &m.Shard)
		}),
		wirefmt.NewKind[store.Message](29, func(c *wirefmt.Coder, m *moved) {
			wirefmt.Uint32(c, &m.Shard)
			wirefmt.Uint32(c, &m.Leader)
			store.VersionFields(c, &m.ID)
		}),
		wirefmt.NewKind[store.Message](38, func(c *wirefmt.Coder, m *closeWanted) { wirefmt.Uint(c, &m.Hold) }),
		wirefmt.NewKind[store.Message](30, func(c *wirefmt.Coder, m *listWanted) { wirefmt.Uint(c, &m.Term) }),
		wirefmt.NewKind[store.Message](31, func(c *wirefmt.Coder, m *listReply) {
			wirefmt.Uint(c, &m.Term)
			wirefmt.List(c, &m.List, 6, pendingFields)
		}),
		wirefmt.NewKind[store.Message](39, func(c *wirefmt.Coder, m *storedVote) {
			refFields(c, &m.Ref)
			store.VersionFields(c, &m.ID)
			wirefmt.Uint(c, &m.At.Index)
			wirefmt.Uint(c, &m.At.Term)
			ballotFields(c, &m.Ballot)
			wirefmt.List(c, &m.Members, 1, wirefmt.Uint32)
		}),
	}
}

func entryKinds() []wirefmt.Kind[store.Message] {
	return []wirefmt.Kind[store.Message]{
		wirefmt.NewKind[store.Message](48, preparedFields),
		wirefmt.NewKind[store.Message](49, func(c *wirefmt.Coder, m *ended) { finishFields(c, &m.finish) }),
		wirefmt.NewKind[store.Message](50, func(c *wirefmt.Coder, m *checked) { checkFields(c, &m.checkRequest) }),
		wirefmt.NewKind[store.Message](51, func(c *wirefmt.Coder, m *begun) { beginFields(c, &m.beginRequest) }),
		wirefmt.NewKind[store.Message](52, func(c *wirefmt.Coder, m *committing) { commitFields(c, &m.commitRequest) }),
		wirefmt.NewKind[store.Message](53, decidedFields),
		wirefmt.NewKind[store.Message](54, func(c *wirefmt.Coder, m *done) { store.VersionFields(c, &m.ID) }),
		wirefmt.NewKind[store.Message](56, func(c *wirefmt.Coder, m *closed) {
			wirefmt.Uint(c, &m.At)
			wirefmt.Uint(c, &m.Horizon)
		}),
		wirefmt.NewKind[store.Message](55, func(c *wirefmt.Coder, m *raised) { wirefmt.Uint(c, &m.Ceiling) }),
	}
}

func prepareFields(c *wirefmt.Coder, m *prepareRequest) {
	partFields(c, &m.Part)
	wirefmt.Uint32(c, &m.Coord)
	wirefmt.List(c, &m.Reads, 1, wirefmt.String)
	wirefmt.List(c, &m.Writes, 1, wirefmt.String)
	wirefmt.Bool(c, &m.Values)
	wirefmt.Bool(c, &m.Leader)
}

func stoodFields(c *wirefmt.Coder, m *prepareRequest) {
	prepareFields(c, m)
	wirefmt.List(c, &m.Stood, 2, store.VersionFields)
}

func partFields(c *wirefmt.Coder, p *partID) {
	store.VersionFields(c, &p.ID)
	wirefmt.Uint32(c, &p.Step)
}

func refFields(c *wirefmt.Coder, p *partRef) {
	wirefmt.Uint32(c, &p.Shard)
	wirefmt.Uint32(c, &p.Step)
}

func readsFields(c *wirefmt.Coder, reads *[]store.Read) {
	wirefmt.List(c, reads, store.MinAccessBytes, func(c *wirefmt.Coder, r *store.Read) {
		wirefmt.String(c, &r.Key)
		store.VersionFields(c, &r.Version)
	})
}

func footprintFields(c *wirefmt.Coder, f *footprint) {
	readsFields(c, &f.Reads)
	readsFields(c, &f.Writes)
}

func ballotFields(c *wirefmt.Coder, b *ballot) {
	wirefmt.Bool(c, &b.Yes)
	store.ReasonFields(c, &b.Reason)
	wirefmt.Uint(c, &b.Stamp)
	footprintFields(c, &b.footprint)
}

func pendingFields(c *wirefmt.Coder, p *pending) {
	partFields(c, &p.Part)
	wirefmt.Uint(c, &p.Term)
	wirefmt.Uint32(c, &p.Coord)
	footprintFields(c, &p.footprint)
}

// checkFields are those that an entry has, too.
func checkFields(c *wirefmt.Coder, m *checkRequest) {
	store.VersionFields(c, &m.ID)
	readsFields(c, &m.Reads)
}

func beginFields(c *wirefmt.Coder, m *beginRequest) {
	store.VersionFields(c, &m.ID)
	store.ShardsFields(c, &m.Shards)
}

func commitFields(c *wirefmt.Coder, m *commitRequest) {
	store.VersionFields(c, &m.ID)
	recordFields(c, &m.commitRecord)
}

func recordFields(c *wirefmt.Coder, m *commitRecord) {
	wirefmt.List(c, &m.Parts, 2, refFields)
	readsFields(c, &m.Reads)
	store.WritesFields(c, &m.Writes)
}

func finishFields(c *wirefmt.Coder, m *finish) {
	store.VersionFields(c, &m.ID)
	wirefmt.Uint32(c, &m.Coord)
	wirefmt.Bool(c, &m.Commit)
	store.VersionFields(c, &m.Version)
	store.ReasonFields(c, &m.Reason)
	store.WritesFields(c, &m.Writes)
}

func preparedFields(c *wirefmt.Coder, m *prepared) {
	partFields(c, &m.Part)
	wirefmt.Uint32(c, &m.Coord)
	ballotFields(c, &m.Ballot)
	wirefmt.Bool(c, &m.Recovered)
}

func decidedFields(c *wirefmt.Coder, m *decided) {
	store.VersionFields(c, &m.ID)
	wirefmt.Bool(c, &m.Commit)
	store.VersionFields(c, &m.Version)
	store.ReasonFields(c, &m.Reason)
	store.ShardsFields(c, &m.Shards)
	wirefmt.Bool(c, &m.Alone)
}
