package machine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/foresay/foresay/store"
	"github.com/foresay/foresay/store/carousel"
	"github.com/foresay/foresay/store/client"
	"github.com/foresay/foresay/store/layered"
	"github.com/foresay/foresay/store/replicatedcommit"
	"github.com/foresay/foresay/store/tapir"
	"github.com/foresay/foresay/wan"
)

// TestKeys: how long a transaction at site a takes that reads and writes two keys, one after the
// other, whose partitions are led at sites b and c. Sites are 100 ms from each other. Carousel
// prepares declared keys while it reads them; other protocols read them at once. A hint that is
// incomplete saves less, and one that is wrong nothing; the transaction is committed all the same,
// and nothing of it is left.
func TestKeys(t *testing.T) {
	fast, err := carousel.Protocol().In("fast")
	if err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		protocol store.Protocol
		mode     client.Mode
		// without keys; with all; with one of them only; with others
		none, right, incomplete, wrong int
	}{
		{carousel.Protocol(), client.GRPC, 400, 200, 400, 400},
		{carousel.Protocol(), client.Spec, 300, 200, 300, 300},
		{carousel.Protocol(), client.Predicated, 200, 200, 200, 200},
		{fast, client.GRPC, 300, 100, 200, 300},
		{fast, client.Spec, 200, 100, 200, 200},
		{layered.Protocol(), client.GRPC, 600, 500, 600, 600},
		{tapir.Protocol(), client.GRPC, 100, 100, 100, 100}, // it reads from the nearest site
		{replicatedcommit.Protocol(), client.GRPC, 300, 200, 300, 300},
	} {
		synctest.Test(t, func(t *testing.T) {
			ctx, c, fresh := threeSites(t, tc.protocol, tc.mode)
			play := func(x, y string, opts ...client.Option) time.Duration {
				time.Sleep(3 * time.Second)
				start := time.Now()
				if err := c.Txn(ctx, func(ctx context.Context, tx *client.Tx) error {
					for _, k := range []string{x, y} {
						v, _, err := tx.Get(ctx, k)
						if err != nil {
							return err
						}
						if err := tx.Put(k, append(v, '+')); err != nil {
							return err
						}
					}
					return nil
				}, opts...); err != nil {
					t.Errorf("%s, %v: %v", tc.protocol.Name, tc.mode, err)
				}
				return time.Since(start)
			}
			play(fresh(0), fresh(1)) // connects
			both := func(keys ...string) client.Option { return client.Keys(keys, keys) }
			x := func() (string, string) { return fresh(1), fresh(2) }
			k1, k2 := x()
			is := takes(t, fmt.Sprintf("%s, %v", tc.protocol.Name, tc.mode))
			is("no keys", play(k1, k2), tc.none)
			k1, k2 = x()
			is("its keys", play(k1, k2, both(k2, k1)), tc.right)
			k1, k2 = x()
			is("one of its keys", play(k1, k2, both(k1)), tc.incomplete)
			k1, k2 = x()
			other1, other2 := x()
			is("other keys", play(k1, k2, both(other1, other2)), tc.wrong)
			is("keys that another one had declared", play(other1, other2, both(other1, other2)), tc.right)
		})
	}
}

// threeSites starts a store with sites a, b and c, which are 100 ms from each other, and returns a
// client at site a, and a function that returns a key of a partition that nothing has used.
func threeSites(
	t *testing.T, p store.Protocol, mode client.Mode,
) (ctx context.Context, c *client.Client, fresh func(shard int) string) {
	w := newWorld(t, wan.Uniform(100*time.Millisecond, "a", "b", "c"), func(w *world) { w.protocol = p })
	t.Cleanup(w.close)
	c = w.client("a", mode)
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	t.Cleanup(cancel)
	return ctx, c, freshKeys()
}

// put writes a value under keys.
func put(ctx context.Context, t *testing.T, c *client.Client, value string, keys ...string) {
	t.Helper()
	if err := c.Txn(ctx, func(ctx context.Context, tx *client.Tx) error {
		for _, k := range keys {
			if err := tx.Put(k, []byte(value)); err != nil {
				return err
			}
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
}

// freshKeys returns a function that returns a key of a partition that nothing has used.
func freshKeys() func(shard int) string {
	n := 0
	return func(shard int) string {
		for {
			n++
			if k := fmt.Sprint("k", n); store.ShardOf(store.Key(k), 3) == shard {
				return k
			}
		}
	}
}

// takes returns a function that compares how long a transaction took with milliseconds.
func takes(t *testing.T, of string) func(what string, got time.Duration, want int) {
	return func(what string, got time.Duration, want int) {
		if least := time.Duration(want) * time.Millisecond; got < least || got > least+2*time.Millisecond {
			t.Errorf("%s, %s: a transaction takes %v, want %v", of, what, got, least)
		}
	}
}

// TestReadOnlyKeys is TestKeys of a transaction that only reads. Carousel reads declared keys as of
// one time, in one round trip to their leaders, and there is nothing to commit. One that reads
// another key after all, or writes, is as long as if it had declared nothing, or shorter.
func TestReadOnlyKeys(t *testing.T) {
	fast, err := carousel.Protocol().In("fast")
	if err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		protocol store.Protocol
		mode     client.Mode
		// without keys; with all; with one of them only; with others; with all, and it writes one
		none, right, incomplete, wrong, writes int
	}{
		{carousel.Protocol(), client.GRPC, 300, 100, 300, 300, 300},
		{carousel.Protocol(), client.Off, 300, 100, 300, 300, 300},
		{carousel.Protocol(), client.Spec, 200, 100, 200, 200, 300},
		{carousel.Protocol(), client.Predicated, 100, 100, 200, 100, 300},
		{fast, client.GRPC, 300, 100, 300, 300, 200},
		{fast, client.Spec, 200, 100, 200, 200, 200},
		{layered.Protocol(), client.GRPC, 400, 300, 400, 400, 500},
		{tapir.Protocol(), client.GRPC, 100, 100, 100, 100, 100}, // it reads from the nearest site
		{replicatedcommit.Protocol(), client.GRPC, 300, 200, 300, 300, 200},
	} {
		synctest.Test(t, func(t *testing.T) {
			ctx, c, fresh := threeSites(t, tc.protocol, tc.mode)
			is := takes(t, fmt.Sprintf("%s, %v", tc.protocol.Name, tc.mode))
			n := 0
			// play makes a transaction of two keys, which were written before.
			play := func(what string, want int, keys func(x, y string) []string, write bool) {
				n++
				x, y, value := fresh(1), fresh(2), fmt.Sprint("value ", n)
				put(ctx, t, c, value, x, y)
				time.Sleep(3 * time.Second)
				var opts []client.Option
				if declared := keys(x, y); declared != nil {
					opts = append(opts, client.Keys(declared, nil))
				}
				start := time.Now()
				got, err := client.Run(ctx, c, func(ctx context.Context, tx *client.Tx) (got []string, err error) {
					for _, k := range []string{x, y} {
						v, _, err := tx.Get(ctx, k)
						if err != nil {
							return nil, err
						}
						got = append(got, string(v))
					}
					if write {
						return got, tx.Put(y, []byte("more"))
					}
					return got, nil
				}, opts...)
				is(what, time.Since(start), want)
				if err != nil || !slices.Equal(got, []string{value, value}) {
					t.Errorf("%s, %v, %s: it read %q, want %q twice: %v", tc.protocol.Name, tc.mode, what, got, value, err)
				}
				if !write {
					return
				}
				if v, err := client.Run(ctx, c, func(ctx context.Context, tx *client.Tx) (string, error) {
					v, _, err := tx.Get(ctx, y)
					return string(v), err
				}); err != nil || v != "more" {
					t.Errorf("%s, %v, %s: what it wrote is %q: %v", tc.protocol.Name, tc.mode, what, v, err)
				}
			}
			// This connects, and has leaders put ceilings on record, as somebody reads at timestamps.
			if _, err := client.Run(ctx, c, func(ctx context.Context, tx *client.Tx) (ok bool, err error) {
				for _, k := range []string{fresh(0), fresh(1), fresh(2)} {
					if _, ok, err = tx.Get(ctx, k); err != nil {
						return ok, err
					}
				}
				return ok, nil
			}); err != nil {
				t.Fatal(err)
			}
			play("no keys", tc.none, func(x, y string) []string { return nil }, false)
			play("its keys", tc.right, func(x, y string) []string { return []string{y, x} }, false)
			play("one of its keys", tc.incomplete, func(x, y string) []string { return []string{x} }, false)
			play("other keys", tc.wrong, func(x, y string) []string { return []string{fresh(1), fresh(2)} }, false)
			play("it writes after all", tc.writes, func(x, y string) []string { return []string{x, y} }, true)
		})
	}
}

// TestSnapshotIsWhole: what is read beside the declared keys is validated with them. Another
// transaction writes two keys between the reads of one that has declared the first of them only.
func TestSnapshotIsWhole(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, wan.Uniform(100*time.Millisecond, "a", "b", "c"),
			func(w *world) { w.protocol = carousel.Protocol() })
		defer w.close()
		reader, writer := w.client("a", client.GRPC), w.client("b", client.GRPC)
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		fresh := freshKeys()
		keys := []string{fresh(1), fresh(2)}
		write := func(value string) { put(ctx, t, writer, value, keys...) }
		write("old")
		attempts := 0
		got, err := client.Run(ctx, reader, func(ctx context.Context, tx *client.Tx) (got []string, err error) {
			for i, k := range keys {
				v, _, err := tx.Get(ctx, k)
				if err != nil {
					return nil, err
				}
				if got = append(got, string(v)); i == 0 && attempts == 0 {
					write("new")
				}
			}
			attempts++
			return got, nil
		}, client.Keys(keys[:1], nil))
		if want := []string{"new", "new"}; err != nil || !slices.Equal(got, want) || attempts != 2 {
			t.Errorf("in %d attempts it read %q, want %q: %v", attempts, got, want, err)
		}
	})
}

// TestLevels: how long a transaction at site a takes that reads two keys, where the clock of a's
// machine is 300 ms behind the others, which is more than it may be. A strict one does not rely on
// it and has the leaders' groups say that what it has read is still so; a serializable one takes
// its timestamp from it, and may see what was there at that time. With clocks in order there is no
// difference.
func TestLevels(t *testing.T) {
	const off = 300 * time.Millisecond
	for _, tc := range []struct {
		behind               time.Duration
		declared             bool
		strict, serializable int
		stale                bool // of the serializable one
	}{
		{0, true, 100, 100, false},
		{0, false, 300, 300, false},
		{off, true, 300, 100, true},
		{off, false, 400, 300, false}, // what it has read is not what was there then, so it is tried again
	} {
		synctest.Test(t, func(t *testing.T) {
			w := newIdleWorld(t, wan.Uniform(100*time.Millisecond, "a", "b", "c"))
			w.protocol = carousel.Protocol()
			for i := range w.sites {
				w.start(i, func(cfg *Config) {
					cfg.RoundTrip = 100 * time.Millisecond
					if i == 0 {
						cfg.Clock = func() time.Duration { return time.Duration(time.Now().UnixNano()) - tc.behind }
					}
				})
			}
			defer w.close()
			reader, writer := w.client("a", client.GRPC), w.client("b", client.GRPC)
			ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
			defer cancel()
			fresh := freshKeys()
			keys := []string{fresh(1), fresh(2)}
			write := func(value string) { put(ctx, t, writer, value, keys...) }
			read := func(level client.Level) (got []string, took time.Duration) {
				opts := []client.Option{level}
				if tc.declared {
					opts = append(opts, client.Keys(keys, nil))
				}
				start := time.Now()
				got, err := client.Run(ctx, reader, func(ctx context.Context, tx *client.Tx) (got []string, err error) {
					for _, k := range keys {
						v, _, err := tx.Get(ctx, k)
						if err != nil {
							return nil, err
						}
						got = append(got, string(v))
					}
					return got, nil
				}, opts...)
				if err != nil {
					t.Fatal(err)
				}
				return got, time.Since(start)
			}
			is := takes(t, fmt.Sprintf("%v behind, declared: %v", tc.behind, tc.declared))
			write("old")
			read(client.Strict) // connects, and has ceilings put on record
			read(client.Serializable)
			time.Sleep(2 * time.Second)
			_, took := read(client.Strict)
			is("strict", took, tc.strict)
			_, took = read(client.Serializable)
			is("serializable", took, tc.serializable)
			write("new")
			if got, _ := read(client.Strict); !slices.Equal(got, []string{"new", "new"}) {
				t.Errorf("%v behind, declared: %v: a strict transaction has read %q", tc.behind, tc.declared, got)
			}
			write("newest")
			want := []string{"newest", "newest"}
			if tc.stale {
				want = []string{"new", "new"}
			}
			if got, _ := read(client.Serializable); !slices.Equal(got, want) {
				t.Errorf("%v behind, declared: %v: a serializable transaction has read %q, want %q", tc.behind, tc.declared, got,
					want)
			}
		})
	}
}

// TestStrictOfTapir: a store whose transactions are serializable only does not begin one that asks
// for more.
func TestStrictOfTapir(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, wan.Uniform(100*time.Millisecond, "a", "b", "c"), func(w *world) { w.protocol = tapir.Protocol() })
		defer w.close()
		c := w.client("a", client.GRPC)
		put := func(_ context.Context, tx *client.Tx) error { return tx.Put("k", nil) }
		start := time.Now()
		err := c.Txn(t.Context(), put, client.Strict)
		if r, ok := errors.AsType[*client.RejectedError](err); !ok || time.Since(start) > 0 {
			t.Errorf("after %v the error is %v", time.Since(start), r)
		}
		if err := c.Txn(t.Context(), put, client.Serializable); err != nil {
			t.Error(err)
		}
	})
}
