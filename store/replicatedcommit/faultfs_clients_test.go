package replicatedcommit_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"slices"
	"sync"
	"time"

	"github.com/foresay/foresay/history"
	"github.com/foresay/foresay/host"
	"github.com/foresay/foresay/internal/callers"
	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/store"
	"github.com/foresay/foresay/store/replicatedcommit"
	"github.com/foresay/foresay/transport"
)

type conn = net.Conn

// mortal is a listener that accepts nothing after its machine's end, and whose end is no error
// then.
type mortal struct {
	net.Listener
	life *life
}

func (m *mortal) Accept() (net.Conn, error) {
	c, err := m.Listener.Accept()
	if err == nil && m.life.dead.Load() {
		c.Close()
		return nil, errNoPower
	}
	return c, err
}

// txnLog is what clients saw, and which versions there are.
type txnLog struct {
	rec   history.TxnRecorder
	start time.Time

	mu        sync.Mutex
	txns      int
	committed int
	versions  map[string]map[store.Version]string
}

func newTxnLog() *txnLog {
	return &txnLog{start: time.Now(), versions: map[string]map[store.Version]string{}}
}

func (l *txnLog) now() time.Duration { return time.Since(l.start) }

func (l *txnLog) begin(client int) (int, history.TxnLog) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.txns++
	return l.txns, l.rec.Begin(history.TxnID(l.txns), history.Client(client), l.now())
}

// commit notes the versions that a transaction made.
func (l *txnLog) commit(t store.Txn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.committed++
	for _, w := range t.Writes {
		if l.versions[string(w.Key)] == nil {
			l.versions[string(w.Key)] = map[store.Version]string{}
		}
		l.versions[string(w.Key)][t.ID] = shown(store.Value{Version: t.ID, Present: !w.Delete, Bytes: w.Bytes})
	}
}

// check returns an error unless the history is strictly serializable.
func (l *txnLog) check() error {
	for key, all := range l.versions {
		var order []store.Version
		for v := range all {
			order = append(order, v)
		}
		slices.SortFunc(order, store.Version.Compare)
		var values []string
		for _, v := range order {
			values = append(values, all[v])
		}
		l.rec.Versions(key, values)
	}
	h, err := l.rec.Transactions()
	if err != nil {
		return err
	}
	report, err := history.CheckTransactions(h, history.StrictSerializable)
	if err == nil && report.Verdict() != history.OK {
		err = fmt.Errorf("not strictly serializable: %v", report)
	}
	return err
}

// shown is a value as it is in histories.
func shown(v store.Value) string {
	switch {
	case v.Present:
		return string(v.Bytes)
	case v.Version.IsZero():
		return history.Initial
	}
	return "deleted by " + v.Version.String()
}

// app is a client's application, which makes one transaction after the other.
type app struct {
	w    *powerWorld
	n    int
	rand *rand.Rand
	node *host.Node[store.Message]

	calls callers.Table[store.Message]
}

func (w *powerWorld) newApp(n int) (*app, *host.Host, error) {
	a := &app{w: w, n: n, rand: rand.New(rand.NewPCG(w.plan.seed, uint64(100+n)))}
	h, err := host.New(host.Config{
		Seed: w.plan.seed + 100 + uint64(n), Check: true,
		Network: transport.Config{Cluster: "crash", Insecure: true, Dial: w.net.DialContext("client-" + crashSites[n])},
	})
	if err != nil {
		return nil, nil, err
	}
	spec := host.Spec[store.Message]{ID: protocol.ID(70000 + n), Codec: replicatedcommit.Protocol().Codec,
		App: a.receive}
	if spec.Node, err = replicatedcommit.Protocol().NewClient(w.config(spec.ID)); err != nil {
		return nil, nil, err
	}
	if a.node, err = host.Add(h, spec); err != nil {
		return nil, nil, err
	}
	return a, h, w.setPeers(h)
}

func (a *app) receive(msg store.Message) {
	switch m := msg.(type) {
	case store.Got:
		a.calls.Answer(m.Ref, m)
	case store.Done:
		a.calls.Answer(m.Ref, m)
	}
}

// call asks the node and waits for the answer, which always comes.
func (a *app) call(
	ctx context.Context, ask func(ref uint64) store.Message,
) (store.Message, error) {
	c := make(chan store.Message, 1)
	ref, _ := a.calls.Add(func(m store.Message) { c <- m }) // the table has no bound, and is never closed
	if err := a.node.Deliver(ctx, ask(ref)); err != nil {
		return nil, err
	}
	select {
	case m := <-c:
		return m, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// drive makes random transactions until it is told to stop.
func (a *app) drive(ctx context.Context, stop <-chan struct{}) error {
	for {
		select {
		case <-stop:
			return nil
		case <-time.After(time.Duration(a.rand.IntN(30)) * time.Millisecond):
		}
		keys := a.rand.Perm(crashKeys)[:1+a.rand.IntN(3)]
		readOnly := a.rand.IntN(4) == 0
		var reads, writes []int
		for _, k := range keys {
			if readOnly || a.rand.IntN(3) > 0 {
				reads = append(reads, k)
			}
			if !readOnly && a.rand.IntN(3) > 0 {
				writes = append(writes, k)
			}
		}
		var priority store.Priority
		for range 4 {
			done, err := a.attempt(ctx, priority, reads, writes)
			if err != nil {
				return err
			}
			if done.Outcome.Verdict != store.Aborted {
				break
			}
			priority = done.Txn.Priority
		}
	}
}

// readAll is a transaction that reads all keys, and has to commit.
func (a *app) readAll(ctx context.Context) error {
	var all []int
	for k := range crashKeys {
		all = append(all, k)
	}
	var d store.Done
	for range 100 {
		var err error
		if d, err = a.attempt(ctx, store.Priority{}, all, nil); err != nil || d.Outcome.Verdict == store.Committed {
			return err
		}
	}
	return fmt.Errorf("a transaction that reads all keys ends with %+v", d.Outcome)
}

// attempt makes one transaction, which is one of the history's, and stays with it until its outcome
// is known.
func (a *app) attempt(ctx context.Context, priority store.Priority, reads, writes []int) (d store.Done, err error) {
	number, log := a.w.log.begin(a.n)
	key := func(k int) store.Key { return store.Key(fmt.Sprintf("k%d", k)) }
	var buffer store.Buffer
	for _, k := range reads {
		m, err := a.call(ctx, func(ref uint64) store.Message {
			return store.Get{Ref: ref, Key: key(k), Priority: priority}
		})
		if err != nil {
			return d, err
		}
		got := m.(store.Got)
		if !got.OK {
			log.Abort(a.w.log.now())
			return store.Done{Outcome: store.Outcome{Verdict: store.Aborted}}, nil
		}
		buffer.Saw(key(k), got.Value)
		log.Read(string(key(k)), shown(got.Value))
	}
	for _, k := range writes {
		if a.rand.IntN(5) == 0 {
			buffer.Delete(key(k))
		} else {
			buffer.Put(key(k), fmt.Appendf(nil, "%d.%d", number, k))
		}
	}
	r, w := buffer.Accesses()
	m, err := a.call(ctx, func(ref uint64) store.Message {
		return store.Submit{Ref: ref, Priority: priority, Reads: r, Writes: w}
	})
	if err != nil {
		return d, err
	}
	d = m.(store.Done)
	for _, w := range d.Txn.Writes {
		log.Write(string(w.Key), shown(store.Value{Version: d.Txn.ID, Present: !w.Delete, Bytes: w.Bytes}))
	}
	for range 100 {
		switch d.Outcome.Verdict {
		case store.Committed:
			a.w.log.commit(d.Txn)
			log.Commit(a.w.log.now())
			return d, nil
		case store.Aborted:
			log.Abort(a.w.log.now())
			return d, nil
		case store.Rejected:
			return d, fmt.Errorf("%v was rejected: %s", d.Txn, d.Outcome.Detail)
		}
		m, err := a.call(ctx, func(ref uint64) store.Message { return store.Query{Ref: ref, Txn: d.Txn} })
		if err != nil {
			return d, err
		}
		d = m.(store.Done)
	}
	return d, errors.New("the outcome of " + d.Txn.ID.String() + " stays unknown")
}
