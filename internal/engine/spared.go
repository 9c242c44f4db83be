package engine

// A right guess saves what its code did in the meantime: the time between the guess and
// the answer in which the code went on, or waited for a call that was under way. Code that
// has come to its end, to a barrier, or to a call that is held until the guess is known to
// be right waits for the answer all the same, so that what follows saves nothing.

// spared returns how long the code went on, before the answer was there, since it took
// the guess. Where several goroutines go on, or somebody hears of the result early, it is all the
// time until the answer. Under mu.
func (c *call) spared() moment {
	use := c.tree.First()
	if use == nil || c.task.out != nil {
		return c.finished - c.goneOn
	}
	r := use.Run.Data.(*run)
	if len(r.forked) > 0 {
		return c.finished - c.goneOn
	}
	end := c.goneOn
	for u := range use.Following {
		next, ok := u.Call.Data.(*call)
		if ok && c.during(next.stopped) { // and so did the code, unless it took a guess, which is that call's to count
			return max(end, next.stopped) - c.goneOn
		}
		if !ok || next.attempt == nil || next.attempt.launched == 0 {
			continue
		}
		if next.attempt.launched >= c.finished {
			break
		}
		if end = max(end, next.finished); next.finished == 0 || end >= c.finished {
			return c.finished - c.goneOn
		}
	}
	if c.during(r.left) {
		return max(end, r.left) - c.goneOn
	}
	return c.finished - c.goneOn
}

// held notes that the call waits for what its code stands on. Under mu.
func (c *call) held() {
	c.op.CallSite.Engine().Counts().Held.Add(1)
	c.stopped = now()
}

// during reports whether a moment is between the guess and the answer.
func (c *call) during(at moment) bool { return at >= c.goneOn && at < c.finished }
