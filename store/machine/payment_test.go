package machine

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/foresay/foresay/predict"
	"github.com/foresay/foresay/store"
	"github.com/foresay/foresay/store/carousel"
	"github.com/foresay/foresay/store/client"
	"github.com/foresay/foresay/store/front"
	"github.com/foresay/foresay/wan"
)

// TPC-C's payment looks half of its customers up by their last name: which customer it reads and
// writes depends on what an index says. Nobody can declare that key; here nobody has to.

// A payment is what one comes to.
type payment struct{ customer, name string }

// number reads a number.
func number(ctx context.Context, tx *client.Tx, key string) (int, error) {
	v, ok, err := tx.Get(ctx, key)
	if err != nil || !ok {
		return 0, err
	}
	return strconv.Atoi(string(v))
}

// add adds to a number.
func add(ctx context.Context, tx *client.Tx, key string, amount int) error {
	n, err := number(ctx, tx, key)
	if err != nil {
		return err
	}
	return tx.Put(key, strconv.AppendInt(nil, int64(n+amount), 10))
}

// customers returns those of a last name, in order.
func customers(ctx context.Context, tx *client.Tx, name string) ([]string, error) {
	v, ok, err := tx.Get(ctx, "index/"+name)
	if err != nil || !ok || len(v) == 0 {
		return nil, err
	}
	return strings.Split(string(v), " "), nil
}

// pay is a payment by the customer in the middle of those of a last name.
func pay(name string, amount int) func(context.Context, *client.Tx) (payment, error) {
	return func(ctx context.Context, tx *client.Tx) (p payment, err error) {
		for _, key := range []string{"warehouse/ytd", "district/ytd"} {
			if err := add(ctx, tx, key, amount); err != nil {
				return p, err
			}
		}
		all, err := customers(ctx, tx, name)
		if err != nil {
			return p, err
		}
		p.customer = all[len(all)/2]
		v, _, err := tx.Get(ctx, "name/"+p.customer)
		if err != nil {
			return p, err
		}
		p.name = string(v)
		return p, add(ctx, tx, "paid/"+p.customer, amount)
	}
}

// rename gives the first customer of one name another one.
func rename(from, to string) func(context.Context, *client.Tx) error {
	return func(ctx context.Context, tx *client.Tx) error {
		old, err := customers(ctx, tx, from)
		if err != nil || len(old) < 2 {
			return err
		}
		all, err := customers(ctx, tx, to)
		if err != nil {
			return err
		}
		moved := old[0]
		all = append(slices.Clone(all), moved)
		slices.Sort(all)
		for key, value := range map[string]string{"index/" + from: strings.Join(old[1:], " "),
			"index/" + to: strings.Join(all, " "), "name/" + moved: to} {
			if err := tx.Put(key, []byte(value)); err != nil {
				return err
			}
		}
		return nil
	}
}

// TestPaymentByLastName: a payment takes one transaction, and as long as one whose keys are known,
// whether what it reads is guessed by a cache or by the nearest copy. While customers change their
// names, no payment that is committed is one by a customer of another name, and none gets lost.
func TestPaymentByLastName(t *testing.T) {
	direct, err := carousel.Protocol().In("direct")
	if err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, wan.Uniform(100*time.Millisecond, "a", "b", "c"), func(w *world) { w.protocol = direct })
		defer w.close()
		ctx, cancel := context.WithTimeout(context.Background(), time.Hour)
		defer cancel()
		var attempts atomic.Int64
		connect := func(site wan.Site) *client.Client {
			return w.client(site, client.Predicated, func(cfg *client.Config) {
				cfg.Attempted = func(client.Attempted) { attempts.Add(1) }
				cache, err := predict.NewLast(predict.LastConfig[string]{Key: func(k string) string { return k }, Public: true})
				if err != nil {
					t.Error(err)
				}
				cfg.Predictor, cfg.PrepareEarly = cache, true
			})
		}
		a, b := connect("a"), connect("b")
		time.Sleep(3 * time.Second)
		if err := b.Txn(ctx, func(_ context.Context, tx *client.Tx) error {
			for i := 1; i <= 7; i++ {
				name := map[bool]string{true: "BAR", false: "OUGHT"}[i <= 4]
				if err := tx.Put(fmt.Sprint("name/", i), []byte(name)); err != nil {
					return err
				}
			}
			if err := tx.Put("index/BAR", []byte("1 2 3 4")); err != nil {
				return err
			}
			return tx.Put("index/OUGHT", []byte("5 6 7"))
		}); err != nil {
			t.Fatal(err)
		}
		if _, err := client.Run(ctx, a, func(ctx context.Context, tx *client.Tx) (int, error) {
			return number(ctx, tx, "else") // connects
		}); err != nil {
			t.Fatal(err)
		}
		paid := 0
		one := func(what, want string, most time.Duration) {
			t.Helper()
			time.Sleep(3 * time.Second)
			before, start := attempts.Load(), time.Now()
			var traces []client.Trace
			traced := client.WithTrace(ctx, func(tr *client.Trace) { traces = append(traces, *tr) })
			got, err := client.Run(traced, a, pay("BAR", 1))
			paid++
			if took := time.Since(start); err != nil || got != (payment{want, "BAR"}) || took > most {
				t.Errorf("%s: %+v is committed after %v and %d attempts (%v), want one by %s after %v; traces: %+v", what, got,
					took, attempts.Load()-before, err, want, most, traces)
			}
		}
		one("the nearest copy guesses", "3", 110*time.Millisecond)
		one("the cache guesses", "3", 110*time.Millisecond)
		if err := b.Txn(ctx, rename("BAR", "OUGHT")); err != nil { // 2 3 4 are left
			t.Fatal(err)
		}
		if err := b.Txn(ctx, rename("BAR", "OUGHT")); err != nil { // 3 4
			t.Fatal(err)
		}
		one("the cache is wrong", "4", time.Second)
		one("the cache knows better", "4", 110*time.Millisecond)

		var all sync.WaitGroup
		var count atomic.Int64
		for i, c := range []*client.Client{a, b, connect("c")} {
			all.Go(func() {
				for n := range 3 {
					names := []string{"BAR", "OUGHT"}
					if n == i {
						if err := c.Txn(ctx, rename(names[n%2], names[1-n%2])); err != nil {
							t.Error(err)
						}
						continue
					}
					got, err := client.Run(ctx, c, pay(names[n%2], 1))
					if err != nil || got.name != names[n%2] {
						t.Errorf("a payment by %s is one by %+v (%v)", names[n%2], got, err)
					}
					count.Add(1)
				}
			})
		}
		all.Wait()
		paid += int(count.Load())
		got, err := client.Run(ctx, a, func(ctx context.Context, tx *client.Tx) (sums [2]int, err error) {
			if sums[0], err = number(ctx, tx, "warehouse/ytd"); err != nil {
				return sums, err
			}
			for i := 1; i <= 7; i++ {
				n, err := number(ctx, tx, fmt.Sprint("paid/", i))
				if err != nil {
					return sums, err
				}
				sums[1] += n
			}
			return sums, nil
		})
		if want := [2]int{paid, paid}; err != nil || got != want {
			t.Errorf("the warehouse has got and the customers have paid %v (%v), want %v", got, err, want)
		}
	})
}

// TestNothingIsPreparedAfterTheEnd: a goroutine that a transaction's function has left behind may
// reach keys when the transaction is over. Nobody would end what is prepared for it then.
func TestNothingIsPreparedAfterTheEnd(t *testing.T) {
	direct, err := carousel.Protocol().In("direct")
	if err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, wan.Uniform(100*time.Millisecond, "a", "b", "c"), func(w *world) { w.protocol = direct })
		defer w.close()
		ctx, cancel := context.WithTimeout(context.Background(), time.Hour)
		defer cancel()
		var backend client.Backend
		c := w.client("a", client.GRPC, func(cfg *client.Config) { backend = cfg.Backend })
		if err := c.Txn(ctx, func(ctx context.Context, tx *client.Tx) error { return add(ctx, tx, "k", 1) }); err != nil {
			t.Fatal(err)
		}
		for _, late := range []bool{false, true} {
			a := backend.Begin(client.Beginning{Mode: client.Predicated})
			if late {
				a.End()
			}
			var took atomic.Bool
			a.(client.Preparer).Prepare(ctx, []store.Key{"k"}, []store.Key{"k"}, func(map[store.Key]client.Answer) {
				took.Store(true)
			})
			time.Sleep(2 * time.Second)
			if took.Load() == late {
				t.Errorf("ended before: %v; its key is prepared: %v", late, took.Load())
			}
			a.End()
			time.Sleep(2 * time.Second)
			start := time.Now()
			err := c.Txn(ctx, func(ctx context.Context, tx *client.Tx) error { return add(ctx, tx, "k", 1) })
			if d := time.Since(start); err != nil || d > 250*time.Millisecond {
				t.Errorf("the next one takes %v (%v)", d, err)
			}
		}
	})
}

// TestCloseFreesWhatIsPrepared: a client that is closed while a transaction goes on leaves nothing
// locked, whether its keys were declared or reached.
func TestCloseFreesWhatIsPrepared(t *testing.T) {
	for _, declared := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t, wan.Uniform(100*time.Millisecond, "a", "b", "c"), func(w *world) {
				w.protocol = carousel.Protocol()
			})
			defer w.close()
			ctx, cancel := context.WithTimeout(context.Background(), time.Hour)
			defer cancel()
			write := func(c *client.Client) time.Duration {
				start := time.Now()
				if err := c.Txn(ctx, func(_ context.Context, tx *client.Tx) error { return tx.Put("k", []byte("v")) }); err != nil {
					t.Error(err)
				}
				return time.Since(start)
			}
			other := w.client("a", client.GRPC)
			write(other) // connects
			usual := write(other)
			var backend client.Backend
			c := w.client("a", client.GRPC, func(cfg *client.Config) { backend = cfg.Backend })
			write(c)
			time.Sleep(2 * time.Second)
			keys := []store.Key{"k"}
			if declared {
				backend.Begin(client.Beginning{Mode: client.GRPC, Reads: keys, Writes: keys})
			} else {
				backend.Begin(client.Beginning{Mode: client.Predicated}).(client.Preparer).Prepare(ctx, keys, keys,
					func(map[store.Key]client.Answer) {})
			}
			time.Sleep(2 * time.Second)
			start := time.Now()
			backend.(*front.Conn).Close()
			if took := time.Since(start); took > 50*time.Millisecond {
				t.Errorf("declared %v: to close takes %v", declared, took)
			}
			time.Sleep(300 * time.Millisecond) // the abort is on record, at its coordinator and then at the partition
			if took := write(other); took > usual+50*time.Millisecond {
				t.Errorf("declared %v: the next transaction on the key takes %v, want %v", declared, took, usual)
			}
		})
	}
}
