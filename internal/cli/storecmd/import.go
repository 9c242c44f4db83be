package storecmd

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"github.com/foresay/foresay/bench"
	"github.com/foresay/foresay/internal/cli/command"
	"github.com/foresay/foresay/store"
	"github.com/foresay/foresay/store/client"
	"github.com/foresay/foresay/store/storeservice"
	"github.com/foresay/foresay/store/storeservice/dump"
)

type importFlags struct {
	clientFlags
	file     string
	progress string
	clients  int
}

func (p *program) importCommand() *cobra.Command {
	var f importFlags
	c := &cobra.Command{
		Use:   "import FILE",
		Short: "Load a file of 'foresay store export' into a store of any protocol",
		Long: `Put all keys of a file that 'foresay store export' has written into a store, of any protocol and
any number of shards. The whole file is looked at before anything is written. Keys that the store
has and the file has not stay as they are; what programs write meanwhile may be overwritten.

How far it is stands in a file beside it: if it is interrupted, the same command goes on.`,
		Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			f.file = args[0]
			if f.clients < 1 || f.clients > 1000 {
				return command.Usagef("store import: --clients is %d; want 1 to 1000", f.clients)
			}
			f.progress = cmp.Or(f.progress, f.file+".imported")
			checked, err := checkDump(f.file)
			if err != nil {
				return fmt.Errorf("store import: %w", err)
			}
			return p.withClientBy(&f.clientFlags, storeservice.ClientOptions{RoundTrip: loadPatience},
				func(conn *storeservice.Client) error { return p.importAll(c.Context(), &f, checked, conn) })
		},
	}
	f.add(c.Flags(), time.Minute)
	c.Flags().StringVar(&f.progress, "progress", "", "the `file` that says how far it is, until it is done (default:\n"+
		"FILE.imported)")
	c.Flags().IntVar(&f.clients, "clients", 8, "how many transactions are under way at a time")
	return c
}

// checkDump reads a whole file.
func checkDump(name string) (dump.Summary, error) {
	file, err := os.Open(name)
	if err != nil {
		return dump.Summary{}, err
	}
	defer file.Close()
	return dump.Check(name, file)
}

// importMark is what the file beside has: how far the import of what into which store is.
type importMark struct {
	Store string       `json:"store"`
	ID    string       `json:"id"` // the store's Identity: other stores have its name, too
	Of    dump.Summary `json:"of"`
	Keys  int          `json:"keys"` // that are there, the first ones of the file
}

// importing is an import that is under way.
type importing struct {
	batchWriter
	f    *importFlags
	mark importMark
	done atomic.Uint64 // keys

	mu      sync.Mutex
	reader  *dump.Reader
	written map[int]int // batches, by how many keys are before, to how many are behind; above mark.Keys
	saved   time.Time
}

func (p *program) importAll(ctx context.Context, f *importFlags, of dump.Summary, conn *storeservice.Client) error {
	m, err := newImporting(f, of, conn)
	if err != nil {
		return fmt.Errorf("store import: %w", err)
	}
	file, err := os.Open(f.file)
	if err != nil {
		return fmt.Errorf("store import: %w", err)
	}
	defer file.Close()
	if m.reader, err = dump.NewReader(f.file, file); err != nil {
		return fmt.Errorf("store import: %w", err)
	}
	for m.reader.Keys < m.mark.Keys {
		if _, err := m.reader.Next(); err != nil {
			return fmt.Errorf("store import: %w", err)
		}
	}
	resumed := m.mark.Keys
	if resumed > 0 {
		fmt.Fprintf(p.Err, "foresay store import: an earlier run has written %d of %d keys; going on behind them\n", resumed,
			of.Keys)
	}
	m.done.Store(uint64(resumed))
	began := time.Now()
	stop := p.showProgress("store import", of.Keys, &m.done, began)
	group, groupCtx := errgroup.WithContext(ctx)
	for range f.clients {
		group.Go(func() error { return m.run(groupCtx) })
	}
	err = group.Wait()
	stop()
	if err != nil {
		if ctx.Err() != nil {
			err = errors.New("interrupted")
		}
		if saving := m.save(); saving != nil {
			return fmt.Errorf("store import: %w", errors.Join(err, saving))
		}
		return fmt.Errorf("store import: %w; %d of %d keys are there, and the same command goes on", err,
			m.mark.Keys, of.Keys)
	}
	if err := os.Remove(f.progress); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("store import: all is there: %w", err)
	}
	if f.json {
		return p.WriteJSON(struct {
			Keys    int     `json:"keys"`
			Resumed int     `json:"resumed"` // that were there from before
			At      string  `json:"at"`
			Seconds float64 `json:"seconds"`
		}{of.Keys, resumed, of.At, time.Since(began).Seconds()})
	}
	_, err = fmt.Fprintf(p.Out, "%d keys of %s, as of %s\n", of.Keys, of.Store, of.At)
	return err
}

// newImporting returns an import that goes on where an earlier one was interrupted, if it was.
func newImporting(f *importFlags, of dump.Summary, conn *storeservice.Client) (*importing, error) {
	txns, err := conn.Transactions(client.GRPC, 1) // nothing is read; the import itself tries again
	if err != nil {
		return nil, err
	}
	m := &importing{f: f, written: map[int]int{},
		batchWriter: batchWriter{txns, command.NewThrottle(f.clients), f.timeout},
		mark:        importMark{Store: conn.Store().Cluster, ID: conn.Store().Identity(), Of: of}}
	b, err := os.ReadFile(f.progress)
	if errors.Is(err, os.ErrNotExist) {
		return m, m.save()
	}
	if err != nil {
		return nil, err
	}
	var mark importMark
	if err := json.Unmarshal(b, &mark); err != nil || mark.Of != of || mark.Keys < 0 || mark.Keys > of.Keys {
		return nil, fmt.Errorf("%s: it is not about the import of this file; name another file by --progress, or remove it",
			f.progress)
	}
	if mark.Store != m.mark.Store || mark.ID != m.mark.ID {
		return nil, fmt.Errorf("the import was begun at another store (named %q; this one is named %q); "+
			"remove %s to begin anew, or name another file by --progress", mark.Store, m.mark.Store, f.progress)
	}
	m.mark.Keys = mark.Keys
	return m, nil
}

// save writes how far it is.
func (m *importing) save() error {
	b, err := json.Marshal(m.mark)
	if err != nil {
		return err
	}
	m.saved = time.Now()
	temporary := m.f.progress + ".new"
	if err := os.WriteFile(temporary, append(b, '\n'), 0o600); err != nil {
		return err
	}
	return os.Rename(temporary, m.f.progress)
}

// run writes batches until none is left.
func (m *importing) run(ctx context.Context) error {
	for {
		first, items, err := m.take()
		if err != nil || len(items) == 0 {
			return err
		}
		err = m.write(ctx, func(tx *client.Tx) error {
			for _, i := range items {
				if err := tx.Put(string(i.Key), i.Value.Bytes); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return fmt.Errorf("key %.40q and %d that follow: %w", items[0].Key, len(items)-1, err)
		}
		m.done.Add(uint64(len(items)))
		if err := m.wrote(first, first+len(items)); err != nil {
			return err
		}
	}
}

// take returns the next batch, and how many keys are before it.
func (m *importing) take() (first int, items []store.Item, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	first = m.reader.Keys
	for bytes := 0; len(items) < 500 && bytes < maxBatchBytes; {
		i, err := m.reader.Next()
		if err == io.EOF {
			return first, items, nil
		}
		if err != nil {
			return first, nil, err
		}
		bytes += len(i.Key) + len(i.Value.Bytes)
		items = append(items, i)
	}
	return first, items, nil
}

// wrote notes that a batch is there, and now and then how far it is.
func (m *importing) wrote(first, end int) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.written[first] = end
	for {
		end, ok := m.written[m.mark.Keys]
		if !ok {
			break
		}
		delete(m.written, m.mark.Keys)
		m.mark.Keys = end
	}
	if time.Since(m.saved) < time.Second {
		return nil
	}
	return m.save()
}

// showProgress shows how far a command is, until stop is called.
func (p *program) showProgress(name string, total int, done *atomic.Uint64, began time.Time) (stop func()) {
	told, shown := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(shown)
		bar := command.NewProgress(p.Err)
		defer bar.Clear()
		tick := time.NewTicker(200 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-told:
				return
			case <-tick.C:
				n := done.Load()
				bar.Report(bench.Progress{Experiment: name, Done: int(n), Total: total,
					Doing: fmt.Sprintf("%.0f keys/s", float64(n)/time.Since(began).Seconds())})
			}
		}
	}()
	return func() {
		close(told)
		<-shown
	}
}
