package traceanalysis

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
)

// Options say how to gather and how to model. The zero value of each field means what its comment
// says.
type Options struct {
	// Pure and Effects are patterns of methods that may be sent on a guess, or may not, whatever
	// their names suggest: a method's full name with * for anything, or a part of it. Effects wins.
	Pure, Effects []string
	// Entry is a pattern that the methods of entries must fit; empty: all.
	Entry string
	// HitRate, between 0 and 1, is for which the best methods are found; 0: 0.9.
	HitRate float64
	// LoadCost is how many milliseconds of waiting saved a millisecond of calls made in vain is
	// worth; nil: 1.
	LoadCost *float64
	// MaxSpans bounds the spans that are held while their traces are not known to be whole; 0:
	// 500,000.
	MaxSpans int
	// Sample is how many requests of each entry the figures are of; 0: 1,000.
	Sample int
	// Seed draws the samples.
	Seed uint64
}

// The other bounds.
const (
	// maxEntries is how many kinds of request there may be.
	maxEntries = 1000
	// maxNames is how many different names of services and methods there may be: names that hold
	// ids would fill memory.
	maxNames = 20_000
	// maxCalls is how many calls a request may have to be modelled.
	maxCalls = 200
	// maxEvicted is how many traces are remembered that had to be taken apart before the end of the
	// input.
	maxEvicted = 200_000
)

func (o Options) withDefaults() (Options, error) {
	o.HitRate = cmp.Or(o.HitRate, 0.9)
	o.MaxSpans = cmp.Or(o.MaxSpans, 500_000)
	o.Sample = cmp.Or(o.Sample, 1000)
	if o.LoadCost == nil {
		one := 1.0
		o.LoadCost = &one
	}
	switch {
	case !(o.HitRate > 0 && o.HitRate <= 1):
		return o, fmt.Errorf("traceanalysis: a hit rate of %v; want more than 0 and at most 1", o.HitRate)
	case slices.Contains(o.Pure, "") || slices.Contains(o.Effects, ""):
		return o, errors.New("traceanalysis: an empty pattern in Pure or Effects would fit every method; want * for that")
	case !(*o.LoadCost >= 0 && *o.LoadCost <= 1e6):
		return o, fmt.Errorf("traceanalysis: a load cost of %v; want 0 or more", *o.LoadCost)
	case o.MaxSpans < 1:
		return o, fmt.Errorf("traceanalysis: %d spans held; want at least 1", o.MaxSpans)
	case o.Sample < 1:
		return o, fmt.Errorf("traceanalysis: a sample of %d requests; want at least 1", o.Sample)
	}
	return o, nil
}

// hitRates are those of which every entry is told.
func hitRates() []float64 { return []float64{0, 0.5, 0.8, 0.9, 0.95, 0.99, 1} }

// matchesAny reports whether a name fits one of the patterns.
func matchesAny(patterns []string, name string) bool {
	return slices.ContainsFunc(patterns, func(p string) bool { return matches(p, name) })
}
