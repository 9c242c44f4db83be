package replicatedcommit

import (
	"github.com/foresay/foresay/internal/wirefmt"
	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/store"
)

// Least sizes of what lists have, as bytes.
const (
	minDebtBytes     = 3
	minSettledBytes  = 9
	minKeyValueBytes = 5
)

func syncKinds() []wirefmt.Kind[Message] {
	return []wirefmt.Kind[Message]{
		wirefmt.NewKind[Message](48, func(w *writer, m Copy) {
			w.Uint(uint64(m.Stage))
			w.String(m.From)
			w.Uint(m.Since)
			w.Uint(m.Round)
		}, func(r *reader) Copy { return Copy{readStage(r), r.String(), r.Uint(), r.Uint()} }),
		wirefmt.NewKind[Message](49, appendPage, readPage),
		wirefmt.NewKind[Message](50, func(w *writer, m Look) { store.AppendVersion(w, m.ID) }, func(r *reader) Look { return Look{store.ReadVersion(r)} }),
		wirefmt.NewKind[Message](51, func(w *writer, m Seen) {
			store.AppendVersion(w, m.ID)
			w.Uint(uint64(m.State))
			w.Bool(m.Old)
		}, func(r *reader) Seen { return Seen{store.ReadVersion(r), readState(r), r.Bool()} }),
		wirefmt.NewKind[Message](52, func(w *writer, m Owing) {
			w.Uint(m.Serial)
			w.Uint(m.Since)
			w.Uint(m.To)
		}, func(r *reader) Owing { return Owing{r.Uint(), r.Uint(), r.Uint()} }),
		wirefmt.NewKind[Message](53, func(w *writer, m Paid) {
			w.Uint(m.Serial)
			w.Bool(m.Behind)
		}, func(r *reader) Paid { return Paid{r.Uint(), r.Bool()} }),
	}
}

func appendPage(w *writer, m Page) {
	w.Uint(uint64(m.Stage))
	w.String(m.From)
	w.Uint(m.Round)
	w.String(m.Next)
	w.Uint(m.Old)
	w.Uint(uint64(m.Scanned))
	w.List(len(m.Debts))
	for _, d := range m.Debts {
		w.Uint(uint64(d.Server))
		w.Uint(d.Since)
		w.Uint(d.Upto)
	}
	w.List(len(m.Txns))
	for _, t := range m.Txns {
		store.AppendTxn(w, t.Txn)
		appendShards(w, t.Shards)
		w.Bool(t.Commit)
		w.Bool(t.Old)
	}
	w.List(len(m.Values))
	for _, kv := range m.Values {
		w.String(string(kv.Key))
		store.AppendValue(w, kv.Value)
	}
}

func readPage(r *reader) Page {
	m := Page{Stage: readStage(r), From: r.String(), Round: r.Uint(), Next: r.String(), Old: r.Uint(), Scanned: int(r.Uint32())}
	for range r.List(minDebtBytes) {
		m.Debts = append(m.Debts, Debt{protocol.ID(r.Uint32()), r.Uint(), r.Uint()})
	}
	for range r.List(minSettledBytes) {
		if r.Err() != nil {
			return m
		}
		m.Txns = append(m.Txns, SettledTxn{store.ReadTxn(r), readShards(r), r.Bool(), r.Bool()})
	}
	for range r.List(minKeyValueBytes) {
		if r.Err() != nil {
			return m
		}
		m.Values = append(m.Values, KeyValue{store.Key(r.String()), store.ReadValue(r)})
	}
	return m
}

func readStage(r *reader) Stage {
	v := r.Byte()
	if v >= byte(copied) {
		r.Failf("no such stage: %d", v)
		return 0
	}
	return Stage(v)
}
