package agenda

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

// TestAgainstAList does at random what an Agenda can, and the same with a list that is sorted.
func TestAgainstAList(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	var a Agenda[int]
	var list []*Entry[int] // in order
	all := make([]Entry[int], 20)
	for i := range all {
		all[i].Value = i
	}
	drop := func(e *Entry[int]) { list = slices.DeleteFunc(list, func(o *Entry[int]) bool { return o == e }) }
	for step := range 20_000 {
		e, at := &all[rnd.IntN(len(all))], time.Duration(rnd.IntN(50))
		switch rnd.IntN(8) {
		case 0, 1, 2:
			a.Set(e, at)
			drop(e)
			i := 0
			for i < len(list) && list[i].due <= at {
				i++
			}
			list = slices.Insert(list, i, e)
		case 3:
			a.Remove(e)
			drop(e)
		case 4:
			if step%500 == 0 {
				a.Clear()
				list = nil
			}
		default:
			var want *Entry[int]
			if len(list) > 0 && list[0].due <= at {
				want, list = list[0], list[1:]
			}
			if got := a.Pop(at); got != want {
				t.Fatalf("step %d: %v, want %v", step, got, want)
			}
		}
		if due, ok := a.Next(); ok != (len(list) > 0) || ok && due != list[0].due {
			t.Fatalf("step %d: the first is due at %v (%t) of %d", step, due, ok, len(list))
		}
	}
}
