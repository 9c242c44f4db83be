package plancmd_test

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/foresay/foresay/internal/cli/planning/plantest"
	"github.com/foresay/foresay/internal/cli/smrcmd/plancmd"
	"github.com/foresay/foresay/smr/plan"
)

// runPlanCommand runs 'foresay smr plan', and returns what it writes and its exit code.
func runPlanCommand(ctx context.Context, args ...string) (out, errs string, code int) {
	return plantest.Run(ctx, "smr", args...)
}

// network is a file of three sites in a row, with jitter on one way.
func network(t *testing.T, extra string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "net.json")
	text := `{"sites": ["left", "middle", "right"], "rtt_ms": [[0, 20, 40], [20, 0, 30], [40, 30, 0]]` + extra + `}`
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// TestPlanTables has tables of a paper's placement, of searched ones, and of a file's network with
// weights and jitter.
func TestPlanTables(t *testing.T) {
	t.Chdir(filepath.Dir(network(t, `, "links": [{"from": "left", "to": "right", "jitter_ms": 5, "loss": 0.01}]`)))
	for _, c := range []struct {
		args string
		want []string
	}{
		{"--wan na3 --per-client", []string{
			"na3, 9 clients, replicas at WA, VA, QC; ms\n",
			"\nfloor 38 67 67 50.5 74.5 74.5\n", "\nraft WA 109 135 135 109 135 135\n", "\nmencius 65 90 90 89 98 98\n",
			"\ndomino WA 46 67 67 101 117 117\n",
			"\nled by VA, durable-p50 of raft, multipaxos is 69 rather than 109\n",
			"\ndurable, by client\nfloor raft multipaxos fastpaxos mencius epaxos domino domino-direct\nVA 38 134 134 67 38 " +
				"38 38 38\n",
		}},
		{"--wan na3 --replicas VA,QC,WA --protocol raft,raft", []string{"\nraft VA 69 ", "replicas at VA, QC, WA"}},
		{"--wan na3 --leader VA --protocol raft", []string{"\nraft VA 69 "}},
		{"--wan na3 --replicas 3 --by durable-worst --protocol epaxos", []string{"3 replicas where durable-worst is best",
			"\nfloor IA WY IL 23 38 38 ", "\nepaxos IA WY IL 30 38 38 30 38 38\n"}},
		{"--wan net.json --clients left=3,right --protocol mencius", []string{
			"net.json, 2 clients, 3 replicas where durable-p50 is best", "\nmencius left middle right 20 30 30 40 40 40\n",
			"\nif each message takes all of its link's jitter\n", "\nmencius left middle right 20 30 30 45 45 45\n",
			"\nwhat links lose, their tails and their bandwidths are not in the model\n",
		}},
		{"--wan net.json --jitter 2ms --replicas middle --clients left --protocol raft",
			[]string{"1 client, replicas at middle", "\nraft middle 20 20 20 20 20 20\n", "\nraft middle 24 24 24 24 24 24\n"}},
		{"--wan na5 --busy --protocol domino-direct", []string{"\ndomino-direct 40 51 51 55 81.5 81.5\n"}},
		{"--wan na4 --protocol pbft,zyzzyva --per-client", []string{
			"na4, 9 clients, replicas at TX, WA, VA, QC; ms\n",
			"\nbyzantine-floor 11 23 23 43 67 67 43 67 67\n", "\npbft TX 30 51 51 72.5 93 93 43 67 67\n",
			"\nzyzzyva TX 68 80.5 80.5 68 80.5 80.5 43 67 67\n", "\nzyzzyva takes longer if a replica is slow or silent\n",
			"\nfirst, by client\n", "\nconfirmed, by client\n", "\nread, by client\n",
		}},
		{"--wan na3 --replicas 4 --protocol pbft --by first-p50", []string{"4 replicas where first-p50 is best"}},
		{"--wan na3 --protocol pbft", []string{"4 replicas where confirmed-p50 is best"}},
		{"--wan na3 --slack 8ms --protocol domino --per-client", []string{"\ndomino WA 46 67 67 106 117 117\n"}},
	} {
		out, errs, code := runPlanCommand(t.Context(), strings.Fields(c.args)...)
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

// TestPlanCheck has the protocols run, on a paper's network and with a slack.
func TestPlanCheck(t *testing.T) {
	out, errs, code := runPlanCommand(t.Context(), "--wan", "na3", "--replicas", "3", "--check", "--slack", "5ms",
		"--clients", "VA,TX,WY")
	if code != 0 || errs != "" {
		t.Fatalf("code %d, %s", code, errs)
	}
	_, table, ok := strings.Cut(plantest.Squeezed(out),
		"measured in the simulator, each call alone; off: the client furthest from what the model expects\n")
	if !ok || strings.Count(table, " % ") != len(plan.Systems()) || strings.Contains(table, " 0 ") {
		t.Errorf("%s", out)
	}
	out, errs, code = runPlanCommand(t.Context(), "--wan", "na3", "--check", "--busy", "--protocol", "fastpaxos,raft",
		"--clients", "VA,TX")
	if code != 0 || errs != "" || strings.Count(out, "not claimed") != 2 || !strings.Contains(out, "900 calls a second") {
		t.Errorf("code %d, %s%s", code, errs, out)
	}
}

// TestByzantinePlan has the check, JSON and the picture of protocols whose replicas may lie.
func TestByzantinePlan(t *testing.T) {
	file := filepath.Join(t.TempDir(), "plan.svg")
	out, errs, code := runPlanCommand(t.Context(), "--wan", "globe4", "--json", "--check", "--protocol", "pbft,zyzzyva",
		"--svg", file)
	var d plancmd.Document
	dec := json.NewDecoder(strings.NewReader(out))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&d); err != nil || code != 0 {
		t.Fatalf("code %d, %s%v", code, errs, err)
	}
	floor, pbft := d.Systems[0], d.Systems[1]
	if floor.System != "byzantine-floor" || floor.Clients[0].Read != nil || floor.Confirmed.P50MS != 156 {
		t.Errorf("%+v", floor)
	}
	c := pbft.Clients[0]
	if pbft.Leader != "SG" || pbft.First.P50MS != 118 || pbft.Confirmed.P50MS != 280 || pbft.ByzantineSystem.Read.P50MS !=
		156 || pbft.CrashSystem != nil || c.CrashClient != nil || c.FirstMS == 0 || c.First.MeasuredMS != c.FirstMS ||
		c.Confirmed.MeasuredMS != c.ConfirmedMS || c.Read.MeasuredMS != c.ReadMS {
		t.Errorf("%+v %+v", pbft, c)
	}
	picture, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if dots, err := plantest.Dots(picture); err != nil || dots != 3*6*3+3 {
		t.Errorf("%d dots, %v", dots, err)
	}
}

// TestPlanJSON has everything as JSON.
func TestPlanJSON(t *testing.T) {
	out, errs, code := runPlanCommand(t.Context(), "--wan", "na3", "--json", "--check", "--clients", "VA=2,IA",
		"--protocol", "domino,raft")
	var d plancmd.Document
	dec := json.NewDecoder(strings.NewReader(out))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&d); err != nil || code != 0 {
		t.Fatalf("code %d, %s%v", code, errs, err)
	}
	if d.Network != "na3" || len(d.Systems) != 3 || d.By != "" {
		t.Fatalf("%+v", d)
	}
	domino, raft := d.Systems[1], d.Systems[2]
	va, ia := domino.Clients[0], domino.Clients[1]
	if va.DurableMS != 38 || va.Via != "VA" || va.Weight != 2 || ia.DurableMS != 36 || ia.Via != "" || ia.Weight != 1 ||
		va.Durable == nil || va.Durable.MeasuredMS != 38 || !va.Durable.Claimed {
		t.Errorf("%+v", domino.Clients)
	}
	if raft.Leader != "WA" || raft.Better == nil || raft.Better.Leader != "VA" || raft.Durable.P95MS != 134 ||
		raft.Durable.JitterP95MS != 134 || strings.Join(raft.Replicas, " ") != "WA VA QC" {
		t.Errorf("%+v", raft)
	}
	if d.Systems[0].System != "floor" || d.Systems[0].Leader != "" || d.Systems[0].Clients[0].Durable != nil {
		t.Errorf("%+v", d.Systems[0])
	}
}

// TestPlanPicture draws XML that has a dot for each client, protocol and kind of acknowledgement.
func TestPlanPicture(t *testing.T) {
	for _, args := range [][]string{{"--wan", "na3"}, {"--wan", "ec2", "--replicas", "3"}} {
		file := filepath.Join(t.TempDir(), "plan.svg")
		if _, errs, code := runPlanCommand(t.Context(), append(args, "--svg", file)...); code != 0 || errs != "wrote "+file+
			"\n" {
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
		if want := 2*9*8 + 2; dots != want {
			t.Errorf("%v: %d dots, want %d", args, dots, want)
		}
	}
}

// TestPlanErrors: what makes no sense names the flag and the value.
func TestPlanErrors(t *testing.T) {
	down := network(t, `, "links": [{"from": "left", "to": "right", "down": true}]`)
	var many strings.Builder
	many.WriteString(`{"sites": ["s0"`)
	for i := 1; i < 60; i++ {
		many.WriteString(`, "s` + strings.Repeat("x", i) + `"`)
	}
	many.WriteString(`]}`)
	large := filepath.Join(t.TempDir(), "large.json")
	if err := os.WriteFile(large, []byte(many.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		args string
		code int
		want string
	}{
		{"", 2, "--wan is missing"},
		{"--wan nowhere", 2, `--wan: wan: unknown network "nowhere" (want na3, `},
		{"--wan " + t.TempDir(), 2, "is a directory"},
		{"--wan na3 --replicas 0", 2, "--replicas is 0; want 1 to 9"},
		{"--wan na3 --replicas 10", 2, "--replicas is 10; want 1 to 9"},
		{"--wan na3 --replicas WA,XX", 2, `--replicas: there is no site "XX"; the sites are VA, TX`},
		{"--wan na3 --replicas WA,WA,WA,WA,WA,WA,WA,WA,WA,WA", 2, "--replicas has 10 sites; want at most 9"},
		{"--wan na3 --replicas 3 --among WA,XX", 2, `--among: there is no site "XX"`},
		{"--wan na3 --replicas 3 --among WA,VA", 2, "there are 3 replicas to be placed, for 2 sites"},
		{"--wan na3 --among WA", 2, "there are 3 replicas to be placed, for 1 site\n"},
		{"--wan na3 --replicas 3 --among WA,VA,VA", 2, `--among has "VA" twice`},
		{"--wan na3 --replicas WA,VA --among WA", 2, "--among is for a search; give --replicas a number"},
		{"--wan na3 --leader TX", 2, `--leader: there is no replica at "TX"; they are at WA, VA, QC`},
		{"--wan na3 --replicas 3 --leader XX", 2, `--leader: there is no replica at "XX"`},
		{"--wan na3 --clients XX", 2, `--clients: there is no site "XX"`},
		{"--wan na3 --clients VA=x", 2, `--clients: the weight of VA is "x"`},
		{"--wan na3 --clients VA=NaN", 2, `--clients: the weight of VA is "NaN"`},
		{"--wan na3 --clients VA,VA=2", 2, "--clients has VA twice"},
		{"--wan na3 --clients=", 2, "--clients is empty"},
		{"--wan na3 --protocol paxos", 2, `--protocol: unknown protocol "paxos" (want raft, `},
		{"--wan na3 --by p50", 2, `--by is "p50"; want durable or executed`},
		{"--wan na3 --by read-p50", 2, `--by is "read-p50", of which raft has nothing to say`},
		{"--wan na4 --by durable-p50 --protocol pbft", 2, `--by is "durable-p50", of which pbft has nothing to say`},
		{"--wan na4 --protocol pbft,raft", 2, "pbft and raft do not survive the same faults"},
		{"--wan na3 --protocol zyzzyva --replicas 3", 2, "do not survive one that lies; want at least 4"},
		{"--wan na3 --slack -1s", 2, "--slack is -1s"},
		{"--wan na3 --slack 25h", 2, "--slack is 25h0m0s; want 0 to a day"},
		{"--wan na3 --jitter -1s", 2, "--jitter is -1s"},
		{"--wan na3 --jitter 2000000h", 2, "--jitter is 2000000h0m0s; want 0 to a day"},
		{"--wan na3 extra", 2, "unexpected argument"},
		{"--wan na3 --svg /nowhere/plan.svg", 1, "--svg: open /nowhere/plan.svg"},
		{"--wan " + down, 1, "the link left->right is down"},
		{"--wan " + large + " --replicas 9", 1, "ways to place 9 replicas at 60 sites, more than 200000"},
	} {
		_, errs, code := runPlanCommand(t.Context(), strings.Fields(c.args)...)
		if code != c.code || !strings.Contains(errs, c.want) {
			t.Errorf("%s: code %d, %s want code %d and %s", c.args, code, errs, c.code, c.want)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, errs, code := runPlanCommand(ctx, "--wan", large, "--replicas", "3"); code != 1 ||
		!strings.Contains(errs, "interrupted") {
		t.Errorf("a search that is interrupted: code %d, %s", code, errs)
	}
}
