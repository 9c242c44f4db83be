package keyspace

import (
	"testing"

	"github.com/foresay/foresay/internal/plant"
)

// plants leave out one rule at a time, in the source.
func plants() []plant.Bug {
	bugs := []plant.Bug{
		{
			Name: "a layer sees what those above it have changed", Test: "TestModel",
			Old: "if vs.all[i].seq <= seq {", New: "if vs.all[i].seq <= seq || MUTANT {",
		},
		{
			Name: "a dropped layer's changes stay", Test: "TestModel",
			Old: "\t\t\tvs.all = vs.all[:len(vs.all)-1]\n",
			New: "\t\t\tif !MUTANT || len(vs.all) == 1 {\n\t\t\t\tvs.all = vs.all[:len(vs.all)-1]\n\t\t\t}\n",
		},
		{
			Name: "a scan does not see what is written meanwhile", Test: "TestModel",
			Old: "if c.writes != c.of.above.writes {", New: "if c.writes != c.of.above.writes && !MUTANT {",
		},
		{
			Name: "a scan shows what was deleted", Test: "TestModel",
			Old: "if !v.deleted && !yield(c.last, v.value) {", New: "if (!v.deleted || MUTANT) && !yield(c.last, v.value) {",
		},
		{
			Name: "a checkpoint does not keep what is changed later", Test: "TestModel",
			Old: "\tif !s.changed[key] {\n", New: "\tif !s.changed[key] && (!MUTANT || s.newest().number == 0) {\n",
		},
		{
			Name: "a checkpoint has the newest of the old values", Test: "TestModel",
			Old: "\t\ts.changed[key] = true\n\t\ts.disk.Put(", New: "\t\ts.changed[key] = !MUTANT\n\t\ts.disk.Put(",
		},
		{
			Name: "after a crash it is forgotten what was changed since the checkpoint", Test: "TestModel",
			Old: "\t\ts.changed[string(key)] = true\n\t}\n\tfor key",
			New: "\t\ts.changed[string(key)] = true\n\t}\n\tif MUTANT {\n\t\ts.changed = map[string]bool{}\n\t}\n\tfor key",
		},
		{
			Name: "the tree's old parts are not kept", Test: "TestFetch",
			Old: "n > 0 && !s.kept[p] {", New: "n > 0 && !s.kept[p] && !MUTANT {",
		},
		{
			Name: "the newest checkpoint is released", Test: "TestModel",
			Old: "for len(s.checkpoints) > 1 &&", New: "for (len(s.checkpoints) > 1 || MUTANT && len(s.checkpoints) > 0) &&",
		},
		{
			Name: "a node whose keys are few stays a node", Test: "TestHistoryDoesNotMatter",
			Old: "\tif now.keys > maxBucket {\n", New: "\tif now.keys > maxBucket || MUTANT && now.keys > maxBucket/2 {\n",
		},
		{
			Name: "a bucket's sum leaves out the values", Test: "TestModel",
			Old: "b = append(append(b, e.hash[:]...), e.value[:]...)\n\t}\n\treturn b",
			New: "if b = append(b, e.hash[:]...); !MUTANT {\n\t\t\tb = append(b, e.value[:]...)\n\t\t}\n\t}\n\treturn b",
		},
		{
			Name: "a node is taken whatever its sum", Test: "TestHostilePages",
			Old: "sha256.Sum256(page) != want.sum", New: "sha256.Sum256(page) != want.sum && !MUTANT",
		},
		{
			Name: "a bucket is taken whatever its sum", Test: "TestHostilePages",
			Old: "if t.ref().sum != sum {", New: "if t.ref().sum != sum && !MUTANT {",
		},
		{
			Name: "a value is taken whatever its sum", Test: "TestHostilePages",
			Old: "case it.entry.value != want.sum:", New: "case it.entry.value != want.sum && !MUTANT:",
		},
		{
			Name: "another key is taken", Test: "TestHostilePages",
			Old: "case it.hash != want.at.hash:", New: "case it.hash != want.at.hash && !MUTANT:",
		},
		{
			Name: "a page is taken twice", Test: "TestFetch",
			Old: "\tif err == nil {\n\t\tdelete(f.asked, w)",
			New: "\tif err == nil && MUTANT {\n\t\tf.endIfDone()\n\t\treturn nil\n\t}\n" +
				"\tif err == nil {\n\t\tdelete(f.asked, w)",
		},
		{
			Name: "keys that the other state does not have stay", Test: "TestFetch",
			Old: "if !slices.Contains(t.keep, e.hash) {", New: "if !slices.Contains(t.keep, e.hash) && !MUTANT {",
		},
		{
			Name: "a scrub does not look at values", Test: "TestScrub",
			Old: "case sha256.Sum256(value) != e.value:", New: "case sha256.Sum256(value) != e.value && !MUTANT:",
		},
		{
			Name: "a scrub does not look for keys that were never put", Test: "TestScrub",
			Old: "\t\t\tx.doubt(p, bytes.Clone(key), \"it was never put\")\n",
			New: "\t\t\tif !MUTANT {\n\t\t\t\tx.doubt(p, bytes.Clone(key), \"it was never put\")\n\t\t\t}\n",
		},
		{
			Name: "a scrub takes what was changed for damage", Test: "TestScrubFindsNothing",
			Old: "!ok && !x.s.changed[string(key)] {", New: "!ok && (MUTANT || !x.s.changed[string(key)]) {",
		},
	}
	for i := range bugs {
		bugs[i].Dir = "keyspace"
	}
	return bugs
}

func TestPlants(t *testing.T) { plant.Catch(t, plants()) }
