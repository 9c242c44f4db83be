package observe

import (
	"fmt"
	"strconv"

	"github.com/foresay/foresay/control"
)

// missing adds what keeps predictions from doing anything, although the mode has them do something.
func (j *judge) missing() {
	if j.unpredicted() {
		j.Why = fmt.Sprintf("its mode is %s, but it has no predictors: nothing is predicted; %s", j.Mode, j.Why)
		if j.Verdict == InUse {
			j.Verdict = TooEarly
		}
		if j.Verdict != NotWorthIt {
			settings := fmt.Sprintf(`"mode": %q`, j.Mode)
			if j.Share > 0 {
				settings += `, "share": ` + strconv.FormatFloat(j.Share, 'g', -1, 64)
			}
			j.configure(settings + lastPredictor)
		}
	}
	if s := &j.stats; 10*s.Limited > s.Calls {
		j.Why += fmt.Sprintf("; limited by %s (%s of %s calls)", s.LimitedBy, number(s.Limited), number(s.Calls))
	} else if 2*s.Refused > s.Calls {
		j.Why += fmt.Sprintf("; its server takes no call on a guess (refused %s of %s): make it with specgrpc.NewServer, "+
			"or what follows a guess "+
			"is not sent before that is confirmed", number(s.Refused), number(s.Calls))
	}
}

// unpredicted reports whether the mode asks for predictions that nobody makes. Those of a server,
// or of the code, show in what was predicted.
func (j *judge) unpredicted() bool {
	if j.killed || j.method.other || j.method.predicted || j.Predictors > 0 || j.stats.Predicted > 0 ||
		j.Verdict == HasEffects {
		return false
	}
	switch j.Mode {
	case control.ModeShadow.String(), control.ModeCanary.String(), control.ModeOn.String():
		return true
	}
	return false
}

// untaken reports whether no guess was taken in any request, by what the methods' call sites
// counted.
func (f *frozen) untaken(status *control.Status) bool {
	if status == nil {
		return false
	}
	for i := range f.methods {
		if f.methods[i].other {
			return false
		}
		for s := range status.CallSites {
			if site := &status.CallSites[s]; site.Name == f.methods[i].name && site.Stats.Predicted > 0 {
				return false
			}
		}
	}
	return true
}

// unknown tells why nothing is known of any method's predictions, or returns "".
func (q *RequestReport) unknown(killed bool) string {
	for i := range q.Methods {
		if q.Methods[i].Asked > 0 {
			return ""
		}
	}
	if killed {
		return "nothing is known: the kill switch has stopped all predictions"
	}
	return "nothing is known: no guess was looked for"
}
