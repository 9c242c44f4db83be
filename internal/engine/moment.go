package engine

import "time"

// moment is a point in time as tasks keep it: a third of a time.Time's size, of which a task
// has a dozen. It is of the monotonic clock; 0 is none.
type moment time.Duration

// epoch is what moments count from.
var epoch = time.Now() //tidy:ok nobody changes it

func momentOf(t time.Time) moment {
	if t.IsZero() {
		return 0
	}
	return moment(t.Sub(epoch))
}

func now() moment { return moment(time.Since(epoch)) }

func (m moment) time() time.Time {
	if m == 0 {
		return time.Time{}
	}
	return epoch.Add(time.Duration(m))
}

func (m moment) sub(o moment) time.Duration { return time.Duration(m - o) }
