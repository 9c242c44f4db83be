package replicatedcommit

import (
	"slices"

	"github.com/foresay/foresay/internal/wirefmt"
	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/store"
)

type (
	writer = wirefmt.Writer
	reader = wirefmt.Reader
)

// Codec returns the codec of the messages between nodes. There are no records: all that is durable is in the key space.
func Codec() protocol.Codec[Message] {
	return wirefmt.NewFormat("replicatedcommit", 2, slices.Concat(clientKinds(), serverKinds(), admissionKinds(), syncKinds())...)
}

func clientKinds() []wirefmt.Kind[Message] {
	return []wirefmt.Kind[Message]{
		wirefmt.NewKind[Message](1, func(w *writer, m ReadRequest) {
			w.Uint(m.Ref)
			w.String(string(m.Key))
			store.AppendPriority(w, m.Priority)
		}, func(r *reader) ReadRequest {
			return ReadRequest{r.Uint(), store.Key(r.String()), store.ReadPriority(r)}
		}),
		wirefmt.NewKind[Message](2, func(w *writer, m ReadReply) {
			w.Uint(m.Ref)
			store.AppendValue(w, m.Value)
			w.Bool(m.Pending)
			w.Uint(m.Hint)
			w.Bool(m.Queued)
		}, func(r *reader) ReadReply {
			return ReadReply{r.Uint(), store.ReadValue(r), r.Bool(), r.Uint(), r.Bool()}
		}),
		wirefmt.NewKind[Message](3, func(w *writer, m CommitRequest) {
			store.AppendTxn(w, m.Txn)
			w.Bool(m.Recover)
			w.Bool(m.Firm)
			w.Bool(m.Hold)
		}, func(r *reader) CommitRequest { return CommitRequest{store.ReadTxn(r), r.Bool(), r.Bool(), r.Bool()} }),
		wirefmt.NewKind[Message](4, func(w *writer, m SiteVote) {
			appendNamed(w, m.ID, m.Shards)
			w.Bool(m.Yes)
			appendReason(w, m.Reason, m.Hint)
			appendCurrent(w, m.Current)
		}, func(r *reader) SiteVote {
			return SiteVote{store.ReadVersion(r), readShards(r), r.Bool(), readReason(r), r.Uint(), readCurrent(r)}
		}),
		wirefmt.NewKind[Message](5, func(w *writer, m Decided) {
			store.AppendVersion(w, m.ID)
			w.Uint(uint64(m.Verdict))
			w.Uint(uint64(m.Reason))
		}, func(r *reader) Decided { return Decided{store.ReadVersion(r), readVerdict(r), readReason(r)} }),
		wirefmt.NewKind[Message](6, func(w *writer, m Busy) { store.AppendVersion(w, m.ID) }, func(r *reader) Busy { return Busy{store.ReadVersion(r)} }),
	}
}

func serverKinds() []wirefmt.Kind[Message] {
	return []wirefmt.Kind[Message]{
		wirefmt.NewKind[Message](16, func(w *writer, m Prepare) {
			store.AppendTxn(w, m.Txn)
			appendShards(w, m.Shards)
			w.Bool(m.ReadOnly)
			w.Bool(m.Firm)
			w.Bool(m.Hold)
		}, func(r *reader) Prepare {
			return Prepare{store.ReadTxn(r), readShards(r), r.Bool(), r.Bool(), r.Bool()}
		}),
		wirefmt.NewKind[Message](17, func(w *writer, m Vote) {
			store.AppendVersion(w, m.ID)
			w.Uint(uint64(m.State))
			appendReason(w, m.Reason, m.Hint)
			appendCurrent(w, m.Current)
		}, func(r *reader) Vote {
			return Vote{store.ReadVersion(r), readState(r), readReason(r), r.Uint(), readCurrent(r)}
		}),
		wirefmt.NewKind[Message](18, func(w *writer, m Ask) {
			appendNamed(w, m.ID, m.Shards)
			w.Bool(m.Fence)
		}, func(r *reader) Ask { return Ask{store.ReadVersion(r), readShards(r), r.Bool()} }),
		wirefmt.NewKind[Message](23, func(w *writer, m Urge) {
			store.AppendVersion(w, m.ID)
			w.Uint(uint64(m.Site))
		}, func(r *reader) Urge { return Urge{store.ReadVersion(r), r.Uint32()} }),
		wirefmt.NewKind[Message](19, func(w *writer, m Decide) {
			appendNamed(w, m.ID, m.Shards)
			w.Bool(m.Commit)
			w.Bool(m.Old)
		}, func(r *reader) Decide {
			return Decide{store.ReadVersion(r), readShards(r), r.Bool(), r.Bool()}
		}),
		wirefmt.NewKind[Message](20, func(w *writer, m Applied) { store.AppendVersion(w, m.ID) },
			func(r *reader) Applied { return Applied{store.ReadVersion(r)} }),
		wirefmt.NewKind[Message](21, func(w *writer, m Forget) {
			store.AppendVersion(w, m.ID)
			w.List(len(m.But))
			for _, id := range m.But {
				w.Uint(uint64(id))
			}
		}, func(r *reader) Forget {
			m := Forget{ID: store.ReadVersion(r)}
			for range r.List(1) {
				m.But = append(m.But, protocol.ID(r.Uint32()))
			}
			return m
		}),
		wirefmt.NewKind[Message](22, func(w *writer, m Resolve) {
			appendNamed(w, m.ID, m.Shards)
			w.Uint(uint64(m.State))
			w.Uint(uint64(m.Reason))
		}, func(r *reader) Resolve {
			return Resolve{store.ReadVersion(r), readShards(r), readState(r), readReason(r)}
		}),
		wirefmt.NewKind[Message](32, func(w *writer, m Fetch) { store.AppendVersion(w, m.ID) },
			func(r *reader) Fetch { return Fetch{store.ReadVersion(r)} }),
		wirefmt.NewKind[Message](33, func(w *writer, m Content) {
			store.AppendVersion(w, m.ID)
			w.Bool(m.Old)
			store.AppendWrites(w, m.Writes)
		}, func(r *reader) Content { return Content{store.ReadVersion(r), r.Bool(), store.ReadWrites(r)} }),
	}
}

// admissionKinds are what servers of one shard say of their disks.
func admissionKinds() []wirefmt.Kind[Message] {
	return []wirefmt.Kind[Message]{
		wirefmt.NewKind[Message](34, func(w *writer, m Hello) {
			w.Uint(m.Disk)
			w.Uint(m.Mark)
			w.Uint(m.Start)
		}, func(r *reader) Hello { return Hello{r.Uint(), r.Uint(), r.Uint()} }),
		wirefmt.NewKind[Message](35, func(w *writer, m Welcome) {
			w.Uint(m.Asked)
			w.Uint(m.Disk)
			w.Uint(m.Mark)
			w.Uint(m.Start)
		}, func(r *reader) Welcome { return Welcome{r.Uint(), r.Uint(), r.Uint(), r.Uint()} }),
	}
}

func appendNamed(w *writer, id store.TxnID, shards []uint32) {
	store.AppendVersion(w, id)
	appendShards(w, shards)
}

func appendShards(w *writer, shards []uint32) {
	w.List(len(shards))
	for _, s := range shards {
		w.Uint(uint64(s))
	}
}

func readShards(r *reader) []uint32 {
	shards := make([]uint32, r.List(1))
	for i := range shards {
		shards[i] = r.Uint32()
	}
	return shards
}

func appendCurrent(w *writer, all []Current) {
	w.List(len(all))
	for _, c := range all {
		w.String(string(c.Key))
		w.Bool(c.Locked)
		store.AppendValue(w, c.Value)
	}
}

func readCurrent(r *reader) []Current {
	n := r.List(6) // the bytes of the least one
	if n == 0 {
		return nil
	}
	all := make([]Current, n)
	for i := range all {
		all[i] = Current{store.Key(r.String()), r.Bool(), store.ReadValue(r)}
	}
	return all
}

func appendReason(w *writer, reason store.Reason, hint uint64) {
	w.Uint(uint64(reason))
	w.Uint(hint)
}

func readReason(r *reader) store.Reason {
	v := r.Uint()
	if v > uint64(store.Overloaded) {
		r.Failf("no such reason: %d", v)
		return 0
	}
	return store.Reason(v)
}

func readState(r *reader) State {
	v := r.Uint()
	if v > uint64(Gone) {
		r.Failf("no such state: %d", v)
		return 0
	}
	return State(v)
}

func readVerdict(r *reader) store.Verdict {
	v := r.Uint()
	if v > uint64(store.Aborted) {
		r.Failf("no such verdict: %d", v)
		return 0
	}
	return store.Verdict(v)
}
