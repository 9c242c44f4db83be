package engine

import (
	"log/slog"
	"time"

	"github.com/foresay/foresay/internal/spectree"
)

// stallTime is how long nothing may be under way that the code of a task waits
// for. What it waits for legitimately is counted, so this is no limit on how long
// calls take; it bounds what a mistake in the rules of speculation can cost.
const stallTime = 10 * time.Millisecond

// watchdog is a task's net under the rules of speculation: as long as code of
// the task waits, an attempt whose caller is right is under way, other code
// executes or waits for the end of its own context. If none of that is so for a while
// the task is stuck, and goes on without speculation. Under the task's mu.
type watchdog struct {
	underWay int32       // attempts of right callers that have no result
	ends     int32       // lanes that wait until a context of their code ends, see awaitEnd
	turns    int32       // how often something happened in the task
	seen     int32       // turns when the timer was set
	timer    *time.Timer // nil until it is needed
	set      bool
	doubtful bool // the task seemed stuck when it last looked
	hopeless bool // it has barked in vain
	stalls   int32
}

// underWay counts an attempt that will have a result whatever is guessed.
func (t *task) underWay(a *Attempt) {
	if !a.counted && !a.finished {
		a.counted = true
		t.dog.underWay++
	}
}

// notUnderWay takes the attempt from the count.
func (t *task) notUnderWay(a *Attempt) {
	if a.counted {
		a.counted = false
		t.dog.underWay--
	}
}

// waits reports whether something is under way that ends by itself.
func (d *watchdog) waits() bool { return d.underWay > 0 || d.ends > 0 }

// checkProgress has the watchdog look later if the task may be stuck now. It is called
// after each turn, under mu.
func (t *task) checkProgress() {
	d := &t.dog
	d.turns++
	if d.waits() || d.set || d.hopeless || !t.tree.Waiting() {
		return
	}
	d.set, d.seen = true, d.turns
	if d.timer == nil {
		d.timer = time.AfterFunc(stallTime, t.look)
	} else {
		d.timer.Reset(stallTime)
	}
}

// look finds out whether the task is stuck, and has it go on then.
func (t *task) look() {
	cut := t.cut()
	t.mu.Lock()
	t.note(cut)
	d := &t.dog
	d.set = false
	stuck := d.seen == d.turns && t.stuck()
	again := stuck && d.doubtful
	d.doubtful = stuck
	if again {
		defer t.tellStuck(t.tree.Wants())()
		d.stalls++
		d.hopeless = !t.tree.GoOn()
	}
	t.unlock()
}

// tellStuck counts that the task is stuck, and returns what logs it.
func (t *task) tellStuck(wants []spectree.Wait) func() {
	var because []string
	for _, w := range wants {
		because = append(because, w.String())
	}
	for _, w := range wants {
		if w.Call != nil {
			w.Call.Data.(*call).op.CallSite.Engine().Counts().Stalls.Add(1)
			break
		}
	}
	logger := t.cfg.logger
	if logger == nil {
		logger = slog.Default()
	}
	return func() {
		logger.Error("foresay: a task was stuck and goes on without speculation", "task", t.cfg.name, "waits for", because)
	}
}

// stuck reports whether the task waits for nothing that is under way. Under mu.
func (t *task) stuck() bool {
	if t.ended || t.dog.waits() || !t.tree.Waiting() || t.ending != nil {
		return false
	}
	for r := range t.tree.Live() {
		if r.Data.(*run).executes() {
			return false
		}
	}
	return true
}

// executes reports whether code of the run executes, as far as is known: what
// does not wait for the engine, or for a Group, counts as code that does.
func (r *run) executes() bool {
	if !r.leaving && !r.main.waits() {
		return true
	}
	for _, l := range r.forked {
		if !l.waits() {
			return true
		}
	}
	return false
}

// waits reports whether the lane's code waits for the engine or for other lanes,
// or has ended.
func (l *lane) waits() bool { return l.idle.Load() || l.tree.Waiting() }
