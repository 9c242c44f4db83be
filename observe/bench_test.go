package observe_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/foresay/foresay/control"
	"github.com/foresay/foresay/observe"
)

// sequence is a request whose calls are made one after the other. Every fifth guess is wrong.
func sequence(name string, calls, methods int) *control.RequestRecord {
	r := &control.RequestRecord{Name: name, Start: time.Unix(1e9, 0)}
	at := time.Duration(0)
	for i := range calls {
		took := time.Duration(1+i%7) * time.Millisecond
		r.Calls = append(r.Calls, control.CallRecord{
			CallSite: fmt.Sprintf("/shop.Service/Get%d", i%methods), Effect: control.EffectNone, Mode: control.ModeObserve,
			Start: at, End: at + took, Guessed: true, Right: i%5 > 0,
		})
		at += took
	}
	r.Duration = at + time.Millisecond
	return r
}

func BenchmarkRecord(b *testing.B) {
	for _, calls := range []int{1, 5, 10, 50, 500} {
		b.Run(fmt.Sprintf("calls=%d", calls), func(b *testing.B) {
			c, err := observe.NewCollector(observe.Config{})
			if err != nil {
				b.Fatal(err)
			}
			r := sequence("GET /page", calls, min(calls, 10))
			b.ReportAllocs()
			for b.Loop() {
				r.Start = r.Start.Add(time.Second)
				c.Record(r)
			}
			q := c.Report(nil).Requests[0]
			b.ReportMetric(float64(q.Foreseen.Requests)/float64(q.Requests), "worked-out/op")
		})
	}
}

func BenchmarkRecordParallel(b *testing.B) {
	c, err := observe.NewCollector(observe.Config{})
	if err != nil {
		b.Fatal(err)
	}
	r := sequence("GET /page", 5, 5)
	b.RunParallel(func(p *testing.PB) {
		for p.Next() {
			c.Record(r)
		}
	})
}

func BenchmarkReport(b *testing.B) {
	c, err := observe.NewCollector(observe.Config{})
	if err != nil {
		b.Fatal(err)
	}
	for i := range 40 {
		c.Record(sequence(fmt.Sprint("GET /page", i), 20, 20))
	}
	for b.Loop() {
		c.Report(nil)
	}
}
