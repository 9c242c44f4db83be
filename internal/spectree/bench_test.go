package spectree

import (
	"strconv"
	"testing"
)

// BenchmarkPredictedCall is one task with one predicted call that is confirmed.
func BenchmarkPredictedCall(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		tree := New(Config{Replayable: true, Limits: ample})
		r := tree.Start()
		u := tree.Call(r.Main(), &CallSpec{Op: "a", Predictions: 1})
		tree.Answered(u.Call, 0)
		tree.Exited(r)
		tree.Returned(r)
		tree.Take()
	}
}

// BenchmarkManyCalls tells what each of many predicted calls of one task costs.
func BenchmarkManyCalls(b *testing.B) {
	ops := make([]string, many)
	for i := range ops {
		ops[i] = strconv.Itoa(i)
	}
	b.ReportAllocs()
	for b.Loop() {
		tree := New(Config{Replayable: true, Limits: wide})
		r := tree.Start()
		var calls []*Call
		for _, op := range ops {
			calls = append(calls, tree.Call(r.Main(), &CallSpec{Op: op, Predictions: 1}).Call)
		}
		for _, c := range calls {
			tree.Answered(c, 0)
		}
		tree.Exited(r)
		tree.Returned(r)
		tree.Take()
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/many, "ns/call")
}
