package machine

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/foresay/foresay"
	"github.com/foresay/foresay/store/carousel"
	"github.com/foresay/foresay/store/client"
	"github.com/foresay/foresay/wan"
)

// TestStale: how long a transaction at site a takes that reads two keys, which are led at the other
// sites, 100 ms from it, and may see what is a few seconds old: nothing, as site a has copies. It
// sees what its own client has just written, for which leaders are asked; and it is committed as
// any other if it writes.
func TestStale(t *testing.T) {
	for _, mode := range []client.Mode{client.GRPC, client.Spec, client.Predicated} {
		for _, declared := range []bool{false, true} {
			synctest.Test(t, func(t *testing.T) { playStale(t, mode, declared) })
		}
	}
}

func playStale(t *testing.T, mode client.Mode, declared bool) {
	w := newWorld(t, wan.Uniform(100*time.Millisecond, "a", "b", "c"), func(w *world) {
		w.protocol = carousel.Protocol()
	})
	defer w.close()
	reader, writer := w.client("a", mode), w.client("b", client.GRPC)
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	fresh := freshKeys()
	keys := []string{fresh(1), fresh(2)}
	write := func(c *client.Client, value string) { put(ctx, t, c, value, keys...) }
	var trace *client.Trace
	ctx = client.WithTrace(ctx, func(tr *client.Trace) { trace = tr })
	f := func(ctx context.Context, tx *client.Tx) (got []string, err error) {
		for _, k := range keys {
			v, _, err := tx.Get(ctx, k)
			if err != nil {
				return nil, err
			}
			got = append(got, string(v))
		}
		return got, nil
	}
	read := func(what string, ctx context.Context, maxAge time.Duration, want string) (took time.Duration) {
		opts := []client.Option{client.Stale(maxAge)}
		if declared {
			opts = append(opts, client.Keys(keys, nil))
		}
		start := time.Now()
		if got, err := client.Run(ctx, reader, f, opts...); err != nil || !slices.Equal(got, []string{want, want}) {
			t.Errorf("mode %v, declared %v, %s: it reads %q, want %q twice: %v", mode, declared, what, got, want, err)
		}
		return time.Since(start)
	}
	const long = 5 * time.Second
	write(writer, "1")
	read("at first", ctx, long, "1") // from here on leaders close timestamps
	time.Sleep(time.Second)
	near := func(what, want string) {
		if took := read(what, ctx, long, want); took > 2*time.Millisecond || trace.At == 0 ||
			trace.Age <= 0 || trace.Age > time.Second || trace.Commit >= 0 || trace.Level != client.Stale(long) {
			t.Errorf("mode %v, declared %v, %s: it takes %v, and is traced as %+v", mode, declared, what, took, trace)
		}
	}
	near("while nobody writes", "1")
	write(writer, "2")
	near("when somebody else has just written", "1")
	if took := read("that may not be old", ctx, time.Millisecond, "2"); took < 90*time.Millisecond {
		t.Errorf("mode %v, declared %v: what is up to date is there after %v", mode, declared, took)
	}
	time.Sleep(time.Second)
	write(reader, "3")
	read("when it has just written", ctx, long, "3")
	time.Sleep(time.Second)
	near("later", "3")

	write(writer, "4")
	_, err := foresay.Do(ctx, func(ctx context.Context) (int, error) {
		read("in a task", ctx, long, "4")
		return 0, nil
	})
	if err != nil {
		t.Error(err)
	}
	write(writer, "5")
	runs := 0
	if _, err := client.Run(ctx, reader, func(ctx context.Context, tx *client.Tx) (int, error) {
		got, err := f(ctx, tx)
		if err != nil {
			return 0, err
		}
		runs = tx.Attempt()
		return 0, tx.Put(keys[0], []byte(got[1]+"+"))
	}, client.Stale(long)); err != nil || runs < 2 {
		t.Errorf("mode %v: one that writes, on what is old, takes %d attempts: %v", mode, runs, err)
	}
	time.Sleep(2 * time.Second)
	keys = keys[:1]
	if got, err := client.Run(ctx, reader, f, client.Strict); err != nil || got[0] != "5+" {
		t.Errorf("mode %v: one that writes has written %q: %v", mode, got, err)
	}
}
