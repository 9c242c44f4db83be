package wan_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/foresay/foresay/wan"
)

func TestSpecRPCHasTable1(t *testing.T) {
	m := wan.SpecRPC()
	for _, test := range []struct {
		a, b wan.Site
		want time.Duration
	}{
		{"oregon", "ireland", 140 * time.Millisecond},
		{"oregon", "seoul", 122 * time.Millisecond},
		{"ireland", "seoul", 243 * time.Millisecond},
		{"seoul", "seoul", 0},
		{"seoul", "mars", 0},
	} {
		if got := m.RTT(test.a, test.b); got != test.want {
			t.Errorf("RTT(%s, %s) = %v, want %v", test.a, test.b, got, test.want)
		}
		if got := m.RTT(test.b, test.a); got != test.want {
			t.Errorf("RTT(%s, %s) = %v, want %v", test.b, test.a, got, test.want)
		}
	}
}

func TestMatrixIsAValue(t *testing.T) {
	m := wan.Uniform(5*time.Nanosecond, "a", "b")
	p := wan.Path{From: "a", To: "b"}
	changed := m.WithLink(p, wan.Link{Delay: time.Second}).WithRTT("a", "a", time.Minute)
	if l, ok := m.Link(p); !ok || l.Delay != 2 {
		t.Errorf("the link of the original is %+v", l)
	}
	if l, _ := changed.Link(p); l.Delay != time.Second {
		t.Errorf("the link of the copy is %+v", l)
	}
	if got := m.RTT("a", "b"); got != 5 {
		t.Errorf("an odd round trip became %v", got)
	}
	if got := changed.RTT("a", "a"); got != time.Minute {
		t.Errorf("the round trip within a is %v", got)
	}
	m.Sites()[0] = "changed"
	if got := m.Sites(); !slices.Equal(got, []wan.Site{"a", "b"}) {
		t.Errorf("Sites = %q", got)
	}
	if !m.Has("b") || m.Has("c") {
		t.Error("Has is wrong")
	}
	if _, ok := m.Link(wan.Path{From: "a", To: "c"}); ok {
		t.Error("there is a link to nowhere")
	}
	var paths []string
	for p := range m.Links() {
		paths = append(paths, p.String())
	}
	if got := strings.Join(paths, " "); got != "a->a a->b b->a b->b" {
		t.Errorf("Links = %s", got)
	}
	for range m.Links() {
		break
	}
}

func TestMatrixPanics(t *testing.T) {
	m := wan.Uniform(0, "a", "b")
	for want, f := range map[string]func(){
		`wan: site "a" is named twice`:             func() { wan.Uniform(0, "a", "a") },
		`wan: empty site name`:                     func() { wan.Uniform(0, "") },
		`wan: round trip of -1ns is negative`:      func() { wan.Uniform(-1, "a", "b") },
		`wan: a->c: not among the sites ["a" "b"]`: func() { m.WithRTT("a", "c", 1) },
		`wan: link a->b: delay -1s is negative`:    func() { m.WithRTT("a", "b", -2*time.Second) },
		`wan: link b->a: loss 2 is not in [0, 1)`:  func() { m.WithLink(wan.Path{From: "b", To: "a"}, wan.Link{Loss: 2}) },
	} {
		t.Run(want, func(t *testing.T) {
			defer func() {
				if got := recover(); got != want {
					t.Errorf("recovered %v", got)
				}
			}()
			f()
		})
	}
}
