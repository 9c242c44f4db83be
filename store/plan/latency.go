package plan

import (
	"time"

	"github.com/foresay/foresay/internal/delays"
	"github.com/foresay/foresay/wan"
)

// A Row is what a system gives to a client's transactions of a class.
type Row struct {
	System System
	Client wan.Site // "" is all clients
	Class  Class
	// Share is that of the client's transactions, from 0 to 1.
	Share float64
	// Mean, Median, P95 and Worst are of the time from the transaction's begin to the word on its
	// outcome. They are 0 if there is no such transaction, or if it is never told as long as Lost is
	// lost: see Blocked.
	Mean, Median, P95, Worst time.Duration
	// Fast is the share, of the transactions that write, of those that a fast path decides; 0 without
	// such a path.
	Fast float64
	// Blocked is the share of the transactions that cannot end while Setting.Lost is lost.
	Blocked float64
}

// Latencies returns a row for each system, client and class, in this order: of all clients first,
// each with all classes. Without systems these are the Floor and all systems.
func Latencies(s Setting, systems ...System) ([]Row, error) {
	if err := s.Validate(); err != nil {
		return nil, err
	}
	if len(systems) == 0 {
		systems = append([]System{Floor}, Systems()...)
	}
	for _, system := range systems {
		if err := system.validate(); err != nil {
			return nil, err
		}
	}
	var rows []Row
	draws := s.draw()
	for _, system := range systems {
		rows = append(rows, newModel(s, system).rows(draws)...)
	}
	return rows, nil
}

// Latency returns how long a system takes for a transaction of a client, by its number; false if it
// does not end while Setting.Lost is lost. The setting is a valid one.
func Latency(s Setting, system System, client int, t Txn) (time.Duration, bool) {
	o := newModel(s, system).at(client).outcome(t)
	return max(o.took, 0), o.took != blocked
}

// rows returns those of all clients, and of each.
func (m *model) rows(draws [][]draw) []Row {
	total := tallies{}
	var each []Row
	for i, c := range m.Clients {
		if c.Site == m.Lost {
			continue
		}
		own, from := tallies{}, m.at(i)
		for _, t := range m.place(i, draws[i]) {
			o, class := from.outcome(t), m.ClassOf(i, t)
			own.add(class, o, 1)
			total.add(class, o, c.weight())
		}
		each = append(each, own.rows(m.system, c.Site)...)
	}
	return append(total.rows(m.system, ""), each...)
}

// tallies are what became of transactions, by their classes and of all.
type tallies map[Class]*tally

type tally struct {
	sample                   delays.Sample
	all, writes, fast, stuck float64 // weights
}

func (ts tallies) add(class Class, o outcome, weight float64) {
	for _, c := range []Class{All, class} {
		t := ts[c]
		if t == nil {
			t = &tally{}
			ts[c] = t
		}
		t.all += weight
		if class != ReadOnly {
			t.writes += weight
		}
		if o.fast {
			t.fast += weight
		}
		if o.took == blocked {
			t.stuck += weight
			continue
		}
		t.sample = append(t.sample, delays.Weighted{Latency: o.took, Weight: weight})
	}
}

func (ts tallies) rows(system System, client wan.Site) (rows []Row) {
	for _, class := range Classes() {
		r := Row{System: system, Client: client, Class: class}
		if t := ts[class]; t != nil {
			r.Share, r.Blocked = t.all/ts[All].all, t.stuck/t.all
			if t.writes > 0 {
				r.Fast = t.fast / t.writes
			}
			r.Mean, r.Median, r.P95, r.Worst = t.sample.Mean(), t.sample.Quantile(0.5), t.sample.Quantile(0.95),
				t.sample.Quantile(1)
		}
		rows = append(rows, r)
	}
	return rows
}
