package plancmd_test

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/foresay/foresay/internal/cli/planning/plantest"
	"github.com/foresay/foresay/internal/cli/storecmd/plancmd"
	"github.com/foresay/foresay/internal/heap"
	"github.com/foresay/foresay/store/plan"
)

// run runs 'foresay store plan', and returns what it writes and its exit code.
func run(ctx context.Context, args ...string) (out, errs string, code int) {
	return plantest.Run(ctx, "store", args...)
}

// TestTables has the thesis' setting, a file's network with weights, and placements of one's own.
func TestTables(t *testing.T) {
	t.Chdir(t.TempDir())
	if err := os.WriteFile("net.json", []byte(`{"sites": ["left", "middle", "right"], "rtt_ms": [[0, 20, 40], [20, 0, 30], `+
		`[40, 30, 0]]}`), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		args string
		want []string
	}{
		{"--wan carousel --declared", []string{
			"carousel, 5 clients, 5 partitions with 3 replicas each, transactions retwis, keys declared; ms\n",
			"\ncarousel-basic strict 296.96 290 525 525 205 323 401 1.70x\n", "\ntapir serializable ",
			"\ntapir 582 0 % 6.1 % 100 %\n", "\nus-west us-east europe; us-east europe asia; ",
			"\nreplicatedcommit: all sites have all, and none leads\n",
		}},
		{"--wan net.json --txns writes=1 --protocol layered,layered --replicas 1 --leaders middle --per-client", []string{
			"3 partitions with 1 replica each",
			"\nlayered strict 16.67 20 30 30 - 0 25 0.71x\n", // it does not survive what the floor does
			"\nlayered 15 100 % - -\n", "\nleft all 20 20\n",
		}},
		{"--wan net.json --txns reads=1 --clients left=1,right=3 --protocol replicatedcommit", []string{
			"2 clients", "\nreplicatedcommit strict 27.5 30 30 30 30 - - ",
		}},
		{"--wan net.json --txns reads=1,writes=1,locality=100 --protocol layered --search --by worst-lrt", []string{
			"\nlayered: ", "of floor",
		}},
	} {
		out, errs, code := run(t.Context(), strings.Fields(c.args)...)
		if code != 0 || errs != "" {
			t.Errorf("%s: code %d, %s", c.args, code, errs)
		}
		for _, want := range c.want {
			if !strings.Contains(plantest.Squeezed(out), want) {
				t.Errorf("%s: no %q in\n%s", c.args, want, out)
			}
		}
	}
}

// TestCheck has the protocols that there are run.
func TestCheck(t *testing.T) {
	out, errs, code := run(t.Context(), "--wan", "specrpc", "--check", "--txns", "reads=2,writes=1")
	_, table, ok := strings.Cut(plantest.Squeezed(out), "the model\ntransactions measured model off\n")
	if code != 0 || errs != "" || !ok || !strings.Contains(table, "replicatedcommit 120 384 384 0 %\n") ||
		!strings.Contains(table, "layered 120 ") {
		t.Errorf("code %d, %s%s", code, errs, out)
	}
}

// TestJSON has everything as JSON.
func TestJSON(t *testing.T) {
	out, errs, code := run(t.Context(), "--wan", "specrpc", "--json", "--check", "--clients", "seoul=2,oregon",
		"--protocol", "replicatedcommit,carousel-fast", "--txns", "reads=1,writes=1")
	var d plancmd.Document
	dec := json.NewDecoder(strings.NewReader(out))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&d); err != nil || code != 0 {
		t.Fatalf("code %d, %s%v", code, errs, err)
	}
	if d.Network != "specrpc" || d.By != "" || len(d.Systems) != 3 {
		t.Fatalf("%+v", d)
	}
	floor, rc, fast := d.Systems[0], d.Systems[1], d.Systems[2]
	if floor.Promises != "" || rc.Promises != "strict" || rc.Placement != nil || len(fast.Placement) != 3 ||
		fast.Placement[0][0] != "oregon" {
		t.Errorf("%+v", d)
	}
	if len(rc.Rows) != 3*4 || rc.Rows[0].Client != "" || rc.Rows[4].Client != "seoul" || rc.Rows[4].P50MS != 244 ||
		rc.Rows[0].Share != 1 || len(rc.Check) != 2 || rc.Check[0].Client != "seoul" || rc.Check[0].MeasuredMS != 244 {
		t.Errorf("%+v", rc)
	}
	if len(fast.Lost) != 3 || fast.Lost[0].Site != "oregon" || fast.Lost[0].Fast != 0 || len(fast.Check) != 2 {
		t.Errorf("%+v", fast)
	}
}

// TestPicture draws XML that has a dot for each protocol and class of transactions that there is.
func TestPicture(t *testing.T) {
	file := filepath.Join(t.TempDir(), "plan.svg")
	if _, errs, code := run(t.Context(), "--wan", "carousel", "--svg", file); code != 0 || errs != "wrote "+file+"\n" {
		t.Fatalf("code %d, %s", code, errs)
	}
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	dots, err := plantest.Dots(b)
	if err != nil {
		t.Fatal(err)
	}
	if want := 3*(1+len(plan.Systems())) + 1; dots != want {
		t.Errorf("%d dots, want %d", dots, want)
	}
}

// TestErrors: what makes no sense names the flag and the value.
func TestErrors(t *testing.T) {
	for _, c := range []struct {
		args string
		code int
		want string
	}{
		{"", 2, "store plan: --wan is missing"},
		{"--wan nowhere", 2, `--wan: wan: unknown network "nowhere" (want na3, `},
		{"--wan na3 --partitions 65", 2, "--partitions is 65; want 1 to 64"},
		{"--wan na3 --partitions -1", 2, "--partitions is -1; want 1 to 64"},
		{"--wan na3 --replicas 0", 2, "--replicas, --leaders: 0 replicas of each shard"},
		{"--wan na3 --replicas 10", 2, "10 replicas of each shard at different sites (there are 9 sites)"},
		{"--wan na3 --leaders WA,XX", 2, `the leader "XX" is no site`},
		{"--wan na3 --clients XX", 2, `store plan: --clients: there is no site "XX"`},
		{"--wan na3 --clients WA=0", 2, `--clients: the weight of WA is "0"`},
		{"--wan na3 --txns retwiss", 2, `--txns: "retwiss"; want retwis, ycsbt, or reads=N`},
		{"--wan na3 --txns reads=x", 2, `--txns: "reads=x"`},
		{"--wan na3 --txns reads=2,writes=1,reads=3", 2, "--txns: reads=2 and reads=3; want one of them"},
		{"--wan na3 --txns locality=50", 2, "--txns: reads=0,writes=0; want one at least and 100 at most"},
		{"--wan na3 --txns reads=101", 2, "--txns: reads=101,writes=0"},
		{"--wan na3 --txns reads=1,locality=101", 2, "--txns: locality=101; want 0 to 100"},
		{"--wan na3 --protocol paxos", 2, `--protocol: unknown protocol "paxos" (want replicatedcommit, `},
		{"--wan na3 --by median", 2, `--by is "median"; want mean, p50, p95 or worst`},
		{"--wan na3 --by p50-all-of-them", 2, `--by is "p50-all-of-them"`},
		{"--wan na3 extra", 2, "unexpected argument"},
		{"--wan na3 --svg /nowhere/plan.svg", 1, "store plan: --svg: open /nowhere/plan.svg"},
	} {
		_, errs, code := run(t.Context(), strings.Fields(c.args)...)
		if code != c.code || !strings.Contains(errs, c.want) {
			t.Errorf("%s: code %d, %s want code %d and %s", c.args, code, errs, c.code, c.want)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, errs, code := run(ctx, "--wan", "na3", "--search"); code != 1 || !strings.Contains(errs, "interrupted") {
		t.Errorf("a search that is interrupted: code %d, %s", code, errs)
	}
}

func TestMain(m *testing.M) { os.Exit(heap.RunTests(m)) }
