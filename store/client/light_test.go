package client_test

import (
	"context"
	"fmt"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/foresay/foresay/store"
	"github.com/foresay/foresay/store/client"
)

// A task of which the engine takes no guess has its reads asked of a quorum at once: nobody would
// go on with the nearest site's answer.
func TestReadThatIsNotGuessed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fake{
			read: func(context.Context, store.Key, func(client.Answer)) (client.Answer, error) {
				time.Sleep(100 * time.Millisecond)
				return val(1), nil
			},
			nearest: func(context.Context, store.Key, func(client.Answer)) (client.Answer, error) { return val(1), nil },
			commit: func(context.Context, []store.Read, []store.Write) client.Decision {
				time.Sleep(100 * time.Millisecond)
				return client.Decision{Outcome: store.Outcome{Verdict: store.Committed}}
			},
		}
		c, _ := client.New(client.Config{Backend: f, Mode: client.Predicated})
		type result [3]byte // so that no other test's transactions make a difference
		for i := range 65 {
			began := time.Now()
			_, err := client.Run(t.Context(), c, func(ctx context.Context, tx *client.Tx) (out result, err error) {
				if i == 64 {
					_, _, err = tx.Get(ctx, "k")
				}
				if err == nil {
					err = tx.Put(fmt.Sprint("k", i), nil)
				}
				return out, err
			})
			if took := time.Since(began); err != nil || took > 200*time.Millisecond {
				t.Fatalf("transaction %d: took %v, %v", i, took, err)
			}
		}
	})
}

// A function that only writes needs no task, which costs more than all the rest.
func TestWritesNeedNoTask(t *testing.T) {
	f := &fake{commit: func(context.Context, []store.Read, []store.Write) client.Decision {
		return client.Decision{Outcome: store.Outcome{Verdict: store.Committed}}
	}}
	c, _ := client.New(client.Config{Backend: f})
	type result [5]byte // so that no other test's transactions make a difference
	put := func() {
		_, err := client.Run(t.Context(), c, func(_ context.Context, tx *client.Tx) (out result, err error) {
			return out, tx.Put("k", nil)
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	for range 100 {
		put()
	}
	var began, ended runtime.MemStats
	runtime.ReadMemStats(&began)
	const n = 1000
	for range n {
		put()
	}
	runtime.ReadMemStats(&ended)
	if got := (ended.TotalAlloc - began.TotalAlloc) / n; got > 3000 {
		t.Errorf("a transaction allocates %d bytes", got)
	}
}
