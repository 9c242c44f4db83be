package randtest

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
