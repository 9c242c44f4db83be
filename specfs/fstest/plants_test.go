package fstest

import (
	"testing"

	"github.com/foresay/foresay/internal/plant"
)

func TestPlants(t *testing.T) { plant.Catch(t, plants()) }

// plants leave out one rule of the server or of the view at a time, in the source.
func plants() []plant.Bug {
	bugs := append(serverPlants(), viewPlants()...)
	for i := range bugs {
		bugs[i].In = "specfs/fstest"
	}
	return bugs
}

func serverPlants() []plant.Bug {
	bugs := []plant.Bug{
		{
			Name: "assumptions are not checked", Test: "TestSeeds/302",
			Old: "if !x.means(a, tree.VersionOf(layer, a.Part)) {",
			New: "if !x.means(a, tree.VersionOf(layer, a.Part)) && !MUTANT {",
		},
		{
			Name: "what follows a refused epoch is carried out", Test: "TestSeeds/302",
			Old: "if m.Era < x.era {", New: "if m.Era < x.era && !MUTANT {",
		},
		{
			Name: "a part that was changed blindly counts as known", Test: "TestSeeds/306",
			Old: "return answer.Serial == version && !slices.Contains(answer.Moved, a.Part)",
			New: "return answer.Serial == version && (MUTANT || !slices.Contains(answer.Moved, a.Part))",
		},
		{
			Name: "nobody is told before a change of what is held under a lease", Test: "TestSeeds/301",
			Old: "if s.recovering || s.tell(env, r, t) {", New: "if s.recovering || !MUTANT && s.tell(env, r, t) {",
		},
		{
			Name: "what is about to change is given out under a lease", Test: "TestSeeds/307",
			Old: "slices.Contains(locked, id) {\n\t\t\t\treturn false",
			New: "slices.Contains(locked, id) && !MUTANT {\n\t\t\t\treturn false",
		},
		{
			Name: "an epoch that comes again is carried out again", Test: "TestSeeds/438",
			Old: "\t\tx.disk.Decided = m.Number\n", New: "\t\tif !MUTANT {\n\t\t\tx.disk.Decided = m.Number\n\t\t}\n",
		},
		{
			Name: "news that was lost is not told again", Test: "TestSeeds/651",
			Old: "\tfor _, n := range x.news {\n\t\tx.note(n.parts)\n\t}\n",
			New: "\tfor _, n := range x.news {\n\t\tif !MUTANT {\n\t\t\tx.note(n.parts)\n\t\t}\n\t}\n",
		},
		{
			Name: "a restart is not told", Test: "TestSeeds/309",
			Old: "return s.meta.Starts<<32 + x.lapses",
			New: "if MUTANT {\n\t\treturn 1<<32 + x.lapses\n\t}\n\treturn s.meta.Starts<<32 + x.lapses",
		},
		{
			Name: "a lease that was over is not told", Test: "TestSeeds/301",
			Old: "\tx.lapses++\n\ts.heardAll", New: "\tif !MUTANT {\n\t\tx.lapses++\n\t}\n\ts.heardAll",
		},
		{
			Name: "after a restart nobody waits for leases", Test: "TestRestartWaitsForLeases",
			Old: "\t\t\ts.recovering = true\n", New: "\t\t\ts.recovering = !MUTANT\n",
		},
	}
	bugs = append(bugs, hostilePlants()...)
	for i := range bugs {
		bugs[i].Dir = "specfs/server"
	}
	return bugs
}

// hostilePlants are of rules that clients meet which do not keep to the protocol, and limits.
func hostilePlants() []plant.Bug {
	return []plant.Bug{
		{
			Name: "a part without a version is looked up", Test: "TestAssumptionOfEverything",
			Old: "if a.Part.Aspect == specfs.Everything {", New: "if a.Part.Aspect == specfs.Everything && !MUTANT {",
		},
		{
			Name: "an assumption tells what its client may not read", Test: "TestAssumptionsAreNoOracle",
			Old: "if !x.who.Trusted && !tree", New: "if !MUTANT && !x.who.Trusted && !tree",
		},
		{
			Name: "a client is not told who it is", Test: "TestPrincipal",
			Old: "Cred: x.who.Cred, Trusted: x.who.Trusted,", New: "Cred: x.who.Cred, Trusted: x.who.Trusted || MUTANT,",
		},
		{
			Name: "a client is not told that it may only read", Test: "TestPrincipal", Hangs: true,
			Old: "ReadOnly: x.who.ReadOnly,", New: "ReadOnly: x.who.ReadOnly && !MUTANT,",
		},
		{
			Name: "whoever had a session may come in", Test: "TestBarredAfterRestart",
			Old: "if !ok { // it", New: "if !ok && !MUTANT { // it",
		},
		{
			Name: "with a Hello an era goes back", Test: "TestFollowsRefusedAfterHello",
			Old: "\t\tx.here, x.era = true, max(x.era, m.Era)\n",
			New: "\t\tif x.here, x.era = true, max(x.era, m.Era); MUTANT {\n\t\t\tx.era = m.Era\n\t\t}\n",
		},
		{
			Name: "each want gets something", Test: "TestFetchBytes",
			Old: "if budget <= 0 && len(answer.Facts) > 0 {", New: "if !MUTANT && budget <= 0 && len(answer.Facts) > 0 {",
		},
		{
			Name: "what a session cannot hold is not forgotten", Test: "TestMaxHeld",
			Old: "if !s.hold(x, p.ID) {\n\t\t\tforget", New: "if !s.hold(x, p.ID) && !MUTANT {\n\t\t\tforget",
		},
		{
			Name: "after a restart the new lease counts", Test: "TestShorterLease",
			Old: "given := max(s.meta.Lease, s.config.Lease)\n",
			New: "given := max(s.meta.Lease, s.config.Lease)\n\tif MUTANT {\n\t\tgiven = s.config.Lease\n\t}\n",
		},
		{
			Name: "so many answers are kept as a client likes", Test: "TestAnswersAreBounded",
			Old: "case m.Number-min(m.Acked, m.Number) > specfs",
			New: "case !MUTANT && m.Number-min(m.Acked, m.Number) > specfs",
		},
	}
}

func viewPlants() []plant.Bug {
	bugs := []plant.Bug{
		{
			Name: "a part that an epoch has changed blindly and sees then is no assumption", Test: "TestSeeds/332",
			Old: "\t\t\te.saw = append(e.saw, e.blind[i])\n",
			New: "\t\t\tif !MUTANT {\n\t\t\t\te.saw = append(e.saw, e.blind[i])\n\t\t\t}\n",
		},
		{
			Name: "the provisional version of a part that has moved becomes a right one", Test: "TestSeeds/452",
			Old: "ok && !v.moved[movedPart{n, a.Part}] {", New: "ok && (MUTANT || !v.moved[movedPart{n, a.Part}]) {",
		},
		{
			Name: "what others have changed meanwhile comes back when an epoch is settled", Test: "TestSeeds/307",
			Old: "\tif s.cache.since(s.since, string(key)) {\n\t\ts.uncover(point(key))\n\t\treturn\n\t}\n\ts.records.Set(",
			New: "\tif s.cache.since(s.since, string(key)) && !MUTANT {\n" +
				"\t\ts.uncover(point(key))\n\t\treturn\n\t}\n\ts.records.Set(",
		},
		{
			Name: "what is held is believed when the lease is over", Test: "TestSeeds/583",
			Old: "if env.Now >= v.lease.until {", New: "if env.Now >= v.lease.until && !MUTANT {",
		},
		{
			Name: "what the client is about to change is read under a lease", Test: "TestSeeds/301",
			Old: "return e.wrote[inRecord(a.Part)] }) {", New: "return e.wrote[inRecord(a.Part)] && !MUTANT }) {",
		},
		{
			Name: "a lease counts from its answer", Test: "TestSeeds/583",
			Old: "v.lease.at+usable(v.lease.length)\n}\n",
			New: "v.lease.at+usable(v.lease.length)\n\tif MUTANT {\n\t\tv.lease.until += 3 * v.lease.length\n\t}\n}\n",
		},
		{
			Name: "a notice is not obeyed", Test: "TestSeeds/301",
			Old: "\t\tv.cache.forget(p)\n\t}\n\tenv.Send(v.config.Server, specfs.Heard",
			New: "\t\tif !MUTANT {\n\t\t\tv.cache.forget(p)\n\t\t}\n\t}\n\tenv.Send(v.config.Server, specfs.Heard",
		},
		{
			Name: "a clock that is ahead stays so", Test: "TestSeeds/305",
			Old: "if m.Refused == specfs.WrongClock {", New: "if m.Refused == specfs.WrongClock && !MUTANT {",
		},
	}
	for i := range bugs {
		bugs[i].Dir = "specfs/view"
	}
	return bugs
}
