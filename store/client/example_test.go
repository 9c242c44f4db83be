package client_test

import (
	"context"
	"fmt"
	"strconv"
	"sync"

	"github.com/foresay/foresay/history"
	"github.com/foresay/foresay/store"
	"github.com/foresay/foresay/store/client"
)

// memory is a store at one place, whose only site is always right.
type memory struct {
	mu     sync.Mutex
	values map[store.Key]store.Value
	last   uint64
}

func (m *memory) Begin(b client.Beginning) client.Attempt { return &attempt{m, b.Priority} }

func (m *memory) Resolve(_ context.Context, txn store.Txn) client.Decision {
	return client.Decision{Txn: txn}
}

// attempt is one try of a transaction.
type attempt struct {
	*memory
	priority store.Priority
}

func (m *attempt) Read(_ context.Context, key store.Key, _ func(client.Answer)) (client.Answer, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return client.Answer{Value: m.values[key], Site: "here"}, nil
}

func (m *attempt) ReadNearest(ctx context.Context, key store.Key) (client.Answer, error) {
	return m.Read(ctx, key, nil)
}

func (m *attempt) Commit(_ context.Context, s client.Submission) client.Decision {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.last++
	d := client.Decision{Txn: store.Txn{ID: store.TxnID{Time: m.last, Client: 1}, Priority: m.priority, Reads: s.Reads,
		Writes: s.Writes}, Site: "here"}
	for _, r := range s.Reads {
		if m.values[r.Key].Version != r.Version {
			d.Outcome = store.Outcome{Verdict: store.Aborted, Reason: store.StaleRead}
			return d
		}
	}
	for _, w := range s.Writes {
		m.values[w.Key] = store.Value{Version: d.Txn.ID, Present: !w.Delete, Bytes: w.Bytes}
	}
	d.Outcome.Verdict = store.Committed
	return d
}

func (m *attempt) Stale(ctx context.Context, reads []store.Read) bool {
	return m.Commit(ctx, client.Submission{Reads: reads}).Outcome.Verdict == store.Aborted
}

func (m *attempt) End() {}

func (m *memory) Promises() history.Level { return history.StrictSerializable }

func (m *memory) Stales() bool { return false }

// A transfer between two accounts, as in any program.
func ExampleClient_Txn() {
	// for real: what front.Dial returns
	c, err := client.New(client.Config{Backend: &memory{values: map[store.Key]store.Value{}}})
	if err != nil {
		fmt.Println(err)
		return
	}
	balance := func(ctx context.Context, tx *client.Tx, account string) (int, error) {
		v, ok, err := tx.Get(ctx, account)
		if err != nil || !ok {
			return 0, err
		}
		return strconv.Atoi(string(v))
	}
	set := func(tx *client.Tx, account string, n int) error {
		return tx.Put(account, strconv.AppendInt(nil, int64(n), 10))
	}
	move := func(from, to string, n int) error {
		return c.Txn(context.Background(), func(ctx context.Context, tx *client.Tx) error {
			has, err := balance(ctx, tx, from)
			if err != nil {
				return err
			}
			if has < n && from != "bank" {
				return fmt.Errorf("%s has %d, not %d", from, has, n)
			}
			other, err := balance(ctx, tx, to)
			if err != nil {
				return err
			}
			if err := set(tx, from, has-n); err != nil {
				return err
			}
			return set(tx, to, other+n)
		})
	}
	fmt.Println(move("bank", "ann", 10))
	fmt.Println(move("ann", "bob", 4))
	fmt.Println(move("ann", "bob", 7))
	// Output:
	// <nil>
	// <nil>
	// ann has 6, not 7
}
