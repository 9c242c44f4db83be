package mvcc

import (
	"testing"

	"github.com/foresay/foresay/internal/plant"
)

// plants leave out one rule at a time, in the source.
func plants() []plant.Bug {
	bugs := []plant.Bug{
		{
			Name: "keys are not escaped", Test: "TestModel",
			Old: "if b = append(b, key[i]); key[i] == 0 {", New: "if b = append(b, key[i]); key[i] == 0 && !MUTANT {",
		},
		{
			Name: "a snapshot sees what is of its timestamp and a later client only in part", Test: "TestModel",
			Old: "return store.Version{Time: uint64(at), Client: math.MaxUint64}",
			New: "if MUTANT {\n\t\treturn store.Version{Time: uint64(at), Client: 1}\n\t}\n\treturn store.Version{Time: " +
				"uint64(at), Client: math.MaxUint64}",
		},
		{
			Name: "a snapshot from before the horizon is read", Test: "TestModel",
			Old: "\tif h := s.Horizon(keys); snapshot < h {\n\t\treturn store.Value{}",
			New: "\tif h := s.Horizon(keys); snapshot < h && !MUTANT {\n\t\treturn store.Value{}",
		},
		{
			Name: "pages are read from before the horizon", Test: "TestModel",
			Old: "\tif h := s.Horizon(keys); snapshot < h {\n\t\treturn Page{}",
			New: "\tif h := s.Horizon(keys); snapshot < h && !MUTANT {\n\t\treturn Page{}",
		},
		{
			Name: "versions are written at the horizon", Test: "TestModel",
			Old: "h > 0 && stampOf(v.Version) <= h {",
			New: "h > 0 && (stampOf(v.Version) < h || !MUTANT && stampOf(v.Version) == h) {",
		},
		{
			Name: "the horizon falls, or the ceiling", Test: "TestModel",
			Old: "\tif to > s.stamp(w, part) {", New: "\tif to > s.stamp(w, part) || MUTANT {",
		},
		{
			Name: "deletions are never collected", Test: "TestModel",
			Old: "\tif older || !v.Present {", New: "\tif older || !v.Present && !MUTANT {",
		},
		{
			Name: "what is below a version is not collected", Test: "TestModel",
			Old: "\t\t\tolder = true\n", New: "\t\t\tolder = !MUTANT\n",
		},
		{
			Name: "what is written below a version is not collected", Test: "TestModel",
			Old: "\tif newer != nil {", New: "\tif newer != nil && !MUTANT {",
		},
		{
			Name: "a deletion is collected before what is below it", Test: "TestModel",
			Old: "\t\tif removed >= limit {\n\t\t\treturn removed, false\n\t\t}\n\t\tw.Delete(append([]byte(nil), raw...))",
			New: "\t\tif MUTANT && deletion != nil {\n\t\t\tw.Delete(deletion)\n\t\t}\n\t\tif removed >= limit {\n\t\t\t" +
				"return removed, false\n\t\t}\n\t\tw.Delete(append([]byte(nil), raw...))",
		},
		{
			Name: "the version that the horizon sees is collected", Test: "TestModel",
			Old: "\t\t\tif _, v := s.value(raw, b); !v.Present && deletions {",
			New: "\t\t\tif _, v := s.value(raw, b); !v.Present && deletions || MUTANT {",
		},
		{
			Name: "deletions that are to stay are collected", Test: "TestModel",
			Old: "limit-removed, deletions)", New: "limit-removed, deletions || MUTANT)",
		},
		{
			Name: "a key is twice in a snapshot", Test: "TestModel",
			Old: "return v.Present, end(begin)",
			New: "if MUTANT {\n\t\t\treturn v.Present, nil\n\t\t}\n\t\treturn v.Present, end(begin)",
		},
		{
			Name: "a page ends before its last key", Test: "TestModel",
			Old: "next = append(slices.Clone(raw), 0)",
			New: "next = append(slices.Clone(raw), 0)\n\t\t\tif MUTANT {\n\t\t\t\tnext = " +
				"end(raw[:len(raw)-versionBytes])\n\t\t\t}",
		},
		{
			Name: "a copy has no horizon", Test: "TestModel",
			Old: "\ts.RaiseHorizon(w, p.Horizon)", New: "\tif !MUTANT {\n\t\ts.RaiseHorizon(w, p.Horizon)\n\t}",
		},
		{
			Name: "a read is served above the ceiling that is on record", Test: "TestReads",
			Tests: []string{"TestReadsStayTrue"},
			Old:   "\tif at > r.ceiling {\n\t\treturn false", New: "\tif at > r.ceiling && !MUTANT {\n\t\treturn false",
		},
		{
			Name: "who takes over writes below the ceiling", Test: "TestReads", Tests: []string{"TestReadsStayTrue"},
			Old: "asked: ceiling, evicted: ceiling,",
			New: "asked: ceiling, evicted: map[bool]clock.Stamp{false: ceiling}[MUTANT],",
		},
		{
			Name: "what is read is not remembered", Test: "TestReads", Tests: []string{"TestReadsStayTrue"},
			Old: "\tr.newest[key] = at\n", New: "\tif !MUTANT {\n\t\tr.newest[key] = at\n\t}\n",
		},
		{
			Name: "what is forgotten is written below", Test: "TestReads", Tests: []string{"TestReadsForgetHalf"},
			Old: "\tr.evicted = times[len(times)/2]\n\tmaps.DeleteFunc(r.newest, func(_ store.Key, at clock.Stamp) bool { " +
				"return at <= r.evicted })",
			New: "\tevicted := times[len(times)/2]\n\tif !MUTANT {\n\t\tr.evicted = evicted\n\t}\n\tmaps.DeleteFunc(r.newest, " +
				"func(_ store.Key, at clock.Stamp) bool { return at <= evicted })",
		},
		{
			Name: "who waits for a ceiling that was lost waits for ever", Test: "TestReads",
			Old: "func (r *Reads) Failed() { r.asked = r.ceiling }",
			New: "func (r *Reads) Failed() {\n\tif !MUTANT {\n\t\tr.asked = r.ceiling\n\t}\n}",
		},
	}
	for i := range bugs {
		bugs[i].Dir = "store/mvcc"
	}
	return bugs
}

// TestPlants plants them: the tests that are named must notice.
func TestPlants(t *testing.T) { plant.Catch(t, plants()) }
