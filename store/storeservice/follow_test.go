package storeservice

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/foresay/foresay/store"
	"github.com/foresay/foresay/store/client"
	"github.com/foresay/foresay/store/storeconfig"
	"github.com/foresay/foresay/wan"
)

// online runs a machine through epochs until the function that it returns is called.
func (w *world) online(name string) (stop func()) {
	w.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	open := func(s *storeconfig.Store) (*Machine, error) {
		cfg, err := storeconfig.ReadMachine(filepath.Join(w.dir, storeconfig.MachineFile(name)))
		if err != nil {
			return nil, err
		}
		if s != nil {
			cfg.Store = s
		}
		peers, err := w.net.Listen(wan.Site(name))
		if err != nil {
			return nil, err
		}
		clients, err := w.net.Listen(wan.Site(name))
		if err != nil {
			return nil, err
		}
		return OpenMachine(cfg, MachineOptions{Peers: peers, Client: clients, Dial: w.net.DialContext(wan.Site(name)),
			Online: true})
	}
	m, err := open(nil)
	if err != nil {
		w.Fatal(err)
	}
	go func() {
		for {
			err := m.Run(ctx)
			var next *storeconfig.Store
			if err == nil {
				next, err = m.Next()
			}
			if err != nil || next == nil || ctx.Err() != nil {
				done <- err
				return
			}
			if m, err = open(next); err != nil {
				done <- err
				return
			}
		}
	}()
	synctest.Wait()
	return func() {
		cancel()
		if err := <-done; err != nil && !strings.Contains(err.Error(), "must not take part any more") &&
			!strings.Contains(err.Error(), "is not of the store any more") {
			w.Errorf("machine %s ended with %v", name, err)
		}
	}
}

// TestClientsFollow: clients with the file of an earlier epoch go on in a later one, with what they
// have under way: none of their transactions fails, and each counts once.
func TestClientsFollow(t *testing.T) {
	inWorld(t, func(w *world) {
		for _, name := range []string{"a", "b", "c"} {
			defer w.online(name)()
		}
		cfg, err := storeconfig.ReadClient(filepath.Join(w.dir, storeconfig.ClientFile), "")
		if err != nil {
			t.Fatal(err)
		}
		var log bytes.Buffer
		dial := func() *Client {
			c, err := Dial(cfg, ClientOptions{Dial: w.net.DialContext("z"), Logger: slog.New(slog.NewTextHandler(&log, nil))})
			if err != nil {
				t.Fatal(err)
			}
			return c
		}
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		conn := dial()
		defer conn.Close()
		w.ready(ctx, conn)
		load, end := context.WithCancel(ctx)
		var clients sync.WaitGroup
		counts := make([]int, 2)
		for i := range counts {
			clients.Go(func() { counts[i] = w.count(load, conn, "n"+strconv.Itoa(i), false) })
		}
		time.Sleep(time.Second)

		operator := dial()
		defer operator.Close()
		next, err := cfg.Store.Fenced("c")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := operator.Change(ctx, next, "", func(string, ...any) {}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		end()
		clients.Wait()
		for range 5 {
			looker := dial() // which begins with the old file, and is told of the machines as they are
			for _, s := range looker.Status(ctx) {
				if want := map[bool]string{true: Fenced, false: Admitted}[s.Site == "c"]; s.State != want {
					t.Errorf("at the first look machine %s is %s (%s), want %s", s.Machine, s.State, s.Error, want)
				}
			}
			looker.Close()
		}
		late := dial() // which begins with the old file
		defer late.Close()
		c, err := late.Transactions(client.Spec, 0)
		if err != nil {
			t.Fatal(err)
		}
		for i, n := range counts {
			if v, err := get(ctx, c, "n"+strconv.Itoa(i)); err != nil || v != strconv.Itoa(n) || n < 10 {
				t.Errorf("%d changes of a counter were acknowledged, and it is at %q (%v)", n, v, err)
			}
		}
		if n := strings.Count(log.String(), "goes on in a later epoch"); n != 7 || conn.newest().store.Epoch != 2 {
			t.Errorf("seven clients say %d times that they go on in a later epoch:\n%s", n, &log)
		}
	})
}

// TestIdleClientsFollow: a client that makes no calls while all sites are replaced one after the
// other goes on when no machine of its file is there any more, whether it has made some before or
// not. One that is closed asks nobody.
func TestIdleClientsFollow(t *testing.T) {
	inWorld(t, func(w *world) {
		stop := map[string]func(){}
		for _, name := range []string{"a", "b", "c"} {
			stop[name] = w.online(name)
		}
		defer func() {
			for _, end := range stop {
				end()
			}
		}()
		cfg, err := storeconfig.ReadClient(filepath.Join(w.dir, storeconfig.ClientFile), "")
		if err != nil {
			t.Fatal(err)
		}
		var idle [2]*client.Client
		for i := range idle {
			conn, err := Dial(cfg, ClientOptions{Dial: w.net.DialContext("z")})
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			if idle[i], err = conn.Transactions(client.Spec, 0); err != nil {
				t.Fatal(err)
			}
		}
		w.client(func(ctx context.Context, operator *Client, _ *client.Client) {
			w.ready(ctx, operator)
			if err := put(ctx, idle[0], "k", "v"); err != nil {
				t.Fatal(err)
			}
			for _, r := range []struct{ site, by string }{{"a", "d"}, {"b", "e"}, {"c", "f"}} {
				stop[r.by] = w.replace(r.site, "", r.by)
				stop[r.site]()
				delete(stop, r.site)
				time.Sleep(followEvery)
			}
		})
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		for i, c := range idle {
			began := time.Now()
			if v, err := get(ctx, c, "k"); err != nil || v != "v" {
				t.Errorf("client %d, which was idle, reads %q, %v", i, v, err)
			}
			if took := time.Since(began); took > time.Second {
				t.Errorf("client %d took %v", i, took)
			}
		}
	})
}

// count counts in a key until ctx ends, and returns how far it came. What its end interrupts is
// found out; and so is what is blocked by sites that are away, if that may happen.
func (w *world) count(ctx context.Context, conn *Client, key string, mayBlock bool) int {
	c, err := conn.Transactions(client.Spec, 0)
	if err != nil {
		w.Error(err)
		return 0
	}
	for n := 0; ; {
		err := c.Txn(ctx, func(ctx context.Context, tx *client.Tx) error {
			if _, _, err := tx.Get(ctx, key); err != nil {
				return err
			}
			return tx.Put(key, []byte(strconv.Itoa(n+1)))
		})
		blocked, isBlocked := errors.AsType[*client.BlockedError](err)
		unknown, isUnknown := errors.AsType[*client.UnknownError](err)
		switch {
		case err == nil, isBlocked && mayBlock && w.committed(conn, blocked.Txn):
			n++
		case isBlocked && mayBlock:
		case ctx.Err() == nil:
			w.Errorf("after %d changes: %v", n, err)
			return n
		case isUnknown && w.committed(conn, unknown.Txn):
			return n + 1
		default:
			return n
		}
	}
}

// committed waits until it is known whether a transaction has committed.
func (w *world) committed(conn *Client, txn store.Txn) bool {
	for {
		switch conn.Resolve(context.Background(), txn).Outcome.Verdict {
		case store.Committed:
			return true
		case store.Aborted:
			return false
		}
		time.Sleep(roundTrip)
	}
}

// TestOperatorIsKilled: the process that has a site leave may end after each thing that it does.
// Whoever runs it again completes what was begun.
func TestOperatorIsKilled(t *testing.T) {
	steps := 1
	for killed := 0; killed < steps; killed++ {
		inWorld(t, func(w *world) {
			for _, name := range []string{"a", "b", "c"} {
				defer w.online(name)()
			}
			w.client(func(ctx context.Context, conn *Client, c *client.Client) {
				w.ready(ctx, conn)
				if err := put(ctx, c, "k", "v"); err != nil {
					t.Fatal(err)
				}
			})
			said := 0
			w.client(func(ctx context.Context, conn *Client, _ *client.Client) {
				ctx, kill := context.WithCancel(ctx)
				defer kill()
				next, err := conn.newest().store.Fenced("c")
				if err != nil {
					t.Fatal(err)
				}
				_, err = conn.Change(ctx, next, "", func(string, ...any) {
					if said++; said == killed {
						kill()
					}
				})
				if killed == 0 && err != nil {
					t.Error(err)
				}
			})
			if killed == 0 {
				steps = said + 1
			}
			w.client(func(ctx context.Context, conn *Client, c *client.Client) {
				next, err := conn.newest().store.Fenced("c")
				if err != nil {
					t.Fatal(err)
				}
				if s, err := conn.Change(ctx, next, "", func(string, ...any) {}); err != nil || s.Epoch != 2 ||
					!s.Site("c").Fenced {
					t.Errorf("killed after %d steps, and run again: %+v, %v", killed, s, err)
				}
				if v, err := get(ctx, c, "k"); err != nil || v != "v" || conn.newest().store.Epoch != 2 {
					t.Errorf("killed after %d steps: k is %q, %v", killed, v, err)
				}
			})
		})
	}
	if steps < 5 {
		t.Errorf("there are %d steps", steps)
	}
}
