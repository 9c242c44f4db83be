package history

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// proposed returns proposals that returned, each before the next was called, but for those at the
// same time.
func proposed(rounds ...[]string) []Proposal[string] {
	var proposals []Proposal[string]
	for i, round := range rounds {
		for j, id := range round {
			proposals = append(proposals, Proposal[string]{
				ID: id, Client: Client(j), Call: time.Duration(10 * i), Return: time.Duration(10*i + 5), Outcome: Returned,
			})
		}
	}
	return proposals
}

func TestReplication(t *testing.T) {
	abcd := proposed([]string{"a", "b"}, []string{"c", "d"})
	lost := append(proposed([]string{"a"}), Proposal[string]{ID: "u", Client: 9, Call: 1})
	failed := append(proposed([]string{"a"}), Proposal[string]{ID: "f", Client: 9, Call: 1, Return: 2, Outcome: Failed})
	log := func(ids ...string) AppliedLog[string] { return AppliedLog[string]{Replica: "r1", IDs: ids} }
	from := func(first int, ids ...string) AppliedLog[string] {
		return AppliedLog[string]{Replica: "r2", First: first, IDs: ids}
	}
	for _, test := range []struct {
		name string
		h    Replication[string]
		want []Breach
	}{
		{"nothing", Replication[string]{}, nil},
		{"all", Replication[string]{Proposals: abcd, Logs: []AppliedLog[string]{log("b", "a", "c", "d"), from(0, "b", "a"),
			from(3, "d")}, Settled: true}, nil},
		{"gap", Replication[string]{Proposals: abcd, Logs: []AppliedLog[string]{log("b"), from(3, "d")}, Settled: true}, nil},
		{"unknown applied", Replication[string]{Proposals: lost, Logs: []AppliedLog[string]{log("u", "a")}, Settled: true},
			nil},
		{"unknown not applied", Replication[string]{Proposals: lost, Logs: []AppliedLog[string]{log("a")}, Settled: true},
			nil},
		{"tail not applied yet", Replication[string]{Proposals: abcd, Logs: []AppliedLog[string]{log("b", "a")}}, nil},
		{
			"other order", Replication[string]{Proposals: abcd, Logs: []AppliedLog[string]{log("a", "b", "c"),
				from(0, "b", "a", "c")}},
			[]Breach{{Agreement, "as number 0, replica r1 applied command a and replica r2 command b"}},
		},
		{
			"other order after a snapshot", Replication[string]{Proposals: abcd,
				Logs: []AppliedLog[string]{log("a", "b", "c", "d"), from(2, "d", "c")}},
			[]Breach{{Agreement, "as number 2, replica r1 applied command c and replica r2 command d"}},
		},
		{
			"not proposed", Replication[string]{Proposals: abcd, Logs: []AppliedLog[string]{log("a", "b", "x")}},
			[]Breach{{Validity, "replica r1 applied command x as number 2, and nobody proposed it"}},
		},
		{
			"failed", Replication[string]{Proposals: failed, Logs: []AppliedLog[string]{log("f", "a")}},
			[]Breach{{Validity, "replica r1 applied command f as number 0, and client 9 was told at 2ns that it failed"}},
		},
		{
			"twice", Replication[string]{Proposals: abcd, Logs: []AppliedLog[string]{log("a", "b", "c", "a")}},
			[]Breach{{ExactlyOnce, "replica r1 applied command a as number 0 and again as number 3"}},
		},
		{
			"twice around a restart", Replication[string]{Proposals: abcd, Logs: []AppliedLog[string]{log("a", "b"),
				from(2, "a", "c")}},
			[]Breach{{ExactlyOnce, "command a is applied twice, the second time as number 2"}},
		},
		{
			"later before earlier", Replication[string]{Proposals: abcd, Logs: []AppliedLog[string]{log("a", "c", "b", "d")}},
			[]Breach{{RealTimeOrder, "command b returned to client 1 at 5ns, before client 0 called command c at 10ns, and " +
				"was applied after it"}},
		},
		{
			"later without earlier", Replication[string]{Proposals: abcd, Logs: []AppliedLog[string]{log("a", "c")}},
			[]Breach{{RealTimeOrder, "command b returned to client 1 at 5ns, before client 0 called command c at 10ns, and " +
				"was not applied before it"}},
		},
		{
			"later without earlier, in two logs",
			Replication[string]{Proposals: abcd, Logs: []AppliedLog[string]{log("a"), from(1, "c")}},
			[]Breach{{RealTimeOrder, "command b returned to client 1 at 5ns, before client 0 called command c at 10ns, and " +
				"was not applied before it"}},
		},
		{
			"later before earlier, with an older one between", Replication[string]{
				Proposals: append(proposed([]string{"a"}, []string{"b"}), Proposal[string]{ID: "u"}),
				Logs:      []AppliedLog[string]{log("b", "u", "a")},
			},
			[]Breach{{RealTimeOrder, "command a returned to client 0 at 5ns, before client 0 called command b at 10ns, and " +
				"was applied after it"}},
		},
		{
			"touching", Replication[string]{
				Proposals: append(proposed([]string{"a"}), Proposal[string]{ID: "b", Call: 5, Return: 6, Outcome: Returned}),
				Logs:      []AppliedLog[string]{log("b", "a")},
			}, nil,
		},
		{
			"lost", Replication[string]{Proposals: abcd, Logs: []AppliedLog[string]{log("a", "b", "c")}, Settled: true},
			[]Breach{{Durability, "command d returned to client 1 at 15ns, and no replica applied it"}},
		},
		{
			"all lost", Replication[string]{Proposals: proposed([]string{"a"}), Settled: true},
			[]Breach{{Durability, "command a returned to client 0 at 5ns, and no replica applied it"}},
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			report, err := CheckReplication(test.h)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, report.Breaches); diff != "" {
				t.Errorf("breaches (-want +got):\n%s", diff)
			}
			if got := report.Verdict(); (got == OK) != (test.want == nil) || got == Undecided {
				t.Errorf("the verdict is %v", got)
			}
		})
	}
}

func TestReplicationBadInput(t *testing.T) {
	for _, test := range []struct {
		h    Replication[uint64]
		want string
	}{
		{
			Replication[uint64]{Proposals: []Proposal[uint64]{{ID: 7}, {ID: 7}}},
			"history: command 7 is proposed twice: a retry is one proposal, from its first call to its last return",
		},
		{
			Replication[uint64]{Proposals: []Proposal[uint64]{{ID: 7, Call: 2, Return: 1, Outcome: Returned}}},
			"history: command 7: returns at 1ns, before its call at 2ns",
		},
		{
			Replication[uint64]{Logs: []AppliedLog[uint64]{{Replica: "r", First: -1}}},
			"history: replica r: its log begins after -1 commands",
		},
	} {
		if _, err := CheckReplication(test.h); err == nil || err.Error() != test.want {
			t.Errorf("got %v, want %s", err, test.want)
		}
	}
}

// TestRandomReplication applies commands in an order between their calls and returns, on replicas
// that crash; then it plants one bug.
func TestRandomReplication(t *testing.T) {
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 0))
		h := randomReplication(r)
		if report, err := CheckReplication(h); err != nil || report.Verdict() != OK {
			t.Fatalf("seed %d: %v, %v", seed, report, err)
		}
		for _, plant := range []struct {
			rule Rule
			do   func(log *AppliedLog[uint64], i int)
		}{
			{Agreement, func(log *AppliedLog[uint64], i int) { log.IDs[i], log.IDs[i+1] = log.IDs[i+1], log.IDs[i] }},
			{Agreement, func(log *AppliedLog[uint64], i int) { log.IDs = append(log.IDs[:i], log.IDs[i+1:]...) }},
			{Validity, func(log *AppliedLog[uint64], i int) { log.IDs[i] = 1000 }},
			{ExactlyOnce, func(log *AppliedLog[uint64], i int) { log.IDs[i+1] = log.IDs[i] }},
		} {
			planted := h
			planted.Logs = nil
			for _, log := range h.Logs {
				log.IDs = slices.Clone(log.IDs)
				planted.Logs = append(planted.Logs, log)
			}
			plant.do(&planted.Logs[1], r.IntN(len(planted.Logs[1].IDs)-2))
			report, err := CheckReplication(planted)
			if err != nil {
				t.Fatal(err)
			}
			found := false
			for _, b := range report.Breaches {
				found = found || b.Rule == plant.rule
			}
			if !found {
				t.Fatalf("seed %d: no breach of %v: %v", seed, plant.rule, report)
			}
		}
		// All replicas agree on the wrong order.
		wrong := slices.Clone(h.Logs[0].IDs)
		last := len(wrong) - 1
		wrong[0], wrong[last] = wrong[last], wrong[0]
		for i := range h.Logs {
			h.Logs[i] = AppliedLog[uint64]{Replica: fmt.Sprint(i), IDs: wrong}
		}
		if report, _ := CheckReplication(h); len(report.Breaches) != 1 || report.Breaches[0].Rule != RealTimeOrder {
			t.Fatalf("seed %d: not the real-time order alone: %v", seed, report)
		}
	}
}

func randomReplication(r *rand.Rand) Replication[uint64] {
	const commands = 100
	h := Replication[uint64]{Settled: true}
	var order []uint64
	for i := range commands {
		at := time.Duration(100 * i)
		p := Proposal[uint64]{ID: uint64(i), Client: Client(r.IntN(5)), Call: at - time.Duration(r.IntN(500)), Return: at +
			time.Duration(r.IntN(500)), Outcome: Returned}
		if i > 0 && i < commands-1 && r.IntN(10) == 0 {
			p.Return, p.Outcome = 0, Unknown
		}
		h.Proposals = append(h.Proposals, p)
		if p.Outcome == Returned || r.IntN(2) == 0 {
			order = append(order, p.ID)
		}
	}
	h.Logs = append(h.Logs, AppliedLog[uint64]{Replica: "whole", IDs: order})
	for i := range 3 {
		first := r.IntN(len(order) / 2)
		h.Logs = append(h.Logs, AppliedLog[uint64]{
			Replica: fmt.Sprint(i), First: first, IDs: slices.Clone(order[first : first+10+r.IntN(len(order)-first-10)]),
		})
	}
	return h
}
