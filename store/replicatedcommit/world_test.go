package replicatedcommit

import (
	"fmt"
	"iter"
	"os"
	"testing"

	"github.com/foresay/foresay/internal/heap"
	"github.com/foresay/foresay/internal/msgtext"
	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/store"
	"github.com/foresay/foresay/store/kit"
	"github.com/foresay/foresay/store/storedeploy"
	"github.com/foresay/foresay/store/storetest"
	"github.com/foresay/foresay/store/storetest/talk"
)

const roundTrip = storetest.RoundTrip

func layout(sites, shards int) store.Layout { return storedeploy.Layout(sites, shards) }

// subject is Replicated Commit as package storetest wants it. The pages of servers that are copied
// have so many entries; 0 is as many as otherwise.
func subject(page int) storetest.Subject {
	p := Protocol()
	if page > 0 {
		p.NewServer = kit.NodeOf(func(cfg store.Config) (*server, error) {
			s, err := newServer(cfg)
			if err == nil {
				s.page = page
			}
			return s, err
		})
	}
	return storetest.Subject{Protocol: p, Package: "./store/replicatedcommit", Values: valuesOn, Left: left}
}

// valuesOn returns what is on a server's disk.
func valuesOn(_ protocol.Node[store.Message], disk protocol.Keys) iter.Seq2[store.Key, store.Value] {
	return func(yield func(store.Key, store.Value) bool) {
		for k, b := range disk.Scan([]byte(valuePrefix), afterPrefix(valuePrefix)) {
			key := store.Key(k[len(valuePrefix):])
			if !yield(key, values.Parse(key, b)) {
				return
			}
		}
	}
}

func left(n protocol.Node[store.Message]) string {
	s := n.(*server)
	if s.newcomer.syncing {
		return "copies"
	}
	if n := len(s.debts) + len(s.catchUp.owing); n > 0 || s.catchUp.source != 0 {
		return fmt.Sprintf("owes to %d servers, is owed by %d and copies server %d", len(s.debts), len(s.catchUp.owing),
			s.catchUp.source)
	}
	if len(s.locks)+s.waiters+len(s.holding.byTxn)+len(s.txns) > 0 {
		return fmt.Sprintf("has %d locks, %d waiting reads, %d held requests, %d transactions", len(s.locks), s.waiters,
			len(s.holding.byTxn), len(s.txns))
	}
	return ""
}

// submitted returns the transaction that a client node waits for, one at most.
func submitted(n protocol.Node[store.Message]) (store.Txn, bool) {
	for s := range n.(*client).Submits() {
		return s.Txn, true
	}
	return store.Txn{}, false
}

// world is a simulated store whose sites may be replaced.
type world struct {
	*storetest.World
	newSites int
	hasty    bool                   // a site leaves before what it voted for is settled
	settled  map[store.Version]bool // known to have been applied before a site was lost
	replaced func()                 // is called when sites were replaced; nil: nothing
}

func newWorld(sc storetest.Scenario) (*world, error) { return newWorldOf(subject(0), sc) }

func newWorldOf(s storetest.Subject, sc storetest.Scenario) (*world, error) {
	w, err := storetest.New(s, sc)
	if err != nil {
		return nil, err
	}
	return &world{World: w, settled: map[store.Version]bool{}}, nil
}

func playOnce(sc storetest.Scenario) (*world, error) {
	w, err := storetest.PlayOnce(subject(0), sc)
	if w == nil {
		return nil, err
	}
	return &world{World: w}, err
}

func swarm(seed uint64) storetest.Scenario { return storetest.Swarm(seed) }

// TestScenarios has the protocol talk: testdata/scenarios, which are there to be read.
func TestScenarios(t *testing.T) {
	talk.Play(t, Protocol(), func(_ msgtext.Format, v any) (string, bool) {
		s, ok := v.(txnState)
		if !ok {
			return "", false
		}
		names := [...]string{
			undecided: "undecided", yes: "yes", no: "no", wanting: "wanting", committed: "committed", aborted: "aborted",
			old: "old", gone: "gone",
		}
		return names[s], true
	})
}

// TestConformance plays 500 seeds under faults, or a fifth of them.
func TestConformance(t *testing.T) { storetest.Conformance(t, subject(0), 500) }

func TestPrograms(t *testing.T) { storetest.Programs(t, subject(0), 40) }

func TestDay(t *testing.T) { storetest.Day(t, subject(0)) }

func TestCrashInEachWrite(t *testing.T) { storetest.CrashInEachWrite(t, subject(0)) }

func TestMain(m *testing.M) { os.Exit(heap.RunTests(m)) }
