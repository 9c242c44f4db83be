package randtest

// guardPlants are plants in what guards a server: the random programs' servers have
// one guard, and callers of one host.
func guardPlants() []named {
	return []named{
		{plant{
			name: "a server has any number of half-open calls", dir: "specgrpc",
			old: "\tif free <= 0 {\n", new: "\tif free <= 0 && !MUTANT {\n",
		}, "TestRefusals", onlyWaits},
		{plant{
			name: "a caller takes all places", dir: "specgrpc",
			old: "n >= min(free, cfg.maxPerCaller) {\n", new: "n >= min(free, cfg.maxPerCaller) && !MUTANT {\n",
		}, "TestPlacesAreShared", onlyWaits},
		{plant{
			name: "a place is kept for ever", dir: "specgrpc",
			old: "\t\tif s.held[k]--; s.held[k] <= 0 {\n",
			new: "\t\tif MUTANT {\nbreak\n}\n\t\tif s.held[k]--; s.held[k] <= 0 {\n",
		}, "TestPlacesAreShared", onlyWaits},
		{plant{
			name: "interceptors that are not known are taken for none", dir: "specgrpc",
			old: "\tg := r.guards.Load()\n", new: "\tg := r.guards.Load()\nif g == nil && MUTANT {\ng = new(guards)\n}\n",
		}, "TestInterceptorsUnknown", "its programs make plain calls first"},
		{plant{
			name: "nobody asks for the interceptors", dir: "specgrpc",
			old: "\tif server, ok := r.server.(http.Handler); ok {\n",
			new: "\tif server, ok := r.server.(http.Handler); ok && !MUTANT {\n",
		}, "TestInterceptorsAreFound", onlyWaits},
		{plant{
			name: "stream interceptors see speculative calls", dir: "specgrpc",
			old: "\tif own, ok := r.streams[info.FullMethod]; ok {\n",
			new: "\tif own, ok := r.streams[info.FullMethod]; ok && !MUTANT {\n",
		}, "TestNamesOfSpeculativeCalls", "its stream interceptors let everything pass"},
		{plant{
			name: "a tap handle sees the name of the stream", dir: "specgrpc",
			old: "\t\town.FullMethodName = strings.TrimSuffix(",
			new: "\t\tif MUTANT {\nreturn h(ctx, info)\n}\n\t\town.FullMethodName = strings.TrimSuffix(",
		}, "TestNamesOfSpeculativeCalls", "its servers have no tap handle"},
		{plant{
			name: "interceptors see the engine's panic", dir: "specgrpc",
			old: "\tif own, ok := p.(*foresay.PanicError); ok {\n",
			new: "\tif own, ok := p.(*foresay.PanicError); ok && !MUTANT {\n",
		}, "TestPanicSeenByARecoveringInterceptor", "its handlers do not panic"},
		{plant{
			name: "a failure of a call that was sent plainly ahead is its result", dir: "specgrpc",
			old: "cc, opts); err == nil {\n\t\t\treturn nil\n", new: "cc, opts); err == nil || MUTANT {\n\t\t\treturn err\n",
		}, "TestSendPlainlyFails", onlyWaits},
		{plant{
			name: "what has side effects is sent plainly ahead", dir: "control",
			old: "\tcase cfg.SendPlainly && cfg.Effect != EffectNone:\n",
			new: "\tcase cfg.SendPlainly && cfg.Effect != EffectNone && !MUTANT:\n",
		}, "TestSendPlainlyOfEffects", "no site of its is configured so"},
		{plant{
			name: "a shadow computes what its task computes again", dir: "internal/engine",
			old: "if t = sh.of; !t.remembers(key) {\n",
			new: "if t = sh.of; MUTANT {\nt = l.run.task\n} else if !t.remembers(key) {\n",
		}, "TestShadowMemo", "its programs have no shadows"},
		{plant{
			name: "what a combination did without is waited for in a replay", dir: "internal/engine",
			old: "return !slices.Contains(earlier[n].arrived, i) })",
			new: "return !MUTANT && !slices.Contains(earlier[n].arrived, i) })",
		}, "TestDoneWithoutInEachRun", onlyWaits},
		{plant{
			name: "a choice is kept with what the first run stood on alone", dir: "internal/engine",
			old: "\t\t\tsame.bases = append(same.bases, c.basis(again)) //",
			new: "\t\t\tsame.bases = append(same.bases, c.basis(again))[:len(same.bases)+map[bool]int{false: 1}[MUTANT]] //",
		}, "TestChoiceOfTwoRuns", "few programs choose on several guesses at one moment"},
		{plant{
			name: "code has no more time to repeat what took effect than it had", dir: "internal/engine",
			old: "time.Since(t.began)+repeatsWithin)",
			new: "time.Since(t.began)+map[bool]time.Duration{false: repeatsWithin}[MUTANT])",
		}, "TestSlowToRepeat", "few programs' code takes seconds in a replay"},
		{plant{
			name: "a site is of a method that there is not", dir: "specgrpc",
			old: "cmp.Or(checkMethodName(site.Name), checkKnown(site.Name)); err != nil {\n",
			new: "cmp.Or(checkMethodName(site.Name), checkKnown(site.Name)); err != nil && !MUTANT {\n",
		}, "TestCallSitesOfNoMethod", onlyWaits},
	}
}

// contextPlants are bugs in what happens when a task's own context ends.
func contextPlants() []named {
	const reason = "no random program goes on after its task's context ended"
	return []named{
		{plant{
			name: "a task whose context ends on a guess ends", dir: "internal/engine",
			old: "\tif !firm && !abandoned && t.shadowOf == nil &&",
			new: "\tif !firm && !abandoned && !MUTANT && t.shadowOf == nil &&",
		}, "TestContextEndsOnAGuess", reason},
		{plant{
			name: "a replay is told while its code executes that the task's context has ended", dir: "internal/engine",
			old: " && !r.executes() {\n", new: " && (MUTANT || !r.executes()) {\n",
		}, "TestLanesBesideTheEnd", reason},
		{plant{
			name: "a replay is told so before all its goroutines have come as far", dir: "internal/engine",
			old: "\tif !r.task.tree.Behind(r.tree) &&", new: "\tif (MUTANT || !r.task.tree.Behind(r.tree)) &&",
		}, "TestDiscardedWhileItWaits", reason},
		{plant{
			name: "a call is sent after the task's context ended", dir: "internal/engine",
			old: "\t\t\tif ended {\n\t\t\t\twhere := t.where(op, 0)\n",
			new: "\t\t\tif ended && !MUTANT {\n\t\t\t\twhere := t.where(op, 0)\n",
		}, "TestContextEndsOnAGuess", reason},
		{plant{
			name: "an abandoned task goes on", dir: "internal/engine",
			old: "errors.Is(cut.cause, ErrAbandoned)\n", new: "errors.Is(cut.cause, ErrAbandoned) && !MUTANT\n",
		}, "TestAbandonedTask", reason},
		{plant{
			name: "an attempt without a deadline is waited for after the task's", dir: "internal/engine",
			old: "\treturn end.err == context.Canceled || ", new: "\treturn MUTANT || end.err == context.Canceled || ",
		}, "TestDeadlineOfACallSentOnAGuess", reason},
	}
}

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
		{plant{
			name: "speculative calls take the streams that end for a later attempt", dir: "specgrpc",
			old: "\tcase time.Since(r.relented) < growEvery:\n",
			new: "\tcase time.Since(r.relented) < growEvery && !MUTANT:\n",
		}, "TestRoomForLaterAttempts", onlyWaits},
		{plant{
			name: "a response that was foretold and is too large breaks the protocol", dir: "specgrpc",
			old: "status.Code(p.err) != codes.ResourceExhausted {\n",
			new: "(MUTANT || status.Code(p.err) != codes.ResourceExhausted) {\n",
		}, "TestForetoldResponseIsTooLarge", "random programs show it where calls have options, which is rare"},
		{plant{
			name: "options are told apart by comparing them only", dir: "specgrpc",
			old: "c.appendIdentity(appendOptions(b, opts), ctx, m, req, observed)\n",
			new: "c.appendIdentity(appendOptions(b, map[bool][]grpc.CallOption{true: opts}[!MUTANT]), ctx, m, req, observed)\n",
		}, "TestOptionsInTurn", "as before"},
	}
}
