package catalog_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/foresay/foresay/internal/catalog"
	"github.com/foresay/foresay/smr"
	"github.com/foresay/foresay/smr/kv"
	"github.com/foresay/foresay/smr/smrtest"
)

// TestNames: what the catalog calls the protocols is what they call themselves, in one order.
func TestNames(t *testing.T) {
	var names, stores []string
	for _, p := range catalog.Protocols() {
		names = append(names, p.Name)
	}
	for _, p := range catalog.Stores() {
		stores = append(stores, p.Name)
	}
	if got := catalog.Names(); !slices.Equal(got, names) {
		t.Errorf("the names are %q, want %q", got, names)
	}
	if got := catalog.StoreNames(); !slices.Equal(got, stores) {
		t.Errorf("the names of stores are %q, want %q", got, stores)
	}
}

func TestProtocols(t *testing.T) {
	names := catalog.Names()
	if sorted := slices.Compact(slices.Sorted(slices.Values(names))); len(sorted) != len(names) || len(names) < 2 {
		t.Errorf("the names are %q", names)
	}
	for _, p := range catalog.Protocols() {
		got, err := catalog.Protocol(p.Name)
		if err != nil || got.Name != p.Name {
			t.Errorf("Protocol(%q) is %q, %v", p.Name, got.Name, err)
		}
		group := []smr.Member{{ID: 1, Address: "a"}}
		if _, err := p.NewReplica(smr.ReplicaConfig{ID: 1, Members: group, Machine: kv.New()}); err != nil {
			t.Errorf("%s makes no replica: %v", p.Name, err)
		}
		if _, err := p.NewClient(smr.ClientConfig{ID: 70000, Members: group}); err != nil {
			t.Errorf("%s makes no client: %v", p.Name, err)
		}
		if p.Codec == nil || p.Doc == "" {
			t.Errorf("%s has no codec or no description", p.Name)
		}
	}
}

func TestUnknownProtocol(t *testing.T) {
	_, err := catalog.Protocol("paxos")
	if err == nil || !strings.Contains(err.Error(),
		`"paxos" (want raft, multipaxos, fastpaxos, mencius, epaxos, domino, domino-direct; did you mean epaxos?)`) {
		t.Errorf("the error is %v, want one that lists the names", err)
	}
}

// TestCutLog: a replica whose disk went back is refused, with each protocol.
func TestCutLog(t *testing.T) {
	for _, p := range catalog.Protocols() {
		t.Run(p.Name, func(t *testing.T) { smrtest.CutLog(t, p) })
	}
}
