package storecmd

import (
	"bytes"
	"context"
	"encoding/json"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/foresay/foresay/internal/cli/command"
	"github.com/foresay/foresay/store/client"
	"github.com/foresay/foresay/store/storeconfig"
	"github.com/foresay/foresay/store/storeservice"
)

// TestWhatIsCopiedIsShown: who waits for a site that copies is told how much that is and how fast
// it goes, in a line every ten seconds.
func TestWhatIsCopiedIsShown(t *testing.T) {
	status := func(bytes uint64) []storeservice.Status {
		shard := func(state string) storeservice.ShardStatus {
			return storeservice.ShardStatus{State: state, CopiedValues: bytes / 100, CopiedBytes: bytes, CopiedServers: 1,
				NeededServers: 2}
		}
		return []storeservice.Status{
			{Machine: "a", Shards: []storeservice.ShardStatus{shard(storeservice.Admitted)}},
			{Machine: "d", Shards: []storeservice.ShardStatus{shard(storeservice.Syncing), shard(storeservice.Syncing)}},
		}
	}
	var out bytes.Buffer
	shown := copyShown{bar: command.NewProgress(&out)}
	now := time.Now()
	for i := range uint64(24) { // seconds
		shown.show(status(1e6*i), now.Add(time.Duration(i)*time.Second))
	}
	shown.show(nil, now.Add(time.Hour))
	want := `d: copying, 2 of 4 servers done, 0 values, 0.0 MB
d: copying, 2 of 4 servers done, 200000 values, 20.0 MB, 2.0 MB/s
d: copying, 2 of 4 servers done, 400000 values, 40.0 MB, 2.0 MB/s
`
	if out.String() != want {
		t.Errorf("it says\n%swant\n%s", &out, want)
	}
}

// TestOrderIsShown: where requests are handled by arrival there is a column for that.
func TestOrderIsShown(t *testing.T) {
	machine := func(name string, o *storeservice.OrderStatus) storeservice.Status {
		return storeservice.Status{Site: name, Machine: name, Address: "x", Epoch: 1, State: storeservice.Admitted,
			Shards: []storeservice.ShardStatus{{State: storeservice.Admitted, Order: o}}}
	}
	var out bytes.Buffer
	if err := writeStatus(&out, []storeservice.Status{
		machine("a", &storeservice.OrderStatus{Held: 195, Late: 4, Full: 1, MeanMS: 31.25}),
		machine("b", &storeservice.OrderStatus{}),
	}, "dir"); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"held by arrival\n", "  31.2 ms, 2.0 % late\n", "  -\n"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("it says\n%swant %q", &out, want)
		}
	}
}

// TestClocksAreShown: where shards are led, and reads go by timestamps, there are columns for that,
// and a machine whose clock is off is named below.
func TestClocksAreShown(t *testing.T) {
	at := time.Unix(9, 0)
	clock := storeservice.ClockStatus{Leads: true, ReadCeiling: &at, ReadCeilingAheadSeconds: 0.61, Sites: 2,
		OffsetMS: -0.25, WithinMS: 50.04, MaxOffsetMS: 10}
	off := storeservice.ClockStatus{Sites: 2, OffsetMS: 300, WithinMS: 50, MaxOffsetMS: 10, Off: true}
	alone := storeservice.ClockStatus{MaxOffsetMS: 2.5}
	machine := func(name string, term uint64, c *storeservice.ClockStatus) storeservice.Status {
		return storeservice.Status{Site: name, Machine: name, Address: "x", Epoch: 1, State: storeservice.Admitted,
			Shards: []storeservice.ShardStatus{{State: storeservice.Admitted, Leads: name == "a", Term: term, Clock: c,
				Undecided: term, OldestUndecidedSeconds: float64(term) - 6}}}
	}
	show := func(all ...storeservice.Status) string {
		var out bytes.Buffer
		if err := writeStatus(&out, all, "dir"); err != nil {
			t.Fatal(err)
		}
		return out.String()
	}
	want := []string{
		"site machine address epoch uptime shard state transactions undecided blocked locked keys held leads term read " +
			"ceiling clock offset",
		"a a x 1 0s 0 admitted 0 7 (for 1 s) 0 0 0 yes 7 +0.6 s -0.2 ± 50.0 ms (max 10 ms)",
		"b b x 1 0s 0 admitted 0 6 0 0 0 no 6 - +300.0 ± 50.0 ms (max 10 ms)",
		"c c x 1 0s 0 admitted 0 0 0 0 0 - - - - (max 2.5 ms)",
		"d d x - - - unreachable - - - - -",
		"the clock of machine b is 300.0 ms away from those of other sites, more than max_offset, 10 ms: it serves no " +
			"strict reads at timestamps",
	}
	gone := storeservice.Status{Site: "d", Machine: "d", Address: "x", State: storeservice.Unreachable}
	got := show(machine("a", 7, &clock), machine("b", 6, &off), machine("c", 0, &alone), gone)
	for _, line := range want {
		if !slices.ContainsFunc(strings.Split(got, "\n"), func(l string) bool {
			return strings.Join(strings.Fields(l), " ") == line
		}) {
			t.Errorf("it says\n%swithout\n%s", got, line)
		}
	}
	if n := strings.Count(got, "the clock of machine"); n != 1 {
		t.Errorf("it names %d machines whose clock is off", n)
	}
	if got := show(machine("a", 7, nil)); strings.Contains(got, "clock") || !strings.Contains(got, "yes    7\n") {
		t.Errorf("without timestamps it says\n%s", got)
	}
	if got := show(machine("a", 0, nil)); strings.Contains(got, "leads") {
		t.Errorf("without groups it says\n%s", got)
	}
}

// TestMoveIsShown: a copy's move that is under way is told below the table, with the command that
// completes it, as all machines together know it.
func TestMoveIsShown(t *testing.T) {
	machine := func(site, state string, m storeservice.MoveStatus) storeservice.Status {
		m.From, m.To = "a", "d"
		return storeservice.Status{Site: site, Machine: site, Address: "x", Epoch: 2, State: storeservice.Admitted,
			Shards: []storeservice.ShardStatus{{Shard: 3, State: state, Move: &m}}}
	}
	for want, statuses := range map[string][]storeservice.Status{
		"partition 3 is being moved from a to d: 1.5 MB copied; replica 9 is being brought up to date\n" +
			"  foresay store move --partition 3 --from a --to d completes it\n": {
			machine("a", storeservice.Admitted,
				storeservice.MoveStatus{Leads: true, Waits: "replica 9 is being brought up to date"}),
			machine("d", storeservice.Joining, storeservice.MoveStatus{Joins: true, ArrivedBytes: 1.5e6}),
		},
		"partition 3 is being moved from a to d: 0.0 MB copied; nobody leads the partition\n" +
			"  foresay store move --partition 3 --from a --to d completes it\n": {
			machine("a", storeservice.Admitted, storeservice.MoveStatus{}),
		},
		"partition 3 is being moved from a to d: 1.5 MB copied, done but for the next epoch\n" +
			"  foresay store move --partition 3 --from a --to d completes it\n": {
			machine("a", storeservice.Left, storeservice.MoveStatus{Left: true}),
			machine("d", storeservice.Admitted,
				storeservice.MoveStatus{Leads: true, Done: true, Moved: true, ArrivedBytes: 1.5e6}),
		},
		"partition 3 is being moved from a to d, which is being taken back; the group waits\n" +
			"  foresay store move --partition 3 --from d --to a completes it\n": {
			machine("b", storeservice.Admitted, storeservice.MoveStatus{Back: true, Leads: true, Waits: "the group waits"}),
		},
	} {
		var out bytes.Buffer
		if err := writeStatus(&out, statuses, "dir"); err != nil {
			t.Fatal(err)
		}
		if _, below, _ := strings.Cut(out.String(), "\npartition"); "partition"+below != want {
			t.Errorf("it says\n%s\nwant\n%s", &out, want)
		}
	}
}

// TestSpeculationIsShown: where transactions build on each other there is a table for that, and a
// column of the snapshots that are served.
func TestSpeculationIsShown(t *testing.T) {
	at := time.Unix(9, 0)
	machine := func(name string, c *storeservice.SpeculationStatus, s *storeservice.SnapshotStatus) storeservice.Status {
		return storeservice.Status{Site: name, Machine: name, Address: "x", Epoch: 1, State: storeservice.Admitted,
			Speculation: c, Shards: []storeservice.ShardStatus{{State: storeservice.Admitted, Snapshots: s}}}
	}
	var out bytes.Buffer
	if err := writeStatus(&out, []storeservice.Status{
		machine("a", &storeservice.SpeculationStatus{LocalCommits: 200, Misspeculated: 5, Builders: 40, MeanChain: 0.25,
			LongestChain: 7, Unfinal: 3, Blocked: 2, OldestBlocked: "300/7", OldestBlockedSeconds: 1.25, Degree: "4",
			Tuning: &storeservice.TuningStatus{Settled: true, Windows: 12, Last: []storeservice.TuningWindow{
				{Degree: "reads", Seconds: 1.5, CommitsPerSecond: 80, AbortPercent: 2.5, P99MS: 410},
				{Degree: "4", Seconds: 2, CommitsPerSecond: 120.25, P99MS: 505}}},
			Aborted: []storeservice.CauseCount{{Cause: "local certification"}, {Cause: "cascade", Transactions: 4},
				{Cause: "gave way", Transactions: 1}}},
			&storeservice.SnapshotStatus{Serves: true, Ceiling: &at, CeilingAheadSeconds: 0.4, Horizon: &at,
				HorizonAgeSeconds: 60, Silent: []string{"b"}}),
		machine("b", &storeservice.SpeculationStatus{Degree: "4"}, &storeservice.SnapshotStatus{}),
		machine("c", &storeservice.SpeculationStatus{}, &storeservice.SnapshotStatus{Serves: true}),
	}, "dir"); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"  snapshots\n", "  up to +0.4 s, from -60 s, not at b\n", "  serves none\n", "  none was read\n",
		"a               4       200            5 (2.5 %)      40               0.25, 7          3          " +
			"2 (300/7 for 1.2 s)  " +
			"4 cascade, 1 gave way\n",
		"b               4       0              0              0                0.00, 0          0          " +
			"0                    -\n",
		"\nthe degree is chosen at a: settled, 12 windows so far\n", "reads   1.5 s   80.0/s   2.5 %    410 ms\n",
		"4       2.0 s   120.2/s  0.0 %    505 ms\n",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("it says\n%swant %q", &out, want)
		}
	}
}

// TestStatusOfSpeculation asks a store that runs.
func TestStatusOfSpeculation(t *testing.T) {
	file, conn := cluster(t, "str", 2)
	txns, err := conn.Transactions(client.GRPC, 0)
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if err := txns.Txn(t.Context(), func(_ context.Context, tx *client.Tx) error {
			return tx.Put("k", []byte("v"))
		}); err != nil {
			t.Fatal(err)
		}
	}
	out, err := run(t, "status", "--client", file, "--json")
	if err != nil {
		t.Fatal(err)
	}
	var got []storeservice.Status
	if err := json.Unmarshal([]byte(out), &got); err != nil {
		t.Fatal(err)
	}
	local, served := uint64(0), 0
	for _, s := range got {
		if s.Speculation == nil {
			t.Fatalf("machine %s says nothing of speculation:\n%s", s.Machine, out)
		}
		if s.Speculation.Degree != "8" {
			t.Errorf("machine %s speculates %q", s.Machine, s.Speculation.Degree)
		}
		local += s.Speculation.LocalCommits
		for _, sh := range s.Shards {
			if sh.Snapshots != nil && sh.Snapshots.Serves && sh.Snapshots.Ceiling != nil {
				served++
			}
		}
	}
	if local != 3 || served < 3 {
		t.Errorf("%d local commits, want 3, and %d servers that have served snapshots:\n%s", local, served, out)
	}
}

// TestReadersAreAskedFor: in a new store so many copies serve reads, if there are as many.
func TestReadersAreAskedFor(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "made")
	for args, want := range map[string]string{
		"--protocol str --readers 4":              "--readers: it is 4, and a shard has no more than 3 copies",
		"--protocol str --replicas 2 --readers 3": "--readers: it is 3, and a shard has no more than 2 copies",
		"--protocol str --readers 1":              "--readers: it is 1; want at least 2",
		"--protocol carousel --readers 2":         "--readers: in a store of the protocol carousel copies that serve",
	} {
		for _, verb := range []string{"init --dir " + dir, "dev"} {
			out, err := run(t, strings.Fields(verb+" "+args)...)
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s %s: error %v, output %s", verb, args, err, out)
			}
		}
	}
	if _, err := run(t, "init", "--dir", dir, "--protocol", "str", "--readers", "2"); err != nil {
		t.Fatal(err)
	}
	s, err := storeconfig.ReadStore(filepath.Join(dir, storeconfig.StoreFile))
	if err != nil || s.Readers != 2 {
		t.Errorf("the file says %d, error %v", s.Readers, err)
	}
}

// TestSpeculateIsAskedFor: a new store has the degree that is asked for, and none that is not one.
func TestSpeculateIsAskedFor(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "made")
	for args, want := range map[string]string{
		"--protocol str --speculate 9":                      `"--speculate" flag: one of tuned, off, reads, 1,`,
		"--protocol str --speculate=":                       `"--speculate" flag: one of tuned, off, reads, 1,`,
		"--protocol str --mode clocksi-rep --speculate off": "--speculate: transactions of str in mode clocksi-rep build on",
		"--speculate off":                                   "--speculate: transactions of replicatedcommit build on nothing",
	} {
		for _, verb := range []string{"init --dir " + dir, "dev"} {
			out, err := run(t, strings.Fields(verb+" "+args)...)
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s %s: error %v, output %s", verb, args, err, out)
			}
		}
	}
	if _, err := run(t, "init", "--dir", dir, "--protocol", "str", "--speculate", "reads"); err != nil {
		t.Fatal(err)
	}
	s, err := storeconfig.ReadStore(filepath.Join(dir, storeconfig.StoreFile))
	if err != nil || s.Speculate != "reads" {
		t.Errorf("the file says %q, error %v", s.Speculate, err)
	}
}
