package randtest

// queuePlants are bugs in how calls wait for streams.
func queuePlants() []named {
	return []named{
		{plant{
			name: "reads that are sent plainly ahead do not queue", dir: "specgrpc",
			old: "\tif why := c.half.enter(a, false); why != (lack{}) {\n",
			new: "\tif MUTANT {\nroom.mu.Lock()\nroom.admit(&place{})\nroom.mu.Unlock()\n} else if why := c.half.enter(a, " +
				"false); why != (lack{}) {\n",
		}, "TestSendPlainlyQueues", onlyWaits},
		{plant{
			name: "a queue waits for the next call once the connection is lost", dir: "specgrpc",
			old: "|| !r.streams.sure && len(r.queue) > 0; l.on {\n",
			new: "|| (ready || !MUTANT) && !r.streams.sure && len(r.queue) > 0; l.on {\n",
		}, "TestSlowStartAfterReconnect", onlyWaits},
		{plant{
			name: "a peer's limit is never forgotten", dir: "specgrpc",
			old: "\tif b.most > needed || past > forgetAfter {\n",
			new: "\tif (b.most > needed || past > forgetAfter) && !MUTANT {\n",
		}, "TestBound", onlyWaits},
	}
}
