package clock

import (
	"iter"
	"maps"
	"slices"

	"example.com/tidy/predict"
)

type delays map[string]int

func sum[M ~map[string]int](a delays, b M, c *predict.Table, d []map[int]int) (n int) {
	for range a {
	}
	for range b {
	}
	for range c.Rows() {
	}
	for range maps.Clone(d[0]) {
	}
	for range maps.Keys(a) {
	}
	return n
}

func inOrder(a delays, b []int, c iter.Seq[int]) (n int) {
	for _, key := range slices.Sorted(maps.Keys(a)) {
		n += a[key]
	}
	for range maps.Collect(maps.All(map[int]int(nil)))[0] {
		n++
	}
	for range b {
		n++
	}
	for range c {
		n++
	}
	// The sum is the same in every order.
	for _, v := range a {
		n += v
	}
	for _, v := range a { //pure:ok a sum does not depend on the order
		n += v
	}
	return n
}
