package storetest

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/foresay/foresay/internal/seed"
	"github.com/foresay/foresay/sim"
	"github.com/foresay/foresay/store"
	"github.com/foresay/foresay/store/storedeploy"
)

// Programs plays so many seeds, or a fifth of them, of programs whose outcome tells by itself
// whether transactions came one after the other: a bank, whose accounts hold the same in all; keys
// to which all that is told has been added, once; and clients of whom each reads what the one
// before it writes, two of them, which is write skew, and four.
func Programs(t *testing.T, subject Subject, all int) {
	swarm := func(seed uint64, sc Scenario) Scenario {
		sc.Near, sc.Lose, sc.Faults = seed%2 == 0, seed%3 == 0, sim.Swarm(seed, sim.AllFaults)
		return sc
	}
	ring := func(seed uint64, clients int) Scenario {
		sc := Scenario{Clients: clients, Keys: clients, Ring: true, Near: true, Faults: sim.Skew | sim.Jitter}
		if seed%3 == 0 {
			return swarm(seed, sc)
		}
		return sc
	}
	for name, program := range map[string]func(seed uint64) Scenario{
		"bank":      func(seed uint64) Scenario { return swarm(seed, Scenario{Clients: 6, Keys: 5, Bank: true}) },
		"appends":   func(seed uint64) Scenario { return swarm(seed, Scenario{Clients: 6, Keys: 6, Appends: true}) },
		"writeskew": func(seed uint64) Scenario { return ring(seed, 2) },
		"ring":      func(seed uint64) Scenario { return ring(seed, 4) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			first, seeds, committed := seed.First(t, 1), seed.Count(t, all), 0
			for n := first; n < first+uint64(seeds); n++ {
				sc := program(n)
				sc.Seed, sc.Test = n, t.Name()
				w, err := New(subject, sc)
				if err != nil {
					t.Fatal(err)
				}
				if err := w.Play(8 * time.Second); err != nil {
					t.Fatalf("seed %d, faults %v: %v", n, sc.Faults, err)
				}
				committed += w.Verdicts[store.Committed]
			}
			if committed < 5*seeds {
				t.Errorf("only %d transactions committed in %d seeds", committed, seeds)
			}
		})
	}
}

// CrashInEachWrite has servers crash in each of their writes, one after the other: a leader's, a
// follower's, and that of a group that only coordinates, with what was being written lost, kept,
// or a part of both. A run that names no seed plays a fifth of all, with other servers and writes
// each. Writes are counted from one second after the store has begun, every third from its first.
func CrashInEachWrite(t *testing.T, subject Subject) {
	const writes = 40
	keeps := []sim.Keep{sim.KeepNone, 1, sim.KeepAll}
	layout := Coordinated(storedeploy.Layout(3, 2), subject.Protocol)
	all := min(3, len(layout.Sites[0].Shards)) * writes * len(keeps)
	plays := min(all, seed.Count(t, all))
	crashes := 0
	for i := range plays {
		n := i * all / plays
		keep, write, shard := keeps[n%len(keeps)], uint64(1+n/len(keeps)%writes), n/len(keeps)/writes
		id := layout.Sites[shard%2].Shards[shard]
		w, err := New(subject, Scenario{Seed: uint64(n + 1), Clients: 4, Keys: 4, Test: t.Name()})
		if err != nil {
			t.Fatal(err)
		}
		at := time.Duration(0)
		if write%3 > 0 {
			at = time.Second + time.Duration(write%4)*RoundTrip
		}
		w.Sim.At(at, func() { w.Sim.CrashInWrite(id, w.Sim.Writes(id)+write, keep) })
		w.Sim.At(at+2*time.Second, func() {
			if w.Sim.Get(id) == nil {
				crashes++
			}
			w.Sim.Restart(id)
		})
		if err := w.Play(4 * time.Second); err != nil {
			t.Fatalf("server %d, write %d from %v on, keeping %d: %v", id, write, at, keep, err)
		}
	}
	if crashes < plays*3/4 {
		t.Errorf("of %d servers only %d have crashed", plays, crashes)
	}
}

// opening is what each account of a bank holds at first.
const opening = 100

// nextTransfer has a transaction move something from an account to another one, or look at all.
func (a *Application) nextTransfer() {
	w := a.world
	accounts, looks := w.Rand.Perm(w.Scenario.Keys), w.Rand.IntN(4) == 0
	if !looks {
		accounts = accounts[:2]
	}
	for _, k := range accounts {
		a.ops = append(a.ops, op{key: store.Key(fmt.Sprintf("k%d", k)), read: true, write: !looks})
	}
}

// moved returns what a transfer leaves in an account.
func (a *Application) moved(account store.Key) []byte {
	amount := 1 + a.number%9
	if account == a.ops[0].key {
		amount = -amount
	}
	return fmt.Appendf(nil, "%d.%s %d", a.number, account, balance(a.seen[account])+amount)
}

// balance is what an account holds.
func balance(v store.Value) int {
	if !v.Present {
		return opening
	}
	_, text, _ := strings.Cut(string(v.Bytes), " ")
	n, err := strconv.Atoi(text)
	if err != nil {
		panic(fmt.Sprintf("an account holds %q", v.Bytes))
	}
	return n
}

// audit returns an error unless the accounts of a bank hold in all what they did at first.
func (w *World) audit(accounts map[store.Key]store.Value) error {
	sum := 0
	for k := range w.Scenario.Keys {
		sum += balance(accounts[store.Key(fmt.Sprintf("k%d", k))])
	}
	if want := opening * w.Scenario.Keys; sum != want {
		return fmt.Errorf("all accounts together hold %d, want %d: %v", sum, want, accounts)
	}
	return nil
}

// auditSites is audit of what sites hold in the end.
func (w *World) auditSites() error {
	accounts, l := map[store.Key]store.Value{}, w.holding()
	for shard := range l.Sites[0].Shards {
		values, err := w.values(l.Sites[l.SitesOf(shard)[0]].Shards[shard])
		if err != nil {
			return err
		}
		for k, v := range values {
			accounts[k] = v
		}
	}
	return w.audit(accounts)
}
