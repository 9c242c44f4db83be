package plan_test

import (
	"testing"
	"time"

	"github.com/foresay/foresay/store/plan"
	"github.com/foresay/foresay/wan"
)

// TestMeasuredFloor: who only knows how far sites are from itself gets the floor and the class that
// the model has with the whole network; and nothing, if a majority has not answered.
func TestMeasuredFloor(t *testing.T) {
	s := ring(wan.Carousel(), updates{keys(t), 2})
	for i, c := range s.Clients {
		m := plan.Measured{Trips: map[wan.Site]time.Duration{}, Placement: s.Placement, Leaders: map[int]wan.Site{}}
		for _, site := range s.WAN.Sites() {
			m.Trips[site] = s.WAN.RTT(c.Site, site)
		}
		for k, at := range s.Placement {
			m.Leaders[k] = at[0]
		}
		for a := range s.Placement {
			for b := range s.Placement {
				for _, txn := range []plan.Txn{{Reads: []int{a, b}}, {Reads: []int{a}, Writes: []int{b}}, {Writes: []int{a, b}}} {
					want, _ := plan.Latency(s, plan.Floor, i, txn)
					class, floor, ok := m.Floor(txn)
					if !ok || floor != want || class != s.ClassOf(i, txn) {
						t.Errorf("%s, %+v: %s, %v, %v; the model has %s, %v", c.Site, txn, class, floor, ok,
							s.ClassOf(i, txn), want)
					}
				}
			}
		}
		for _, at := range s.Placement[0][:2] {
			delete(m.Trips, at)
		}
		if _, floor, ok := m.Floor(plan.Txn{Writes: []int{0}}); ok {
			t.Errorf("with one of three copies the floor is %v", floor)
		}
	}
}

// TestCommitTrips: where all sites are equally far a commit takes as many round trips as is said or
// less, and of some client more than one fewer.
func TestCommitTrips(t *testing.T) {
	const trip = 100 * time.Millisecond
	s := ring(wan.Uniform(trip, "a", "b", "c", "d", "e"), updates{keys(t), 2})
	s.Load.Declared, s.Placement = false, s.Placement[:3] // d and e lead nothing
	for _, system := range plan.Systems() {
		for _, txn := range []plan.Txn{{Reads: []int{0, 2}}, {Reads: []int{2}, Writes: []int{2}},
			{Reads: []int{0}, Writes: []int{0, 2}}} {
			for _, fast := range []bool{false, true} {
				says, longest := system.CommitTrips(txn, fast), time.Duration(0)
				for i := range s.Clients {
					took, fastly := plan.LatencyOfCommit(s, system, i, txn)
					if fastly == fast {
						longest = max(longest, took)
					}
				}
				few := longest > 0 && longest <= time.Duration(says-1)*trip
				if system == plan.TAPIR && len(txn.Writes) == 0 {
					few = false // the model knows of no slow path there: it is for those that are in each other's way
				}
				if longest > time.Duration(says)*trip || few {
					t.Errorf("%s, %+v, fast %v: it says %d, and it takes up to %v", system, txn, fast, says, longest)
				}
			}
		}
	}
}
