package tree

import (
	"testing"

	"github.com/foresay/foresay/internal/plant"
)

func TestPlants(t *testing.T) { plant.Catch(t, plants()) }

// plants leave out one rule at a time, in the source.
func plants() []plant.Bug {
	bugs := []plant.Bug{
		{
			Name: "a name's absence is not seen", Test: "TestSaw",
			Old: "\tt.sawPart(specfs.Part{ID: dir, Aspect: specfs.Name, Name: name}, e.Version)\n",
			New: "\tif e.ID != 0 || !MUTANT {\n" +
				"\t\tt.sawPart(specfs.Part{ID: dir, Aspect: specfs.Name, Name: name}, e.Version)\n\t}\n",
		},
		{
			Name: "a listing does not depend on the names", Test: "TestSaw",
			Old: "\tt.saw(d, specfs.Names)\n\tvar result specfs.Result\n",
			New: "\tif !MUTANT {\n\t\tt.saw(d, specfs.Names)\n\t}\n\tvar result specfs.Result\n",
		},
		{
			Name: "the removal of a directory does not depend on its being empty", Test: "TestSaw",
			Old: "\tt.saw(d, specfs.Names)\n\tprefix := key(recordName, d.ID)\n\tfor range",
			New: "\tif !MUTANT {\n\t\tt.saw(d, specfs.Names)\n\t}\n\tprefix := key(recordName, d.ID)\n\tfor range",
		},
		{
			Name: "a move does not depend on where directories are", Test: "TestSaw",
			Old: "\t\tt.saw(d, specfs.Place)\n", New: "\t\tif !MUTANT {\n\t\t\tt.saw(d, specfs.Place)\n\t\t}\n",
		},
		{
			Name: "a result does not depend on permissions", Test: "TestSaw",
			Old: "\tt.saw(o, specfs.Meta)\n\treturn o, specfs.OK",
			New: "\tif !MUTANT {\n\t\tt.saw(o, specfs.Meta)\n\t}\n\treturn o, specfs.OK",
		},
		{
			Name: "a new name conflicts with all others", Test: "TestNamesDoNotConflict",
			Old: "\tt.sawPart(specfs.Part{ID: dir, Aspect: specfs.Name, Name: name}, e.Version)\n",
			New: "\tif t.sawPart(specfs.Part{ID: dir, Aspect: specfs.Name, Name: name}, e.Version); MUTANT {\n" +
				"\t\tt.saw(t.object(dir), specfs.Names)\n\t}\n",
		},
		{
			Name: "a name does not change what a listing depends on", Test: "TestNamesDoNotConflict",
			Old: "\tt.changeContent(d, specfs.Names)\n\treturn specfs.Result{ID: o.ID",
			New: "\tif MUTANT {\n\t\tt.changeContent(d)\n\t} else {\n\t\tt.changeContent(d, specfs.Names)\n\t}\n" +
				"\treturn specfs.Result{ID: o.ID",
		},
		{
			Name: "an append goes where its caller believes the end to be", Test: "TestAppends",
			Old: "\tif op.Append {\n", New: "\tif op.Append && !MUTANT {\n",
		},
		{
			Name: "times go back", Test: "TestTimes",
			Old: "\to.Modified = max(o.Modified, t.Now)\n\tt.change(o, aspects...)",
			New: "\tif o.Modified = max(o.Modified, t.Now); MUTANT {\n\t\to.Modified = t.Now\n\t}\n\tt.change(o, aspects...)",
		},
		{
			Name: "a file that has a name is reaped", Test: "TestHostileOps",
			Old: "\tif !IsOrphan(t.space, op.ID) {",
			New: "\tif !IsOrphan(t.space, op.ID) && (!MUTANT || t.object(op.ID) == nil) {",
		},
		{
			Name: "what was cut off comes back", Test: "TestReap",
			Old: "\t\to.Content++\n", New: "\t\tif !MUTANT {\n\t\t\to.Content++\n\t\t}\n",
		},
		{
			Name: "a directory is moved into itself", Test: "TestInvariants",
			Old: "\tcase t.within(m.to, m.old):\n", New: "\tcase t.within(m.to, m.old) && !MUTANT:\n",
		},
		{
			Name: "blocks reach beyond the size", Test: "TestTruncate",
			Old: "\tcase size < o.Size:\n", New: "\tcase size < o.Size && !MUTANT:\n",
		},
		{
			Name: "a moved directory is where it was", Test: "TestInvariants",
			Old: "\to.Parent = to.ID\n", New: "\tif !MUTANT {\n\t\to.Parent = to.ID\n\t}\n",
		},
	}
	for i := range bugs {
		bugs[i].Dir = "specfs/tree"
	}
	return bugs
}
