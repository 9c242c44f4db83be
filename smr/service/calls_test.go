package service

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/foresay/foresay/smr/client"
	"github.com/foresay/foresay/smr/kv"
)

// TestCalls has a client make each kind of call, and end.
func TestCalls(t *testing.T) {
	inWorld(t, "raft", func(w *world) {
		replicas := []*ran{w.start(1), w.start(2), w.start(3)}
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		c, err := Dial(w.cfg, ClientOptions{Dial: w.net.DialContext("z")})
		if err != nil {
			t.Fatal(err)
		}
		checkCalls(ctx, t, c)
		checkWatch(ctx, t, c, replicas)

		// A call that is under way when the client is closed has an unknown outcome, a later one is
		// rejected.
		under := make(chan error, 1)
		go func() {
			_, err := c.Put(ctx, "k", nil) // a majority has stopped
			under <- err
		}()
		time.Sleep(time.Second)
		if err := c.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
		if err := <-under; !isUnknown(err) {
			t.Errorf("a put under way: %v", err)
		}
		_, err = c.Put(ctx, "k", nil)
		if _, ok := errors.AsType[*client.RejectedError](err); !ok || !strings.Contains(err.Error(), "closed") {
			t.Errorf("a put of a closed client: %v", err)
		}
		if err := c.Close(); err != nil {
			t.Errorf("Close once more: %v", err)
		}
	})
}

func isUnknown(err error) bool {
	_, ok := errors.AsType[*client.UnknownError](err)
	return ok
}

func checkCalls(ctx context.Context, t *testing.T, c *Client) {
	t.Helper()
	check := func(name string, got any, err error, want string) {
		t.Helper()
		if s := fmt.Sprintf("%v, %v", got, err); s != want {
			t.Errorf("%s: %s, want %s", name, s, want)
		}
	}
	_, found, err := c.Get(ctx, "a")
	check("get of nothing", found, err, "false, <nil>")
	version, err := c.Put(ctx, "a", []byte("1"))
	check("put", version, err, "1, <nil>")
	item, _, err := c.Get(ctx, "a")
	check("get", fmt.Sprintf("%s=%s of %d", item.Key, item.Value, item.Version), err, "a=1 of 1, <nil>")
	version, err = c.CompareAndSet(ctx, "a", 1, []byte("2"))
	check("compare and set", version, err, "2, <nil>")
	version, err = c.CompareAndSet(ctx, "a", 1, []byte("3"))
	check("compare and set of another version", version, err, `2, "a" has version 2, not 1`)
	if conflict, ok := errors.AsType[*ConflictError](err); !ok || string(conflict.Value) != "2" {
		t.Errorf("it has no ConflictError with the value: %v", err)
	}
	version, err = c.CompareAndSet(ctx, "b", 0, nil)
	check("compare and set of a new key", version, err, "3, <nil>")
	items, more, err := c.Scan(ctx, "", "", 1)
	check("scan", fmt.Sprintf("%d, %v", len(items), more), err, "1, true, <nil>")
	items, more, err = c.Scan(ctx, "a\x00", "", 0)
	check("the rest of it", fmt.Sprintf("%s, %v", items[0].Key, more), err, "b, false, <nil>")
	version, found, err = c.Delete(ctx, "b")
	check("delete", fmt.Sprint(version, found), err, "4 true, <nil>")
	_, found, err = c.Delete(ctx, "b")
	check("delete of nothing", found, err, "false, <nil>")
	_, err = c.Put(ctx, "a", bytes.Repeat([]byte{1}, MaxValueBytes+1))
	check("put of too much", 0, err, "0, execute: rejected: the value has 1048577 bytes, more than 1048576")
	_, err = c.Put(ctx, "large", bytes.Repeat([]byte{1}, MaxValueBytes))
	check("put of as much as there can be", 0, err, "0, <nil>")
	_, err = c.SetQuota(ctx, kv.Quota{Keys: 2})
	check("quota", 0, err, "0, <nil>")
	_, err = c.CompareAndSet(ctx, "more", 0, nil)
	check("a key too many", 0, err, "0, the quota is used up: there are 2 keys of 2, and there would be 1 more")
	if _, ok := errors.AsType[*QuotaError](err); !ok {
		t.Errorf("it has no QuotaError: %v", err)
	}
	u, err := c.Usage(ctx)
	check("usage", u, err, "{1048583 2 {0 2}}, <nil>")
	u, err = c.SetQuota(ctx, kv.Quota{})
	check("no quota", u, err, "{1048583 2 {0 0}}, <nil>")
}

// checkWatch watches a key while it is changed, and while a majority is away.
func checkWatch(ctx context.Context, t *testing.T, c *Client, replicas []*ran) {
	t.Helper()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var seen []string
	o := OnlyKey("w")
	o.Every, o.Within = 100*time.Millisecond, time.Second
	for items, err := range c.Watch(ctx, o) {
		what := fmt.Sprint("unknown ", isUnknown(err))
		if err == nil {
			what = ""
			for _, i := range items {
				what += fmt.Sprintf("%s=%s %v ", i.Key, i.Value, i.Deleted)
			}
		}
		seen = append(seen, what)
		switch len(seen) {
		case 1:
			_, err = c.Put(ctx, "w", []byte("1"))
		case 2: // two changes between two reads
			_, _, err = c.Delete(ctx, "w")
			if err == nil {
				_, err = c.Put(ctx, "w", []byte("2"))
			}
		case 3:
			err = errors.Join(replicas[0].end(), replicas[1].end())
		default:
			err = nil
			if len(seen) == 5 { // it has gone on after the first error
				cancel()
			}
		}
		if err != nil {
			t.Error(err)
		}
	}
	if want := []string{"", "w=1 false ", "w= true w=2 false ", "unknown true", "unknown true"}; !slices.Equal(seen,
		want) {
		t.Errorf("the watch saw %q, want %q", seen, want)
	}
}
