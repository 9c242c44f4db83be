package randtest

// futurePlants are about futures, goroutines that race, and processes that stand still.
func futurePlants() []plant {
	return []plant{
		{
			name: "futures that nobody waits for are given up", sketch: "futures that nobody waits for", dir: "internal/engine",
			old: "\treturn !settled && !spare && !f.owner.isLost()\n",
			new: "\treturn !settled && !MUTANT && !spare && !f.owner.isLost()\n",
		}, {
			name: "writes of a future that was not needed are given up", sketch: "writes that Any does without",
			dir: "internal/engine",
			old: "\tif l.givenUp() && spec.Effect == spectree.None {\n",
			new: "\tif l.givenUp() && (spec.Effect == spectree.None || MUTANT) {\n",
		}, {
			name: "a replay tells of a time limit that its context does not know of", sketch: "a read that runs out of time",
			dir: "internal/engine",
			old: "\tif ended == nil || byDeadline", new: "\tif MUTANT || ended == nil || byDeadline",
		}, {
			name: "nobody doubts a guess at a call that was cancelled", sketch: "a read that a timer cancels",
			dir: "internal/engine",
			old: "\tif long {\n", new: "\tif long && !MUTANT {\n",
		}, {
			name: "guesses outlive that the code gave the call up", first: []int{2755}, sketch: "a read that a timer cancels",
			dir: "internal/engine",
			old: "\t\tt.tree.Insist(u)\n", new: "\t\tif !MUTANT {\nt.tree.Insist(u)\n}\n",
		}, {
			name: "a Confirm that nobody heard counts", sketch: "staged writes, and a pause", dir: "specgrpc",
			old: "\tcase w == confirmed && unconfirmed:\n", new: "\tcase w == confirmed && unconfirmed && !MUTANT:\n",
		},
	}
}
