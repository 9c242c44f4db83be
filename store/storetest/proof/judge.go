package proof

import (
	"context"
	"fmt"
	"iter"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/foresay/foresay/history"
	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/store"
	"github.com/foresay/foresay/store/client"
	storemachine "github.com/foresay/foresay/store/machine"
	"github.com/foresay/foresay/store/storetest"
)

// judge finds out what became of all transactions, waits until nothing of them is left, and looks
// at the history and, when all machines have stopped, at what their servers hold. What is wrong is
// the world's failure.
func (w *world) judge(ctx context.Context, d *application) {
	d.mode = client.GRPC
	// What a client that has ended prepared is there until its coordinator takes it for gone.
	d.attempts = 0
	d.rand = rand.New(rand.NewPCG(w.sc.seed, 13))
	l := w.link(d)
	err := w.resolve(l)
	if err == nil {
		err = w.readAll(ctx, d, l)
	}
	l.close()
	if err == nil {
		err = w.quiet(ctx)
	}
	if err == nil {
		time.Sleep(w.sc.Settle)
		err = w.down()
	}
	if err == nil {
		err = w.checkHistory()
	}
	if err == nil {
		err = w.checkServers()
	}
	if err != nil {
		w.fail(err)
	}
}

// resolve asks for all outcomes that are not known, until they are.
func (w *world) resolve(l *link) error {
	for _, t := range w.txns {
		calls := t.watch.attempts(t.n)
		if t.verdict != store.Unknown {
			if err := w.refuted(t, calls, l); err != nil {
				return err
			}
			continue
		}
		if len(calls) == 0 && t.nested {
			t.verdict = store.Aborted // the task ended while its commit waited
			continue
		}
		if len(calls) == 0 {
			return fmt.Errorf("the outcome of transaction %d is unknown, and nobody was asked to commit it", t.n)
		}
		last := calls[len(calls)-1]
		v := last.decision.Outcome.Verdict
		for tries := 0; v == store.Unknown || v == store.Blocked; tries++ {
			if !last.ended || last.decision.Txn.ID.IsZero() || tries == 10 {
				return fmt.Errorf("the outcome of transaction %d stays unknown: %+v", t.n, last.decision)
			}
			ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
			v = l.conn.Resolve(ctx, last.decision.Txn).Outcome.Verdict
			cancel()
		}
		t.verdict, t.end = v, w.now()
	}
	return nil
}

// refuted returns an error if a transaction that is said to be aborted is committed all the same:
// one that was made ahead may still have been on its way.
func (w *world) refuted(t *txn, calls []commitCall, l *link) error {
	for _, c := range calls {
		d := c.decision
		if t.verdict != store.Aborted || !c.ahead || w.sc.blind {
			continue
		}
		if c.ended && d.Outcome.Verdict == store.Unknown && !d.Txn.ID.IsZero() {
			ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
			d = l.conn.Resolve(ctx, d.Txn)
			cancel()
		}
		if d.Outcome.Verdict == store.Committed {
			return fmt.Errorf("transaction %d is said to be aborted, and its commit was %+v", t.n, d)
		}
	}
	return nil
}

// readAll reads all keys in a transaction that has to commit.
func (w *world) readAll(ctx context.Context, d *application, l *link) error {
	t := w.newTxn(l.session, l.watch)
	p := plot{n: t.n}
	for k := range keys {
		p.steps = append(p.steps, step{kind: stepGet, key: k})
	}
	ctx, cancel := context.WithTimeout(forTxn(ctx, t.n, t.n), time.Minute)
	defer cancel()
	err := d.run(ctx, l, p, t)
	w.note(t, err)
	if err != nil {
		return fmt.Errorf("with everything in order, all keys cannot be read: %w", err)
	}
	return nil
}

// quiet waits until no server has anything of a transaction left: a lock, a vote without a
// decision, what others have not carried out.
func (w *world) quiet(ctx context.Context) error {
	for waited := time.Duration(0); ; waited += 5 * time.Second {
		left, err := w.left(ctx)
		if err != nil || left == "" {
			return err
		}
		if waited > 4*retention {
			return fmt.Errorf("after %v: %s", waited, left)
		}
		if err := w.failure(); err != nil {
			return err
		}
		time.Sleep(5 * time.Second)
	}
}

// left says what is left of transactions at some server, empty if nothing is.
func (w *world) left(ctx context.Context) (string, error) {
	for _, m := range w.machines {
		servers, err := m.life.node.Servers(ctx)
		if err != nil {
			return "", fmt.Errorf("machine %s: %w", m.place, err)
		}
		for _, st := range servers {
			remembered := st.Txns
			if w.sc.Remembers {
				remembered = 0
			}
			if !st.Admitted || st.Refused != "" || st.Syncing ||
				st.Open+st.Undecided+st.Blocked+st.Wanting+st.Locks+st.Waiting+st.Reservations+st.Held+remembered > 0 {
				return fmt.Sprintf("shard %d of machine %s is left as %+v", st.Shard, m.place, st), nil
			}
		}
	}
	return "", nil
}

// checkHistory checks what clients saw against what sites had.
func (w *world) checkHistory() error {
	h := history.Transactions{Versions: map[string][]string{}}
	relaxed := map[history.TxnID]bool{}
	for key := range w.versions {
		seen := map[string]bool{}
		for _, value := range w.versions.Values(key) {
			if strings.HasSuffix(value, misled) {
				return fmt.Errorf("%q has been %q, by a run that stood on a wrong guess", key, value)
			}
			if seen[value] {
				return fmt.Errorf("%q was %q in two versions", key, value)
			}
			seen[value] = true
			h.Versions[string(key)] = append(h.Versions[string(key)], value)
		}
	}
	for _, t := range w.txns {
		calls := t.watch.attempts(t.n)
		for i, c := range calls {
			if i < len(calls)-1 && c.ahead {
				continue // a later one may have written the same
			}
			x := history.Txn{ID: history.TxnID(100*t.n + i), Client: history.Client(t.session), Begin: t.begin, End: t.end,
				Outcome: history.Returned}
			switch v := c.decision.Outcome.Verdict; {
			case c.decision.Txn.ID.IsZero() && v != store.Committed:
				continue // it was never sent
			case i < len(calls)-1 || t.verdict != store.Committed || t.run != nil && !t.run.counts() || v == store.Aborted &&
				!w.sc.blind:
				// What was aborted is nobody's to see; the order of attempts does not matter.
				x.Client, x.Begin, x.End, x.Outcome = history.Client(10000+t.n*10+i), c.begin, c.end, history.Failed
			default:
				x.Accesses = w.reads(t, c)
			}
			for _, a := range c.writes {
				v := store.Value{Version: c.decision.Txn.ID, Present: !a.Delete, Bytes: a.Bytes}
				x.Accesses = append(x.Accesses, history.Access{Kind: history.Write, Key: string(a.Key),
					Value: storetest.Shown(w.sc.Protocol, v)})
				if x.Outcome == history.Returned && !w.versions.WrittenBy(w.sc.Protocol, a.Key, c.decision.Txn.ID) {
					return fmt.Errorf("transaction %d, %v, is committed, and no server has written its version of %q", t.n,
						c.decision.Txn.ID, a.Key)
				}
			}
			h.Txns = append(h.Txns, x)
			relaxed[x.ID] = t.relaxed
		}
	}
	return storetest.CheckLevel(h, w.sc.Protocol, w.sc.faults, relaxed)
}

// reads returns what a transaction's function saw, or what it stood on if it gave no result.
func (w *world) reads(t *txn, c commitCall) []history.Access {
	var all []history.Access
	for _, r := range c.reads {
		text := w.versions.WroteAs(w.sc.Protocol, r.Key, r.Version)
		if t.run != nil {
			if saw, ok := t.run.reads[string(r.Key)]; ok {
				text = storetest.Shown(w.sc.Protocol, store.Value{Version: r.Version, Present: saw.ok, Bytes: []byte(saw.value)})
			}
		}
		all = append(all, history.Access{Kind: history.Read, Key: string(r.Key), Value: text})
	}
	return all
}

// checkServers returns an error unless all servers hold the last version of each key of their
// shards. The machines have stopped.
func (w *world) checkServers() error {
	layout, err := w.topology.Layout()
	if err != nil {
		return err
	}
	return storetest.EqualSites(layout, func(id protocol.ID) (iter.Seq2[store.Key, store.Value], error) {
		shards, _ := layout.Places()
		values := map[store.Key]store.Value{}
		for key := range w.versions {
			if layout.ShardOf(key) != shards[id].Index {
				continue
			}
			v, err := w.ask(id, shards[id], key)
			if err != nil {
				return nil, err
			}
			order := w.versions.Order(key)
			if last := order[len(order)-1]; v.Version != last || storetest.Shown(w.sc.Protocol, v) != w.versions[key][last] {
				return nil, fmt.Errorf("site %s holds %q as %q in version %v, and it was last written as %q in version %v",
					layout.Sites[shards[id].Site].Name, key, storetest.Shown(w.sc.Protocol, v), v.Version, w.versions[key][last], last)
			}
			values[key] = v
		}
		return func(yield func(store.Key, store.Value) bool) {
			for _, key := range slices.Sorted(maps.Keys(values)) {
				if !yield(key, values[key]) {
					return
				}
			}
		}, nil
	})
}

// ask has a server whose machine has stopped say what it holds under a key: it is told of a read as
// its host would tell it, with its disk.
func (w *world) ask(id protocol.ID, at store.Place, key store.Key) (store.Value, error) {
	for _, m := range w.machines {
		n := m.servers[id]
		if n == nil {
			continue
		}
		disk := m.disks[storemachine.ShardName(at.Index)].durable
		env := protocol.NewEnv[store.Message](disk.Keys(), disk.NextIndex(), rand.New(rand.NewPCG(1, 1)))
		env.Begin(time.Duration(time.Now().UnixNano()))
		const reader = protocol.ID(1 << 20) // which no topology has
		n.Receive(env, reader, store.ReadRequest{Ref: 1, Key: key})
		for _, e := range env.Out {
			if r, ok := e.Msg.(store.ReadReply); ok && e.To == reader && !r.Pending && !r.Queued {
				return r.Value, nil
			}
		}
		return store.Value{}, fmt.Errorf("the server of shard %d of machine %s does not say what %q is", at.Index,
			m.place, key)
	}
	return store.Value{}, fmt.Errorf("no machine has server %d", id)
}
