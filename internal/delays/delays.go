// Package delays is what models of latency compute with: the one-way delays of a network by
// numbers, and quantiles of what clients get.
package delays

import (
	"cmp"
	"slices"
	"time"

	"github.com/foresay/foresay/wan"
)

// A Kind says what is taken for a link's delay.
type Kind int

// The kinds of delays.
const (
	Least    Kind = iota // without jitter
	Expected             // about the 95th percentile, by which Domino predicts arrivals
	Longest              // with all of the jitter; a tail has no bound
	Kinds
)

// Of returns the delay of a link.
func (k Kind) Of(l wan.Link) time.Duration {
	switch k {
	case Expected:
		return l.Delay + time.Duration(0.95*float64(l.Jitter)+1.115*float64(l.Tail))
	case Longest:
		return l.Delay + l.Jitter
	}
	return l.Delay
}

// A Network has all one-way delays of a matrix. Its sites have numbers, in the order of the matrix.
type Network struct {
	sites  map[wan.Site]int
	delays [Kinds][][]time.Duration // from, to
}

// Of returns the delays of a network.
func Of(m wan.Matrix) Network {
	all := m.Sites()
	net := Network{sites: map[wan.Site]int{}}
	for i, s := range all {
		net.sites[s] = i
	}
	for k := range Kinds {
		for range all {
			net.delays[k] = append(net.delays[k], make([]time.Duration, len(all)))
		}
		for p, l := range m.Links() {
			net.delays[k][net.sites[p.From]][net.sites[p.To]] = k.Of(l)
		}
	}
	return net
}

// Number returns the number of a site of the network.
func (n Network) Number(s wan.Site) int { return n.sites[s] }

// Table returns the delays of a kind, from and to sites by their numbers. It is not the caller's to
// change.
func (n Network) Table(k Kind) [][]time.Duration { return n.delays[k] }

// Kth returns the kth smallest, from 1, of what n parties take.
func Kth(n, k int, of func(i int) time.Duration) time.Duration {
	var few [16]time.Duration
	all := few[:0]
	for i := range n {
		all = append(all, of(i))
	}
	slices.Sort(all)
	return all[k-1]
}

// A Sample is latencies of clients, each with a weight.
type Sample []Weighted

// Weighted is one of a Sample.
type Weighted struct {
	Latency time.Duration
	Weight  float64
}

// Quantile returns the latency that a share, in [0, 1], of the weight does not exceed; the mean of
// two neighbours if it lies exactly between them. It is 0 of an empty sample. It puts the sample in
// order.
func (s Sample) Quantile(share float64) time.Duration {
	slices.SortFunc(s, func(a, b Weighted) int { return cmp.Compare(a.Latency, b.Latency) })
	total := 0.0
	for _, c := range s {
		total += c.Weight
	}
	const tiny = 1e-9
	below, wanted := 0.0, share*total
	for i, c := range s {
		below += c.Weight
		switch {
		case i == len(s)-1 || below > wanted+tiny*total:
			return c.Latency
		case below >= wanted-tiny*total:
			return (c.Latency + s[i+1].Latency) / 2
		}
	}
	return 0
}

// Mean returns the mean by the weights, 0 of an empty sample.
func (s Sample) Mean() time.Duration {
	sum, total := 0.0, 0.0
	for _, c := range s {
		sum += c.Weight * float64(c.Latency)
		total += c.Weight
	}
	if total == 0 {
		return 0
	}
	return time.Duration(sum / total)
}
