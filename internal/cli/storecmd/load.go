package storecmd

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"github.com/foresay/foresay/internal/cli/command"
	"github.com/foresay/foresay/store"
	"github.com/foresay/foresay/store/client"
	"github.com/foresay/foresay/store/storeservice"
	"github.com/foresay/foresay/workload"
)

type loadFlags struct {
	clientFlags
	keys       uint64
	from       uint64
	valueBytes int
	batch      int
	clients    int
}

func (p *program) loadCommand() *cobra.Command {
	var f loadFlags
	c := &cobra.Command{
		Use:   "load",
		Short: "Fill a store with keys",
		Long: `Fill a store with the keys k0, k1 and so on, many to a transaction, and many transactions at a
time. Each key's value follows from its name, so that loading again leaves the same. If it is
interrupted it says how to go on.`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if err := f.check(); err != nil {
				return err
			}
			return p.withClientBy(&f.clientFlags, storeservice.ClientOptions{RoundTrip: loadPatience},
				func(conn *storeservice.Client) error { return p.load(c.Context(), &f, conn) })
		},
	}
	flags := c.Flags()
	f.add(flags, time.Minute)
	flags.Uint64Var(&f.keys, "keys", 0, "how many keys there are to be")
	flags.Uint64Var(&f.from, "from", 0, "the number of the first key to load")
	flags.IntVar(&f.valueBytes, "value-bytes", 64, "the size of a value")
	flags.IntVar(&f.batch, "batch", 0, "how many keys one transaction writes (default: what fits, 500 at most)")
	flags.IntVar(&f.clients, "clients", 8, "how many transactions are under way at a time")
	return c
}

// loadPatience is the round-trip time that a load reckons with: a machine that has much to write is
// not asked again for nothing.
const loadPatience = 2 * time.Second

// maxBatchBytes keeps a load's transactions well below their limit, and messages short.
const maxBatchBytes = store.MaxTxnBytes / 4

// keyBytes is about the size of a key, for batches.
const keyBytes = 16

func (f *loadFlags) check() error {
	switch {
	case f.keys == 0:
		return command.Usagef("store load: --keys is missing")
	case f.from >= f.keys:
		return command.Usagef("store load: --from is %d, and there are %d keys, from 0 on", f.from, f.keys)
	case f.valueBytes < 0 || f.valueBytes > maxBatchBytes:
		return command.Usagef("store load: --value-bytes is %d; want 0 to %d", f.valueBytes, maxBatchBytes)
	case f.batch < 0 || f.batch > store.MaxAccesses:
		return command.Usagef("store load: --batch is %d; want 1 to %d", f.batch, store.MaxAccesses)
	case f.clients < 1 || f.clients > 1000:
		return command.Usagef("store load: --clients is %d; want 1 to 1000", f.clients)
	}
	fits := max(1, maxBatchBytes/(f.valueBytes+keyBytes))
	if f.batch == 0 {
		f.batch = min(500, fits)
	}
	if f.batch > fits {
		return command.Usagef("store load: --batch is %d; values of %d bytes allow %d", f.batch, f.valueBytes, fits)
	}
	return nil
}

// loading is a load that is under way.
type loading struct {
	batchWriter
	f    *loadFlags
	next atomic.Uint64 // the first key that nobody has taken
	done atomic.Uint64 // keys

	mu      sync.Mutex
	written map[uint64]bool // first keys of batches that are written, above the following
	upTo    uint64          // all keys below are written
}

func (p *program) load(ctx context.Context, f *loadFlags, conn *storeservice.Client) error {
	txns, err := conn.Transactions(client.GRPC, 1) // nothing is read; the load itself tries again
	if err != nil {
		return err
	}
	l := &loading{f: f, batchWriter: batchWriter{txns, command.NewThrottle(f.clients), f.timeout},
		written: map[uint64]bool{}, upTo: f.from}
	l.next.Store(f.from)
	start := time.Now()
	group, loadCtx := errgroup.WithContext(ctx)
	for range f.clients {
		group.Go(func() error { return l.run(loadCtx) })
	}
	stop := p.showProgress("store load", int(f.keys-f.from), &l.done, start)
	err = group.Wait()
	stop()
	took := time.Since(start)
	if err != nil {
		if ctx.Err() != nil {
			err = errors.New("interrupted")
		}
		return fmt.Errorf("store load: %w; go on with --from %d", err, l.upTo)
	}
	keys := f.keys - f.from
	rate := float64(keys) / took.Seconds()
	if f.json {
		return p.WriteJSON(struct {
			Keys          uint64  `json:"keys"`
			ValueBytes    int     `json:"value_bytes"`
			Seconds       float64 `json:"seconds"`
			KeysPerSecond float64 `json:"keys_per_second"`
		}{keys, f.valueBytes, took.Seconds(), rate})
	}
	_, err = fmt.Fprintf(p.Out, "%d keys in %v, %.0f a second\n", keys, took.Round(time.Millisecond), rate)
	return err
}

// run writes batches until none is left.
func (l *loading) run(ctx context.Context) error {
	for {
		first := l.next.Add(uint64(l.f.batch)) - uint64(l.f.batch)
		if first >= l.f.keys {
			return nil
		}
		end := min(first+uint64(l.f.batch), l.f.keys)
		err := l.write(ctx, func(tx *client.Tx) error {
			for k := first; k < end; k++ {
				if err := tx.Put(workload.Name(k), loadValue(k, l.f.valueBytes)); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return fmt.Errorf("keys %d to %d: %w", first, end-1, err)
		}
		l.done.Add(end - first)
		l.mu.Lock()
		l.written[first] = true
		for l.written[l.upTo] {
			delete(l.written, l.upTo)
			l.upTo = min(l.upTo+uint64(l.f.batch), l.f.keys)
		}
		l.mu.Unlock()
	}
}

// batchWriter writes batches of keys.
type batchWriter struct {
	txns     *client.Client
	throttle *command.Throttle
	timeout  time.Duration
}

// write writes one batch. It is tried again also if nobody knows whether it was written: twice is
// the same as once.
func (w *batchWriter) write(ctx context.Context, put func(tx *client.Tx) error) error {
	deadline := time.Now().Add(w.timeout)
	for {
		if err := w.throttle.Begin(ctx); err != nil {
			return err
		}
		attempt, cancel := context.WithDeadline(ctx, deadline)
		err := w.txns.Txn(attempt, func(_ context.Context, tx *client.Tx) error { return put(tx) })
		cancel()
		w.throttle.End(err == nil)
		if _, code := verdict(err); err == nil || code == 1 || time.Now().After(deadline) || ctx.Err() != nil {
			return err
		}
	}
}

// loadValue returns the value of a key: letters that follow from its number.
func loadValue(key uint64, n int) []byte {
	const letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_"
	v := make([]byte, n)
	x := key*0x9e3779b97f4a7c15 + 1 // a linear congruence's next number each time
	for i := range v {
		x = x*6364136223846793005 + 1442695040888963407
		v[i] = letters[x>>58]
	}
	return v
}
