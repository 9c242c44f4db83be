package carousel

import "github.com/foresay/foresay/internal/plant"

// orderPlants leave out what orders requests, by arrival and by age.
func orderPlants() []plant.Bug {
	return []plant.Bug{
		{
			Name: "requests are handled as they come", Test: "TestPreparesAreHandledByArrival",
			Old: "\tif m.Arrives == 0 || s.clocks.off() {\n", New: "\tif m.Arrives == 0 || s.clocks.off() || MUTANT {\n",
		},
		{
			Name: "what is held and about to change is answered at once", Test: "TestPreparesAreHandledByArrival",
			Old: "\treturn s.ordering.writes[key] > 0 || ", New: "\treturn s.ordering.writes[key] > 0 && !MUTANT || ",
		},
		{
			Name: "a clock that is far ahead has all others hold", Test: "TestAgentPredictsArrivals",
			Old: "\t\treturn min(to, a.cfg.RoundTrip+a.cfg.MaxOffset), ok\n",
			New: "\t\tif MUTANT {\n\t\t\treturn to, ok\n\t\t}\n\t\treturn min(to, a.cfg.RoundTrip+a.cfg.MaxOffset), ok\n",
		},
		{
			Name: "requests need not have arrived at followers", Test: "TestAgentPredictsArrivals",
			Old: "\t\t\tif !a.fast && id != lead {\n", New: "\t\t\tif (!a.fast || MUTANT) && id != lead {\n",
		},
		{
			Name: "an agent measures for nobody", Test: "TestAgentPredictsArrivals",
			Old: "idle < 0 || idle > delayWindow*every {", New: "(idle < 0 || idle > delayWindow*every) && !MUTANT {",
		},
		{
			Name: "a retry is refused because of its own earlier attempt", Test: "TestRetryWaitsForItsOwn",
			Old: "\tif !s.waitsForOwn(env, from, m) {\n", New: "\tif MUTANT || !s.waitsForOwn(env, from, m) {\n",
		},
		{
			Name: "a retry waits for other transactions, too", Test: "TestRetryWaitsForItsOwn",
			Old: "return ageOf(id) != m.Priority && (", New: "return !MUTANT && ageOf(id) != m.Priority && (",
		},
		{
			Name: "a retry waits for ever", Test: "TestRetryWaitsForItsOwn",
			Old: "&& age < s.trips(ownFor) &&", New: "&& (age < s.trips(ownFor) || MUTANT) &&",
		},
		{
			Name: "two retries that wait are handled at once", Test: "TestRetryWaitsForItsOwn",
			Old: "\t\tcase waits(b): ", New: "\t\tcase waits(b) && !MUTANT: ",
		},
		{
			Name: "a retry that waits is refused when it is repeated", Test: "TestRetryWaitsForItsOwn",
			Old: "return b.ask.Part == m.Part }) {\n", New: "return b.ask.Part == m.Part }) && !MUTANT {\n",
		},
		{
			Name: "age does not count", Test: "TestReservationsOfThoseTriedAgain", Tests: []string{"TestOldestWins/fast"},
			Old: "\tcase s.isReserved(env, m) &&", New: "\tcase !MUTANT && s.isReserved(env, m) &&",
		},
		{
			Name: "a further part is refused as reserved", Test: "TestReservationsOfThoseTriedAgain",
			Old: " !s.hasPart(m.Part.ID):\n\t\treturn store.Reserved\n",
			New: " (!s.hasPart(m.Part.ID) || MUTANT):\n\t\treturn store.Reserved\n",
		},
		{
			Name: "who is refused for the first time reserves", Test: "TestReservationsOfThoseTriedAgain",
			Old: "\tif m.Priority.IsZero() {\n\t\treturn\n\t}\n\tc :=",
			New: "\tif m.Priority.IsZero() && !MUTANT {\n\t\treturn\n\t}\n\tm.Priority = m.age()\n\tc :=",
		},
		{
			Name: "who meets one that does not end reserves the rest", Test: "TestReservationsOfThoseTriedAgain",
			Old: "c != nil && !s.behindOld(env, m) {", New: "c != nil && (!s.behindOld(env, m) || MUTANT) {",
		},
		{
			Name: "what is committed keeps its reservations", Test: "TestReservationsOfThoseTriedAgain",
			Old: "\t\t\t\ts.reserving.Release(env, k, c.age)\n",
			New: "\t\t\t\tif !MUTANT {\n\t\t\t\t\ts.reserving.Release(env, k, c.age)\n\t\t\t\t}\n",
		},
		{
			Name: "reads do not wait for their turn", Test: "TestReadsWaitForTheirTurn",
			Old: "|| !s.mustWait(env, m) ||", New: "|| !s.mustWait(env, m) || MUTANT ||",
		},
		{
			Name: "reads wait for ever", Test: "TestReadsWaitForTheirTurn",
			Old: "\t\t\tif !long && s.term > 0 &&", New: "\t\t\tif (!long || MUTANT) && s.term > 0 &&",
		},
		{
			Name: "a client does not wait for its turn", Test: "TestClientWaitsForItsTurn",
			Old: "\tif m.Queued && g.queued < maxQueued {\n", New: "\tif m.Queued && g.queued < maxQueued && !MUTANT {\n",
		},
	}
}
