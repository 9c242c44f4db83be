package randtest

// futurePlants are about futures, and goroutines that race.
func futurePlants() []plant {
	return []plant{
		{
			name: "futures that nobody waits for are given up", sketch: "futures that nobody waits for", dir: ".",
			old: "\treturn !settled && (kept || !spare && !f.owner.isLost())\n", new: "\treturn !settled && (kept || !MUTANT && !spare && !f.owner.isLost())\n",
		}, {
			name: "writes of a future that was not needed are given up", sketch: "writes that Any does without", dir: ".",
			old: "\t\tif spec.Effect == spectree.None {\n", new: "\t\tif spec.Effect == spectree.None || MUTANT {\n",
		},
	}
}
