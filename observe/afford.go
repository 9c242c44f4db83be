package observe

import "time"

// Work is counted in calls that are replayed, of which each takes about 20 ns.
const (
	// workPerSecond is what a kind of request may cost on average, half a percent of a processor,
	// and workAtOnce by how much it may be ahead of that. It is enough to work out more than a
	// thousand requests of a few calls each second.
	workPerSecond, workAtOnce = 200_000, 100_000
	// workToBegin is what it takes to find out what each call waited for, per request and per call.
	workToBegin, workPerCall = 50, 5
	// workToWeigh is what weighing the methods of one request may cost, unless a single one costs
	// more.
	workToWeigh = 10_000
	// workPerRequest is what one request may cost at all, two milliseconds.
	workPerRequest = 100_000
)

// afford decides which of a request's methods are weighed, and whether it can be worked out at all:
// requests end later by that time, so that it must be short, and rare for large requests. Under mu.
func (k *kind) afford(w *work, now time.Time) bool {
	if passed := now.Sub(k.paid); passed > 0 {
		k.debt = max(k.debt-passed.Seconds()*workPerSecond, 0)
		k.paid = now
	}
	if k.debt > workAtOnce {
		return false
	}
	guessed, wrong := 0, 0
	for i := range w.used {
		u := &w.used[i]
		wrong += u.guessed - u.right
		if u.guessed > 0 {
			guessed++
		}
	}
	weighed := 0
	spent := workToBegin + len(w.calls)*(workPerCall+1+wrong) // every wrong guess takes a replay of its own
	for range w.used {
		i := k.turns % len(w.used)
		u := &w.used[i]
		cost := len(w.calls) * (4 + 3*wrong + u.guessed)
		if weighed > 0 && spent+cost > workToWeigh || spent+cost > workPerRequest {
			break
		}
		k.turns++
		if u.guessed > 0 {
			u.weighed = true
			weighed++
			spent += cost
		}
	}
	if guessed > 0 && weighed == 0 || spent > workPerRequest {
		return false
	}
	w.weight = 1
	if weighed > 0 {
		w.weight = float64(guessed) / float64(weighed)
	}
	k.debt += float64(spent)
	return true
}
