package etcd

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/foresay/foresay"
	"github.com/foresay/foresay/control"
)

func mustKV(t testing.TB, cfg Config) *KV {
	t.Helper()
	if cfg.Mode == 0 {
		cfg.Mode = control.ModeOn
	}
	kv, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return kv
}

// away is how far the authority is, each way. The near member is next door.
const away = 15e6

// TestKV does everything with a cluster that is well, and one that has a follower
// which is cut off.
func TestKV(t *testing.T) {
	c := newCluster(t)
	far, near := c.client(0, away), c.client(follower, 0)
	kv := mustKV(t, Config{Far: far, Near: near})
	t.Run("fresh", func(t *testing.T) { testFresh(t, kv, far, near) })
	t.Run("reads", func(t *testing.T) { testReads(t, kv, far, near) })
	t.Run("writes", func(t *testing.T) { testWrites(t, kv, far, near) })
	t.Run("same revision", func(t *testing.T) { testSameRevision(t, far, near) })
	t.Run("modes", func(t *testing.T) { testModes(t, far, near) })
	t.Run("stale", func(t *testing.T) { testStale(t, c, kv, far, near) })
	t.Run("create then get", func(t *testing.T) { testCreateThenGet(t, c, kv, far, near) })
}

// testFresh: the near answer is there before the far one, and is right.
func testFresh(t *testing.T, kv *KV, far, near *clientv3.Client) {
	catchUp(t, near, "a", put(t, far, "a", "1"))
	get, _ := kv.CallSites()
	before, predicted := get.Stats(), false
	got, err := foresay.Do(t.Context(), func(ctx context.Context) (string, error) {
		resp, err := kv.Get(ctx, "a")
		if err != nil {
			return "", err
		}
		predicted = foresay.State(ctx).Speculative
		return value(resp), nil
	})
	after := get.Stats()
	if got != "1" || err != nil || !predicted || after.Right != before.Right+1 || after.Wrong != before.Wrong {
		t.Errorf("%q, %v; predicted %v; %+v", got, err, predicted, after)
	}
}

// testStale: what the cut-off member says never shows.
func testStale(t *testing.T, c *cluster, kv *KV, far, near *clientv3.Client) {
	catchUp(t, near, "s", put(t, far, "s", "old"))
	c.isolate(true)
	revision := put(t, far, "s", "new")
	if got := stale(t, near, "s"); got != "old" {
		t.Fatalf("the member that is cut off says %q", got)
	}
	get, _ := kv.CallSites()
	before := get.Stats()
	var seen []string // by the runs, of which one is at a time
	got, err := foresay.Do(t.Context(), func(ctx context.Context) (string, error) {
		resp, err := kv.Get(ctx, "s")
		if err != nil {
			return "", err
		}
		seen = append(seen, value(resp))
		// This stands on the read, and so must not be made for the old value.
		if _, err := kv.Put(ctx, "copy", value(resp)); err != nil {
			return "", err
		}
		return value(resp), nil
	})
	after := get.Stats()
	if got != "new" || err != nil || after.Wrong != before.Wrong+1 {
		t.Errorf("%q, %v; %+v", got, err, after)
	}
	if len(seen) != 2 || seen[0] != "old" || seen[1] != "new" {
		t.Errorf("the runs saw %q", seen)
	}
	copies, err := far.Get(t.Context(), "copy")
	if err != nil || value(copies) != "new" || copies.Kvs[0].Version != 1 {
		t.Errorf("the copy is %v, %v; want one put of the new value", copies, err)
	}
	c.isolate(false)
	catchUp(t, near, "s", revision)
	if got, err := foresay.Do(t.Context(), func(ctx context.Context) (string, error) {
		resp, err := kv.Get(ctx, "s")
		return value(resp), err
	}); got != "new" || err != nil || get.Stats().Right != after.Right+1 {
		t.Errorf("once it has caught up: %q, %v; %+v", got, err, get.Stats())
	}
}

// testCreateThenGet: what was created is there, although the member that is asked
// first has not heard of it. [Teleport #16941]
func testCreateThenGet(t *testing.T, c *cluster, kv *KV, far, near *clientv3.Client) {
	c.isolate(true)
	defer c.isolate(false)
	for i := range 20 {
		key := fmt.Sprint("created/", i)
		inside := i%2 == 0
		if !inside {
			put(t, far, key, "x")
		}
		got, err := foresay.Do(t.Context(), func(ctx context.Context) (string, error) {
			if inside {
				if _, err := kv.Put(ctx, key, "x"); err != nil {
					return "", err
				}
			}
			resp, err := kv.Get(ctx, key)
			if err != nil {
				return "", err
			}
			if len(resp.Kvs) == 0 {
				return "", errors.New("not found")
			}
			return value(resp), nil
		})
		if got != "x" || err != nil {
			t.Fatalf("%s: %q, %v", key, got, err)
		}
		if stale(t, near, key) != "" {
			t.Fatalf("the member that is cut off knows %s", key)
		}
	}
}

// testReads: reads of all kinds are predicted and right, and equal to those of
// the plain client.
func testReads(t *testing.T, kv *KV, far, near *clientv3.Client) {
	var revision int64
	for i := range 10 {
		revision = put(t, far, fmt.Sprint("r/", i), fmt.Sprint("v", i))
	}
	catchUp(t, near, "r/9", revision)
	do := func(op func(context.Context, clientv3.KV) (fmt.Stringer, error)) (want, got string, predicted bool) {
		t.Helper()
		plain, err := op(t.Context(), far)
		if err != nil {
			t.Fatal(err)
		}
		answer, err := foresay.Do(t.Context(), func(ctx context.Context) (fmt.Stringer, error) {
			answer, err := op(ctx, kv)
			predicted = predicted || foresay.State(ctx).Speculative
			return answer, err
		})
		if err != nil {
			t.Fatal(err)
		}
		return plain.String(), answer.String(), predicted
	}
	for name, opts := range map[string][]clientv3.OpOption{
		"prefix":     {clientv3.WithPrefix()},
		"limit":      {clientv3.WithPrefix(), clientv3.WithLimit(3)},
		"sorted":     {clientv3.WithPrefix(), clientv3.WithSort(clientv3.SortByModRevision, clientv3.SortDescend)},
		"keys only":  {clientv3.WithPrefix(), clientv3.WithKeysOnly()},
		"count only": {clientv3.WithPrefix(), clientv3.WithCountOnly()},
		"revision":   {clientv3.WithPrefix(), clientv3.WithRev(revision - 2)},
		"nothing":    {clientv3.WithRange("r/0\x00")},
	} {
		want, got, predicted := do(func(ctx context.Context, kv clientv3.KV) (fmt.Stringer, error) {
			resp, err := kv.Get(ctx, "r/", opts...)
			if err != nil {
				return nil, err
			}
			resp.Header = nil
			return text{resp}, nil
		})
		if got != want || !predicted {
			t.Errorf("%s: predicted %v\n got %s\nwant %s", name, predicted, got, want)
		}
	}
	for name, predictable := range map[string]bool{"linearizable": true, "serializable": false} {
		want, got, predicted := do(func(ctx context.Context, kv clientv3.KV) (fmt.Stringer, error) {
			var opts []clientv3.OpOption
			if !predictable {
				opts = append(opts, clientv3.WithSerializable())
			}
			resp, err := kv.Txn(ctx).If(clientv3.Compare(clientv3.Version("r/1"), ">", 0)).
				Then(clientv3.OpGet("r/1", opts...), clientv3.OpGet("r/2", opts...)).Else(clientv3.OpGet("r/3", opts...)).Commit()
			if err != nil {
				return nil, err
			}
			var kvs []any
			for _, r := range resp.Responses {
				kvs = append(kvs, r.GetResponseRange().Kvs)
			}
			return text{kvs}, nil
		})
		if got != want || predicted != predictable {
			t.Errorf("%s transaction: predicted %v\n got %s\nwant %s", name, predicted, got, want)
		}
	}
	want, got, predicted := do(func(ctx context.Context, kv clientv3.KV) (fmt.Stringer, error) {
		resp, err := kv.Get(ctx, "r/1", clientv3.WithSerializable())
		return text{value(resp)}, err
	})
	if got != want || predicted {
		t.Errorf("serializable: got %s, want %s; predicted %v", got, want, predicted)
	}
	_, plainErr := far.Get(t.Context(), "r/1", clientv3.WithRev(1e9))
	_, err := foresay.Do(t.Context(), func(ctx context.Context) (int, error) {
		_, err := kv.Get(ctx, "r/1", clientv3.WithRev(1e9))
		return 0, err
	})
	if plainErr == nil || err != plainErr {
		t.Errorf("a revision of the future: %v, without Foresay %v", err, plainErr)
	}
}

type text struct{ v any }

func (s text) String() string { return fmt.Sprint(s.v) }

// testWrites: writes are made once, whatever runs ahead, and answer as they do plainly.
func testWrites(t *testing.T, kv *KV, far, near *clientv3.Client) {
	catchUp(t, near, "w", put(t, far, "w", "0"))
	var runs atomic.Int64
	version, err := foresay.Do(t.Context(), func(ctx context.Context) (int64, error) {
		runs.Add(1)
		if _, err := kv.Get(ctx, "w"); err != nil {
			return 0, err
		}
		for i := range 2 {
			if _, err := kv.Put(ctx, "w", fmt.Sprint(i+1)); err != nil {
				return 0, err
			}
		}
		txn, err := kv.Txn(ctx).If(clientv3.Compare(clientv3.Value("w"), "=", "2")).
			Then(clientv3.OpPut("w", "3"), clientv3.OpGet("w")).Commit()
		if err != nil || !txn.Succeeded {
			return 0, fmt.Errorf("the transaction: %v, %w", txn, err)
		}
		if op, err := kv.Do(ctx, clientv3.OpPut("w", "4", clientv3.WithPrevKV())); err != nil ||
			string(op.Put().PrevKv.Value) != "3" {
			return 0, fmt.Errorf("Do: %v, %w", op, err)
		}
		resp, err := kv.Get(ctx, "w") // the near member may not know yet
		if err != nil {
			return 0, err
		}
		if value(resp) != "4" {
			return 0, fmt.Errorf("reads %q after its own writes", value(resp))
		}
		gone, err := kv.Delete(ctx, "w")
		if err != nil || gone.Deleted != 1 {
			return 0, fmt.Errorf("Delete: %v, %w", gone, err)
		}
		return resp.Kvs[0].Version, nil
	})
	if version != 5 || err != nil {
		t.Errorf("version %d, %v after %d runs; want 5: one put before, and four", version, err, runs.Load())
	}
	resp, err := kv.Get(t.Context(), "w")
	if err != nil || len(resp.Kvs) != 0 {
		t.Errorf("afterwards: %v, %v", resp, err)
	}
	if _, err := foresay.Do(t.Context(), func(ctx context.Context) (*clientv3.CompactResponse, error) {
		return kv.Compact(ctx, 1)
	}); err != nil {
		t.Errorf("Compact: %v", err)
	}
	chunks, err := foresay.Do(t.Context(), func(ctx context.Context) (int64, error) {
		if _, err := kv.Get(ctx, "w"); err != nil {
			return 0, err
		}
		stream, err := kv.GetStream(ctx, "r/", clientv3.WithPrefix())
		if err != nil {
			return 0, err
		}
		if foresay.State(ctx).Speculative {
			return 0, errors.New("a stream was opened on a guess")
		}
		all, err := clientv3.GetStreamToGetResponse(stream)
		if err != nil {
			return 0, err
		}
		return int64(len(all.Kvs)), nil
	})
	if chunks != 10 || err != nil {
		t.Errorf("GetStream: %d keys, %v", chunks, err)
	}
}

// testSameRevision: with SameRevision an unrelated write makes the near answer wrong.
func testSameRevision(t *testing.T, far, near *clientv3.Client) {
	strict := mustKV(t, Config{Far: far, Near: near, SameRevision: true, Name: "strict"})
	revision := put(t, far, "strict", "1")
	catchUp(t, near, "strict", revision)
	got, err := foresay.Do(t.Context(), func(ctx context.Context) (int64, error) {
		resp, err := strict.Get(ctx, "strict")
		if err != nil {
			return 0, err
		}
		return resp.Header.Revision, nil
	})
	get, _ := strict.CallSites()
	if got != revision || err != nil || get.Stats().Right != 1 || get.Config().Name != "strict/Range" {
		t.Errorf("revision %d, %v, want %d; %+v", got, err, revision, get.Stats())
	}
}

// testModes: in the mode that sites have by default nothing is predicted.
func testModes(t *testing.T, far, near *clientv3.Client) {
	ctl, err := control.New(control.Config{})
	if err != nil {
		t.Fatal(err)
	}
	kv, err := New(Config{Far: far, Near: near, Control: ctl})
	if err != nil {
		t.Fatal(err)
	}
	catchUp(t, near, "m", put(t, far, "m", "1"))
	for _, on := range []bool{false, true} {
		if on {
			if err := ctl.SetMode("etcd/Range", control.ModeOn, 0); err != nil {
				t.Fatal(err)
			}
		}
		predicted := false
		got, err := foresay.Do(t.Context(), func(ctx context.Context) (string, error) {
			resp, err := kv.Get(ctx, "m")
			predicted = predicted || foresay.State(ctx).Speculative
			return value(resp), err
		})
		if got != "1" || err != nil || predicted != on {
			t.Errorf("on %v: %q, %v, predicted %v", on, got, err, predicted)
		}
	}
	if _, err := New(Config{Near: near}); err == nil {
		t.Error("New accepts that Far is nil")
	}
	if _, err := New(Config{Far: far, Mode: 99}); err == nil {
		t.Error("New accepts an unknown mode")
	}
}
