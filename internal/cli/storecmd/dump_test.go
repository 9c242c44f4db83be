package storecmd

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/foresay/foresay/internal/cli/command"
	"github.com/foresay/foresay/store/client"
	"github.com/foresay/foresay/store/storeconfig"
	"github.com/foresay/foresay/store/storeservice"
	"github.com/foresay/foresay/store/storeservice/dump"
	"github.com/foresay/foresay/wan"
)

// A bank has accounts, between which money moves.
const (
	accounts = 20
	each     = 100
)

func account(n int) string { return fmt.Sprintf("account/%02d", n) }

// cluster is a store in this process, with a client.
func cluster(t *testing.T, protocol string, shards int) (file string, conn *storeservice.Client) {
	t.Helper()
	sites := []wan.Site{"a", "b", "c"}
	dir := t.TempDir()
	c, err := storeservice.OpenCluster(storeservice.ClusterOptions{Dir: dir, Protocol: protocol, Shards: shards,
		WAN: wan.Uniform(2*time.Millisecond, sites...), Sites: sites})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	file = filepath.Join(dir, storeconfig.ClientFile)
	cfg, err := storeconfig.ReadClient(file, "")
	if err != nil {
		t.Fatal(err)
	}
	if conn, err = storeservice.Dial(cfg, storeservice.ClientOptions{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(conn.Close)
	return file, conn
}

// run runs a command of this package.
func run(t *testing.T, args ...string) (out string, err error) {
	t.Helper()
	var stdout, stderr bytes.Buffer
	c := Command(&command.Program{Streams: command.Streams{In: strings.NewReader(""), Out: &stdout, Err: &stderr}})
	c.SetArgs(args)
	c.SilenceErrors, c.SilenceUsage = true, true
	err = c.ExecuteContext(t.Context())
	return stdout.String(), err
}

// transfer moves money between two accounts.
func transfer(ctx context.Context, txns *client.Client, rnd *rand.Rand) error {
	between := rnd.Perm(accounts)
	from, to, n := account(between[0]), account(between[1]), rnd.IntN(10)
	return txns.Txn(ctx, func(ctx context.Context, tx *client.Tx) error {
		for key, add := range map[string]int{from: -n, to: n} {
			v, _, err := tx.Get(ctx, key)
			if err != nil {
				return err
			}
			has, err := strconv.Atoi(string(v))
			if err != nil {
				return err
			}
			if err := tx.Put(key, strconv.AppendInt(nil, int64(has+add), 10)); err != nil {
				return err
			}
		}
		return nil
	})
}

// sum returns how much money an export has.
func sum(t *testing.T, file string) (total int, values map[string]string) {
	t.Helper()
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	r, err := dump.NewReader(file, f)
	if err != nil {
		t.Fatal(err)
	}
	values = map[string]string{}
	for {
		i, err := r.Next()
		if err == io.EOF {
			return total, values
		}
		if err != nil {
			t.Fatal(err)
		}
		n, err := strconv.Atoi(string(i.Value.Bytes))
		if err != nil {
			t.Fatal(err)
		}
		total += n
		values[string(i.Key)] = string(i.Value.Bytes)
	}
}

// TestSnapshotMoves exports a store between whose accounts money moves, again and again: each
// snapshot has all of the money. The last one is loaded into a store of another protocol, in two
// parts, as if the first import had been interrupted.
func TestSnapshotMoves(t *testing.T) {
	for _, protocol := range snapshotProtocols() {
		t.Run(protocol, func(t *testing.T) { snapshotMoves(t, protocol) })
	}
}

func snapshotMoves(t *testing.T, protocol string) {
	t.Helper()
	file, conn := cluster(t, protocol, 3)
	txns, err := conn.Transactions(client.GRPC, 0)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for first := 0; first < accounts; first += 10 {
		if err := txns.Txn(ctx, func(_ context.Context, tx *client.Tx) error {
			for n := first; n < first+10; n++ {
				if err := tx.Put(account(n), strconv.AppendInt(nil, each, 10)); err != nil {
					return err
				}
			}
			return nil
		}); err != nil {
			t.Fatal(err)
		}
	}
	load, stop := context.WithCancel(ctx)
	var moved atomic.Int64
	var wg sync.WaitGroup
	for n := range 4 {
		wg.Go(func() {
			rnd := rand.New(rand.NewPCG(uint64(n), 1))
			for load.Err() == nil {
				if err := transfer(load, txns, rnd); err == nil {
					moved.Add(1)
				}
			}
		})
	}
	var export string
	for n := range 3 {
		before := moved.Load()
		export = filepath.Join(t.TempDir(), "export")
		out, err := run(t, "export", "--client", file, "--out", export)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.HasPrefix(out, "20 keys, as of 20") {
			t.Errorf("export says %q", out)
		}
		if total, _ := sum(t, export); total != accounts*each {
			t.Errorf("export %d has %d, of %d", n, total, accounts*each)
		}
		for load.Err() == nil && moved.Load() < before+5 {
			time.Sleep(time.Millisecond)
		}
	}
	stop()
	wg.Wait()
	for what, want := range map[string][2]string{
		"it is complete":         {"now", export + ": the export is complete"},
		"another time":           {"2020-01-01T00:00:00Z", export + ":1: at: the file has the snapshot of 20"},
		"a time that is to come": {"2199-01-01T00:00:00Z", "2199-01-01T00:00:00Z has not come yet, by the clock"},
	} {
		out := export
		if strings.HasPrefix(want[0], "2199") {
			out = filepath.Join(t.TempDir(), "export")
		}
		if _, err := run(t, "export", "--client", file, "--out", out, "--at", want[0]); err == nil ||
			!strings.HasPrefix(err.Error(), "store export: "+want[1]) {
			t.Errorf("%s: error %v, want %s", what, err, want[1])
		}
	}
	importInto(t, ctx, export)
}

func importInto(t *testing.T, ctx context.Context, export string) {
	t.Helper()
	file, conn := cluster(t, "replicatedcommit", 2)
	_, values := sum(t, export)
	b, err := os.ReadFile(export)
	if err != nil {
		t.Fatal(err)
	}
	broken := filepath.Join(t.TempDir(), "broken")
	if err := os.WriteFile(broken, b[:len(b)-20], 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := run(t, "import", broken, "--client", file); err == nil ||
		!strings.Contains(err.Error(), "broken:") || !strings.HasSuffix(err.Error(), "the line has no end") {
		t.Errorf("a broken file: error %v", err)
	}
	if _, err := run(t, "export", "--client", file, "--out", filepath.Join(t.TempDir(), "none")); err == nil ||
		!strings.Contains(err.Error(), "a store of the protocol replicatedcommit keeps no versions, so it has no "+
			"snapshot to write; stores of these protocols do: carousel, str") {
		t.Errorf("an export without versions: error %v", err)
	}
	if _, err := os.Stat(filepath.Join(filepath.Dir(export), "none")); err == nil {
		t.Error("there is a file although there is nothing to write")
	}

	mark := export + ".imported"
	of, err := checkDump(export)
	if err != nil {
		t.Fatal(err)
	}
	half := func(id string) string {
		return fmt.Sprintf(`{"store":"dev","id":%q,"of":{"store":"dev","store_id":%q,"at":%q,"keys":20},"keys":8}`, id,
			of.StoreID, of.At)
	}
	another := `the import was begun at another store (named "dev"; this one is named "dev"); remove ` + mark
	for _, tc := range [][2]string{{"{}", "it is not about the import of this file"}, {half(""), another},
		{half(of.StoreID), another}, {half(conn.Store().ID), ""}} {
		text, want := tc[0], tc[1]
		if err := os.WriteFile(mark, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		out, err := run(t, "import", export, "--client", file, "--json")
		if want != "" {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("error %v, want %s", err, want)
			}
			expectKeys(t, ctx, conn, values, 0)
			continue
		}
		if err != nil || !strings.Contains(out, `"resumed": 8`) {
			t.Errorf("an import that goes on says %s, %v", out, err)
		}
	}
	if _, err := os.Stat(mark); err == nil {
		t.Errorf("%s is left", mark)
	}
	expectKeys(t, ctx, conn, values, 12)
	if _, err := run(t, "import", export, "--client", file); err != nil {
		t.Error(err)
	}
	expectKeys(t, ctx, conn, values, accounts)
}

// expectKeys looks how many of the keys are there, and whether they are right.
func expectKeys(t *testing.T, ctx context.Context, conn *storeservice.Client, values map[string]string, want int) {
	t.Helper()
	txns, err := conn.Transactions(client.GRPC, 0)
	if err != nil {
		t.Fatal(err)
	}
	there, err := client.Run(ctx, txns, func(ctx context.Context, tx *client.Tx) (int, error) {
		there := 0
		for key, want := range values {
			v, ok, err := tx.Get(ctx, key)
			if err != nil {
				return 0, err
			}
			if ok && string(v) != want {
				t.Errorf("%s is %s, want %s", key, v, want)
			}
			if ok {
				there++
			}
		}
		return there, nil
	})
	if err != nil || there != want {
		t.Errorf("%d keys are there, want %d (%v)", there, want, err)
	}
}
