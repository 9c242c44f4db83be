package storeservice

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/foresay/foresay/history"
	"github.com/foresay/foresay/internal/randtest"
	"github.com/foresay/foresay/internal/seed"
	"github.com/foresay/foresay/store"
	"github.com/foresay/foresay/store/client"
	"github.com/foresay/foresay/store/storeconfig"
	"github.com/foresay/foresay/wan"
)

// TestRandomReplacements: clients read and append to lists while a site leaves, or is lost, and
// another one takes its place. What they saw is strictly serializable, and no acknowledged append
// is lost.
func TestRandomReplacements(t *testing.T) {
	lost := false
	for seed := range randtest.Seeds(t, seed.Count(t, 10)) {
		inWorld(t, func(w *world) {
			for _, err := range w.replaceUnderLoad(seed, lost, nil) {
				w.Errorf("seed %d: %v", seed, err)
			}
		})
		lost = !lost
	}
}

// TestReplacementsAreJudged plants bugs in what clients are told while a site leaves: the judge of
// TestRandomReplacements notices each.
func TestReplacementsAreJudged(t *testing.T) {
	for _, tc := range []struct {
		name, want string
		plant      func(client.Backend, *atomic.Bool) client.Backend
	}{
		{"a commit is acknowledged and not made", "appended 0 times",
			func(b client.Backend, leaving *atomic.Bool) client.Backend { return &forgetful{b, leaving} }},
		{"reads are not validated", "not strictly serializable", func(b client.Backend, leaving *atomic.Bool) client.Backend {
			return &unvalidated{b, leaving}
		}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			inWorld(t, func(w *world) {
				found := w.replaceUnderLoad(1, false, tc.plant)
				if !slices.ContainsFunc(found, func(err error) bool { return strings.Contains(err.Error(), tc.want) }) {
					t.Errorf("the judge finds %v, want %q", found, tc.want)
				}
			})
		})
	}
}

// forgetful acknowledges what writes, once the site has begun to leave, and forgets it.
type forgetful struct {
	client.Backend
	leaving *atomic.Bool
}

func (f *forgetful) Begin(b client.Beginning) client.Attempt {
	return &forgets{f.Backend.Begin(b), f.leaving}
}

type forgets struct {
	client.Attempt
	leaving *atomic.Bool
}

func (f *forgets) Commit(ctx context.Context, s client.Submission) client.Decision {
	if len(s.Writes) == 0 || !f.leaving.Load() {
		return f.Attempt.Commit(ctx, s)
	}
	return client.Decision{Outcome: store.Outcome{Verdict: store.Committed}}
}

// unvalidated commits what writes, once the site has begun to leave, whether or not what it read is
// still there.
type unvalidated struct {
	client.Backend
	leaving *atomic.Bool
}

func (u *unvalidated) Begin(b client.Beginning) client.Attempt {
	return &readsNothing{u.Backend.Begin(b), u.leaving}
}

type readsNothing struct {
	client.Attempt
	leaving *atomic.Bool
}

func (u *readsNothing) Commit(ctx context.Context, s client.Submission) client.Decision {
	if len(s.Writes) > 0 && u.leaving.Load() {
		s.Reads = nil
	}
	return u.Attempt.Commit(ctx, s)
}

// replaceUnderLoad returns what is wrong with what the clients saw. plant is what stands between
// them and the store, and is told when the site begins to leave; nil: nothing does.
func (w *world) replaceUnderLoad(
	seed uint64, lost bool, plant func(client.Backend, *atomic.Bool) client.Backend,
) (found []error) {
	w.Helper()
	stop := map[string]func(){}
	for _, name := range []string{"a", "b", "c"} {
		stop[name] = w.online(name)
	}
	defer func() {
		for _, end := range stop {
			end()
		}
	}()
	w.client(func(ctx context.Context, operator *Client, _ *client.Client) {
		w.ready(ctx, operator)
		l := newLists(w, seed)
		l.plant = plant
		load, end := context.WithCancel(ctx)
		var clients sync.WaitGroup
		for i := range 4 {
			from := wan.Site([]string{"z", "a", "b"}[i%3])
			clients.Go(func() { l.run(load, from, i) })
		}
		time.Sleep(time.Second)
		gone := ""
		if lost {
			gone = "c"
			stop["c"]()
			delete(stop, "c")
			time.Sleep(time.Second)
		}
		l.leaving.Store(true)
		stop["d"] = w.replace("c", gone, "d")
		time.Sleep(time.Second)
		end()
		clients.Wait()
		found = l.judge(ctx)
	})
	return found
}

// replace has a site of a new machine take another one's place, which is gone for good or leaves,
// and waits until it has copied. It returns what stops the machine.
func (w *world) replace(site, gone, by string) (stop func()) {
	w.Helper()
	w.client(func(ctx context.Context, operator *Client, _ *client.Client) {
		next, err := operator.newest().store.Replaced(site,
			storeconfig.Site{Name: by, Machines: []storeconfig.Machine{{Name: by, Peers: by + ":1", Client: by + ":2"}}})
		if err != nil {
			w.Fatal(err)
		}
		if _, err := operator.Change(ctx, next, gone, func(string, ...any) {}); err != nil {
			w.Fatal(err)
		}
		if _, err := storeconfig.Advance(w.dir, next); err != nil {
			w.Fatal(err)
		}
	})
	time.Sleep(time.Second)
	stop = w.online(by)
	w.client(func(ctx context.Context, conn *Client, _ *client.Client) { w.ready(ctx, conn) })
	return stop
}

// lists are clients' transactions on lists, whose elements are words.
type lists struct {
	*world
	rec     history.TxnRecorder
	seed    uint64
	began   time.Time
	last    atomic.Uint64
	plant   func(client.Backend, *atomic.Bool) client.Backend // nil: none
	leaving atomic.Bool                                       // a site is, or has left
}

const listKeys = 6

func newLists(w *world, seed uint64) *lists { return &lists{world: w, seed: seed, began: time.Now()} }

func listKey(i int) string { return fmt.Sprintf("list%d", i) }

// run makes transactions until ctx ends.
func (l *lists) run(ctx context.Context, from wan.Site, number int) {
	cfg, err := storeconfig.ReadClient(filepath.Join(l.dir, storeconfig.ClientFile), "")
	if err != nil {
		l.Error(err)
		return
	}
	conn, err := Dial(cfg, ClientOptions{Dial: l.net.DialContext(from)})
	if err != nil {
		l.Error(err)
		return
	}
	defer conn.Close()
	var backend client.Backend = conn
	if l.plant != nil {
		backend = l.plant(conn, &l.leaving)
	}
	c, err := client.New(client.Config{Backend: backend, Mode: client.Spec})
	if err != nil {
		l.Error(err)
		return
	}
	for chance := rand.New(rand.NewPCG(l.seed, uint64(number))); ctx.Err() == nil; {
		var keys []string
		var appends []bool
		for _, k := range chance.Perm(listKeys)[:1+chance.IntN(3)] {
			keys, appends = append(keys, listKey(k)), append(appends, chance.IntN(2) == 0)
		}
		if err := l.txn(ctx, conn, c, number, keys, appends); err != nil && ctx.Err() == nil {
			l.Errorf("client %d: %v", number, err)
			return
		}
		time.Sleep(time.Duration(chance.IntN(30)) * time.Millisecond)
	}
}

// txn reads keys, and appends to some of them. What its end interrupts, or a site that is away
// blocks, is found out.
func (l *lists) txn(
	ctx context.Context, conn *Client, c *client.Client, number int, keys []string, appends []bool,
) error {
	id := l.last.Add(1)
	log := l.rec.Begin(history.TxnID(id), history.Client(number), time.Since(l.began))
	saw, err := client.Run(ctx, c, func(ctx context.Context, tx *client.Tx) (saw []history.Access, err error) {
		for i, key := range keys {
			v, _, err := tx.Get(ctx, key)
			if err != nil {
				return nil, err
			}
			saw = append(saw, history.Access{Kind: history.ReadList, Key: key, List: strings.Fields(string(v))})
			if !appends[i] {
				continue
			}
			saw = append(saw, history.Access{Kind: history.Append, Key: key, Value: fmt.Sprint(id)})
			if err := tx.Put(key, fmt.Appendf(v[:len(v):len(v)], " %d", id)); err != nil {
				return nil, err
			}
		}
		return saw, nil
	})
	blocked, isBlocked := errors.AsType[*client.BlockedError](err)
	unknown, isUnknown := errors.AsType[*client.UnknownError](err)
	switch {
	case isBlocked && l.committed(conn, blocked.Txn), isUnknown && l.committed(conn, unknown.Txn):
		for i, key := range keys { // what it read is not known any more
			if appends[i] {
				saw = append(saw, history.Access{Kind: history.Append, Key: key, Value: fmt.Sprint(id)})
			}
		}
		err = nil
	case err != nil:
		log.Abort(time.Since(l.began))
		if isBlocked || isUnknown {
			return nil
		}
		return err
	}
	for _, a := range saw {
		log.Access(a)
	}
	log.Commit(time.Since(l.began))
	return err
}

// judge reads all lists, and returns what is wrong with the history.
func (l *lists) judge(ctx context.Context) (found []error) {
	l.Helper()
	l.client(func(_ context.Context, conn *Client, c *client.Client) {
		var keys []string
		for k := range listKeys {
			keys = append(keys, listKey(k))
		}
		if err := l.txn(ctx, conn, c, 1000, keys, make([]bool, listKeys)); err != nil {
			l.Error(err)
		}
	})
	h, err := l.rec.Transactions()
	if err != nil {
		l.Fatal(err)
	}
	report, err := history.CheckTransactions(h, history.StrictSerializable)
	if err != nil {
		l.Fatal(err)
	}
	if report.Verdict() != history.OK {
		found = append(found, fmt.Errorf("not strictly serializable: %v", report))
	}
	there := map[string]int{}
	committed := 0
	for _, a := range h.Txns[len(h.Txns)-1].Accesses {
		for _, word := range a.List {
			there[a.Key+" "+word]++
		}
	}
	for _, txn := range h.Txns {
		if txn.Outcome != history.Returned {
			continue
		}
		committed++
		for _, a := range txn.Accesses {
			if a.Kind == history.Append && there[a.Key+" "+a.Value] != 1 {
				found = append(found, fmt.Errorf("%s has what %v appended %d times", a.Key, txn.ID, there[a.Key+" "+a.Value]))
			}
		}
	}
	if l.Logf("seed %d: %d of %d transactions are committed", l.seed, committed, len(h.Txns)); committed < 30 {
		found = append(found, fmt.Errorf("only %d transactions are committed", committed))
	}
	return found
}
