package wan_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/foresay/foresay/wan"
)

const ms = time.Millisecond

func TestScheduleChangesLinks(t *testing.T) {
	ab, ba := wan.Path{From: "a", To: "b"}, wan.Path{From: "b", To: "a"}
	base := wan.Link{Delay: 10 * ms, Loss: 0.5, BytesPerSecond: 1000}
	s := wan.Schedule{
		{From: 10 * ms, Until: 20 * ms, Paths: []wan.Path{ab}, Down: true},
		{From: 15 * ms, Until: 30 * ms, Paths: []wan.Path{ab, ba}, Delay: 5 * ms, Jitter: ms, Loss: 0.5, BytesPerSecond: 500},
		{From: 40 * ms, Paths: []wan.Path{ba}, BytesPerSecond: 2000},
	}
	slow := wan.Link{Delay: 15 * ms, Jitter: ms, Loss: 0.75, BytesPerSecond: 500}
	down, both := base, slow
	down.Down, both.Down = true, true
	for _, test := range []struct {
		at   time.Duration
		path wan.Path
		want wan.Link
	}{
		{0, ab, base}, {10*ms - 1, ab, base}, {10 * ms, ab, down}, {10 * ms, ba, base}, {15 * ms, ab, both},
		{20 * ms, ab, slow},
		{20*ms - 1, ba, slow}, {30 * ms, ab, base}, {time.Hour, ba, base}, {15 * ms, wan.Path{From: "a", To: "c"}, base},
	} {
		if got := s.Link(test.path, base, test.at); got != test.want {
			t.Errorf("%v at %v: %+v, want %+v", test.path, test.at, got, test.want)
		}
	}
	if got := s.Link(ba, wan.Link{}, time.Hour).BytesPerSecond; got != 2000 {
		t.Errorf("%d bytes per second", got)
	}
	if got, want := s.Changes(), []time.Duration{10 * ms, 15 * ms, 20 * ms, 30 * ms, 40 * ms}; !slices.Equal(got, want) {
		t.Errorf("changes at %v", got)
	}
	want := "from 10ms until 20ms: a->b: down\n" +
		"from 15ms until 30ms: a->b b->a: 5ms later, up to 1ms later, 50 % lost, 500 bytes per second\n" +
		"from 40ms: b->a: 2000 bytes per second\n"
	if got := s.String(); got != want {
		t.Errorf("got\n%s", got)
	}
	if got := (wan.Fault{}).String(); got != "from 0s:: nothing" {
		t.Errorf("got %q", got)
	}
}

func TestSchedulesAreChecked(t *testing.T) {
	m := wan.Uniform(0, "a", "b")
	for want, f := range map[string]wan.Fault{
		"it begins at -1ns, before the network":      {From: -1},
		"it ends at 1ms, not after its begin at 2ms": {From: 2 * ms, Until: ms},
		`path a->c: not among the sites ["a" "b"]`:   {Paths: []wan.Path{{From: "a", To: "c"}}},
		"delay -1ns is negative":                     {Delay: -1},
		"jitter -1ns is negative":                    {Jitter: -1},
		"loss 1 is not in [0, 1)":                    {Loss: 1},
		"bandwidth -1 bytes per second is negative":  {BytesPerSecond: -1},
	} {
		err := wan.Schedule{{}, f}.Validate(m)
		if want = "wan: fault 1 of the schedule: " + want; err == nil || err.Error() != want {
			t.Errorf("got %v, want %s", err, want)
		}
	}
	if err := (wan.Schedule{{From: ms, Until: 2 * ms, Paths: wan.Between([]wan.Site{"a"}, []wan.Site{"b"}),
		Down: true}}).Validate(m); err != nil {
		t.Error(err)
	}
}

func TestLaterSchedules(t *testing.T) {
	s := wan.Schedule{{From: ms, Until: 2 * ms, Down: true}, {From: 3 * ms, Jitter: ms}}
	want := "from 11ms until 12ms:: down\nfrom 13ms:: up to 1ms later\n"
	if got := s.Later(10 * ms).String(); got != want || s[0].From != ms {
		t.Errorf("got\n%s, of which the original begins at %v", got, s[0].From)
	}
}

func TestTowardAndBetween(t *testing.T) {
	ab, cd := []wan.Site{"a", "b"}, []wan.Site{"c", "d"}
	if got := fmt.Sprint(wan.Toward(ab, cd)); got != "[a->c a->d b->c b->d]" {
		t.Error(got)
	}
	if got := fmt.Sprint(wan.Between(ab[:1], cd)); got != "[a->c a->d c->a d->a]" {
		t.Error(got)
	}
	if got := fmt.Sprint(wan.Between(ab, ab)); got != "[a->b b->a]" {
		t.Error(got)
	}
}

func TestRandomSchedules(t *testing.T) {
	m := wan.NorthAmerica()
	all := ""
	texts := make(map[string]bool)
	for seed := range uint64(30) {
		c := wan.Chance{Seed: seed, For: time.Minute, Every: time.Second, Lasting: 2 * time.Second}
		s := wan.Random(m, c)
		if err := s.Validate(m); err != nil {
			t.Fatal(err)
		}
		if s.String() != wan.Random(m, c).String() {
			t.Errorf("seed %d gave two schedules", seed)
		}
		if len(s) < 30 || len(s) > 100 {
			t.Errorf("%d faults in a minute, one each second", len(s))
		}
		for i, f := range s {
			if f.From >= c.For || i > 0 && f.From < s[i-1].From || f.Until <= f.From || f.Until > f.From+20*time.Second ||
				len(f.Paths) == 0 || f.Change(wan.Link{}) == (wan.Link{}) {
				t.Errorf("seed %d: %v", seed, f)
			}
		}
		texts[s.String()] = true
		all += s.String()
	}
	if len(texts) != 30 {
		t.Errorf("30 seeds gave %d schedules", len(texts))
	}
	for _, kind := range []string{": down", "ms later", "up to", "% lost", "bytes per second"} {
		if strings.Count(all, kind) < 50 {
			t.Errorf("%q is there %d times", kind, strings.Count(all, kind))
		}
	}
	if s := wan.Random(wan.Uniform(0, "a"), wan.Chance{For: time.Hour}); len(s) != 0 {
		t.Errorf("a network of one site has the faults %v", s)
	}
	if s := wan.Random(m, wan.Chance{For: time.Second, Every: 1}); len(s) > 3000 {
		t.Errorf("%d faults in a second", len(s))
	}
}

func ExampleSchedule() {
	s := wan.Schedule{{
		From: 2 * time.Second, Until: 5 * time.Second,
		Paths: wan.Between([]wan.Site{"oregon"}, []wan.Site{"ireland", "seoul"}), Down: true,
	}}
	fmt.Print(s)
	m := wan.SpecRPC()
	p := wan.Path{From: "seoul", To: "oregon"}
	link, _ := m.Link(p)
	fmt.Println("after three seconds", p, "is down:", s.Link(p, link, 3*time.Second).Down)
	// Output:
	// from 2s until 5s: oregon->ireland oregon->seoul ireland->oregon seoul->oregon: down
	// after three seconds seoul->oregon is down: true
}
