package rubis

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"
)

// TestTable: what leads away from states adds up to what it does in RUBiS's table.
func TestTable(t *testing.T) {
	sums := map[State]float64{Home: .97, Register: .9979, RegisterUser: .99, Browse: 1.0021, SearchItemsInCategory: 1.2079,
		SearchItemsInRegion: 1.2079, ViewItem: 1.2079, ViewUserInfo: 1.2079, StoreBuyNow: 1, StoreBid: 1, StoreComment: 1,
		RegisterItem: 1, AboutMe: 1.168}
	into := map[State]int{}
	for from, row := range transitions() {
		sum := 0.0
		for to, p := range row {
			sum += p
			if p > 0 {
				into[State(to)]++
			}
		}
		want, ok := sums[State(from)]
		if !ok {
			want = 1.0079
		}
		if math.Abs(sum-want) > 1e-9 {
			t.Errorf("%v: the entries add up to %.4f, want %.4f", State(from), sum, want)
		}
	}
	// Besides the header, how many states lead to one.
	for s, want := range map[State]int{PutCommentAuth: 0, PutComment: 3, StoreComment: 1, ViewUserInfo: 5, PutBidAuth: 4,
		BuyNowAuth: 1, ViewItem: 3, back: 3, end: 10, Home: 26, Register: 25} {
		if into[s] != want {
			t.Errorf("%d states lead to %v, want %d", into[s], s, want)
		}
	}
}

// critical returns what chi-square exceeds once in 10,000 times, by Wilson and Hilferty.
func critical(freedom float64) float64 {
	const z = 3.719
	return freedom * math.Pow(1-2/(9*freedom)+z*math.Sqrt(2/(9*freedom)), 3)
}

// TestSteps: from each state, moves are as frequent as the table says, as far as the sum of what
// comes before leaves room.
func TestSteps(t *testing.T) {
	table := transitions()
	for s := range States {
		const n = 50_000
		r := rand.New(rand.NewPCG(7, uint64(s)))
		var got, want [moves]float64
		for range n {
			w := walk{at: s, before: []State{Browse}}
			move := w.step(table, r)
			got[move]++
			switch {
			case move == back && (w.at != Browse || len(w.before) != 0):
				t.Fatalf("%v leads back to %v, %v", s, w.at, w.before)
			case move == end && (w.at != Home || len(w.before) != 0):
				t.Fatalf("a session ends, and is at %v, %v", w.at, w.before)
			case move < States && w.at != move:
				t.Fatalf("a move to %v leads to %v", move, w.at)
			case move < States && table[move][back] > 0 && (len(w.before) != 2 || w.before[1] != s):
				t.Fatalf("from %v, %v leads back to %v", s, move, w.before)
			case move < States && table[move][back] == 0 && len(w.before) != 0:
				t.Fatalf("%v leads back to %v", move, w.before)
			}
		}
		left := 1.0
		for to, p := range table[s] {
			want[to] += n * min(p, left)
			left -= min(p, left)
		}
		want[s] += n * left
		chi, freedom, rare := 0.0, -1.0, [2]float64{}
		for to := range got {
			if want[to] < 10 {
				rare[0] += got[to]
				rare[1] += want[to]
				continue
			}
			chi += (got[to] - want[to]) * (got[to] - want[to]) / want[to]
			freedom++
		}
		if chi > critical(freedom) || math.Abs(rare[0]-rare[1]) > 5*math.Sqrt(rare[1])+1 {
			t.Errorf("%v: chi-square is %.1f with %.0f degrees of freedom, rare moves are %.0f, want %.1f", s, chi, freedom,
				rare[0], rare[1])
		}
	}
}

// TestShares: what the documentation says of a long walk.
func TestShares(t *testing.T) {
	table, w := transitions(), walk{at: Home}
	r := rand.New(rand.NewPCG(8, 0))
	const n = 2_000_000
	var updates, transactions, ends float64
	wait, seen, longest := time.Duration(0), [States]int{}, 0
	for range n {
		if w.step(table, r) == end {
			ends++
		}
		longest = max(longest, len(w.before))
		seen[w.at]++
		wait += w.at.Wait()
		if w.at.Updates() {
			updates++
		}
		if !w.at.Static() {
			transactions++
		}
	}
	for _, c := range []struct {
		what             string
		got, want, bound float64
	}{
		{"updates among the states", updates / n, .0922, .001},
		{"updates among the transactions", updates / transactions, .1172, .001},
		{"states of a session", n / ends, 51.5, .7},
		{"seconds at a state", wait.Seconds() / n, 5.28, .02},
	} {
		t.Logf("%s: %.4f", c.what, c.got)
		if math.Abs(c.got-c.want) > c.bound {
			t.Errorf("%s: %.4f, want %.4f (+- %.4f)", c.what, c.got, c.want, c.bound)
		}
	}
	for s, count := range seen {
		if (count == 0) != (State(s) == PutCommentAuth) {
			t.Errorf("%v is visited %d times", State(s), count)
		}
	}
	if longest > 50 {
		t.Errorf("%d pages are kept to go back to", longest)
	}
}

func TestStates(t *testing.T) {
	var static, updates int
	names := map[string]bool{}
	for s := range States {
		names[s.String()] = true
		if s.Static() {
			static++
		}
		if s.Updates() {
			updates++
		}
		if w := s.Wait(); w < 2*time.Second || w > 10*time.Second {
			t.Errorf("%v: %v", s, w)
		}
	}
	if len(names) != 27 || static != 9 || updates != 5 {
		t.Errorf("%d names, %d states without a transaction, %d that update, want 27, 9 and 5", len(names), static, updates)
	}
	if got := State(27).String() + State(-1).String(); got != "State(27)State(-1)" {
		t.Error(got)
	}
}
