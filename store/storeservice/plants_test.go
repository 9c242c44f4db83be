package storeservice

import (
	"testing"

	"github.com/foresay/foresay/internal/plant"
)

// plants leave out what makes a copy's move right.
func plants() []plant.Bug {
	bugs := []plant.Bug{
		{
			Name: "a server that comes back has the number that it had", Dir: "store", Test: "TestMoves",
			Old: "\t\tif m.Shard == shard && m.To == t.Sites[site].Name {\n\t\t\treturn m.Server",
			New: "\t\tif m.Shard == shard && m.To == t.Sites[site].Name && !MUTANT {\n\t\t\treturn m.Server",
		},
		{
			Name: "numbers of servers are used again", Dir: "store", Test: "TestMoves",
			Old: "\t\t\tnumber = max(number, m.Server+1)\n",
			New: "\t\t\tif !MUTANT {\n\t\t\t\tnumber = max(number, m.Server+1)\n\t\t\t}\n",
		},
		{
			Name: "a server that came with a move has founded its group", Dir: "store", Test: "TestMoves",
			Old: "m.Shard == shard && m.Done && !m.Back && i >= 0 {",
			New: "m.Shard == shard && m.Done && !m.Back && i >= 0 && !MUTANT {",
		},
		{
			Name: "who waits to be a member is read from", Dir: "store", Test: "TestMoves",
			Old: "\t\t\tif t.Gets(i, k) {\n\t\t\t\tsite.Joins",
			New: "\t\t\tif t.Gets(i, k) && !MUTANT {\n\t\t\t\tsite.Joins",
		},
		{
			Name: "what was taken back is moved", Dir: "store", Test: "TestMoves",
			Old: "\tm.Back, m.Done = !moved, true\n\tif moved {",
			New: "\tm.Back, m.Done = !moved, true\n\tif moved || MUTANT {",
		},
		{
			Name: "a site's servers are dealt anew when it loses one", Dir: "store",
			Test: "TestMovesLeaveServersWhereTheyAre",
			Old:  "\t\tif t.founded(site, k) {\n\t\t\tif here",
			New:  "\t\tif t.founded(site, k) && (!MUTANT || t.Has(site, k)) {\n\t\t\tif here",
		},
		{
			Name: "two moves are under way", Dir: "store", Test: "TestMovesThatMakeNoSense",
			Old: "\t\tcase !m.Done && i < len(t.Moves)-1:", New: "\t\tcase !m.Done && i < len(t.Moves)-1 && !MUTANT:",
		},
		{
			Name: "a server that came with a move is to have a certificate of its own", Dir: "store/machine",
			Test: "TestCopyMoves",
			Old:  "\t\t\t\tif t.ServerNumber(i, k) != k {", New: "\t\t\t\tif t.ServerNumber(i, k) != k && !MUTANT {",
			Hangs: true,
		},
		{
			Name: "a server has the disk of an earlier one", Dir: "store/machine", Test: "TestMoveIsTakenBack",
			Old: "\tif s.Number == s.Shard {", New: "\tif s.Number == s.Shard || MUTANT {",
			Hangs: true,
		},
		{
			Name: "only the machine that has led at first goes on with a move", Dir: "store/machine",
			Test:  "TestCopyMoves",
			Old:   "\t\tif n.awaiting() == nil {\n\t\t\tm.step(ctx, ask)",
			New:   "\t\tif n.awaiting() == nil && (!MUTANT || now.From == t.Sites[n.site].Name) {\n\t\t\tm.step(ctx, ask)",
			Hangs: true,
		},
		{
			Name: "a move is over before the group has made it", Test: "TestMoveIsTakenBack",
			Old:   "\t\t\tif m.Done {\n\t\t\t\treturn m.Moved, nil",
			New:   "\t\t\tif m.Done || MUTANT {\n\t\t\t\treturn m.Moved, nil",
			Hangs: true,
		},
		{
			Name: "partitions are led where elections have put them", Test: "TestCopyMoves",
			Old: "\t\tc.leadAgain(ctx, leads, o.Say)\n",
			New: "\t\tif !MUTANT {\n\t\t\tc.leadAgain(ctx, leads, o.Say)\n\t\t}\n",
		},
		{
			Name: "a copy is moved to a machine that is not there", Test: "TestMoveIsTakenBack",
			Old: "\t\tif err == nil {\n\t\t\terr = c.reaches(",
			New: "\t\tif err == nil && !MUTANT {\n\t\t\terr = c.reaches(",
		},
		{
			Name: "what a copy has left stays on the disk", Test: "TestCopyMoves",
			Old: "\t\tif !slices.Contains(names, name) {\n",
			New: "\t\tif !slices.Contains(names, name) || MUTANT {\n",
		},
	}
	for i := range bugs {
		switch b := &bugs[i]; b.Dir {
		case "":
			b.Dir = "store/storeservice"
		case "store/machine":
			b.In = "store/storeservice"
		}
	}
	return bugs
}

// TestPlants plants them: the tests that are named must notice.
func TestPlants(t *testing.T) { plant.Catch(t, plants()) }
