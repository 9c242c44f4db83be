package callers

import (
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
)

// TestTable: an answer reaches who waits for it, once; what was forgotten or is not known reaches
// nobody; a closed table answers all, and takes nobody.
func TestTable(t *testing.T) {
	table := Table[int]{Most: 3}
	var got []int
	note := func(a int) { got = append(got, a) }
	add := func() uint64 {
		ref, err := table.Add(note)
		if err != nil {
			t.Fatal(err)
		}
		return ref
	}
	one, two, three := add(), add(), add()
	if _, err := table.Add(note); !errors.Is(err, ErrTooMany) {
		t.Errorf("a fourth one: %v, want ErrTooMany", err)
	}
	table.Tell(two, 2)
	table.Answer(two, 20)
	table.Answer(two, 21)
	table.Tell(two, 22)
	table.Answer(99, 99)
	if !table.Forget(one) || table.Forget(one) || table.Forget(two) {
		t.Error("who is forgotten is not who waits")
	}
	table.Answer(one, 10)
	four := add()
	if refs := table.Refs(); !slices.Equal(refs, []uint64{three, four}) {
		t.Errorf("%v wait, want %d and %d", refs, three, four)
	}
	why := errors.New("over")
	table.Close(why, func(ref uint64) int { return -int(ref) })
	table.Close(errors.New("again"), func(uint64) int { return 0 })
	if _, err := table.Add(note); err != why {
		t.Errorf("after Close: %v, want %v", err, why)
	}
	if want := []int{2, 20, -int(three), -int(four)}; !slices.Equal(got, want) {
		t.Errorf("answers %v, want %v", got, want)
	}
}

// TestTableAtOnce: of an answer, a Forget and a Close at once exactly one finds the caller.
func TestTableAtOnce(t *testing.T) {
	for range 200 {
		var table Table[int]
		var found atomic.Int32
		ref, err := table.Add(func(int) { found.Add(1) })
		if err != nil {
			t.Fatal(err)
		}
		var all sync.WaitGroup
		all.Go(func() { table.Answer(ref, 1) })
		all.Go(func() {
			if table.Forget(ref) {
				found.Add(1)
			}
		})
		all.Go(func() { table.Close(errors.New("over"), func(uint64) int { return 0 }) })
		all.Wait()
		if n := found.Load(); n != 1 {
			t.Fatalf("%d found the caller, want 1", n)
		}
	}
}
