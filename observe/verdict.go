package observe

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/foresay/foresay/control"
)

// judge decides on one method.
type judge struct {
	*MethodReport
	method     *method
	cfg        *Config
	budget     float64
	killed     bool
	left       float64                 // the share of requests that mode on leaves without speculation
	requests   int64                   // all
	speculated int64                   // requests in which calls were
	stats      control.CallSiteStats   // of all connections
	fuse       *control.CallSiteStatus // of the call site that has the most to say, or nil
	gain       float64                 // GainMS as it is foreseen
}

// experience takes over what the fuse judges by, if it has: it counts what happened, not what is
// foreseen.
func (j *judge) experience() {
	if f := j.fuse; f != nil && f.Conclusive {
		j.BreakEven, j.Compared = f.BreakEven, true
		if f.Gain > 0 || f.Cost > 0 {
			j.GainMS, j.CostMS = milliseconds(f.Gain), milliseconds(f.Cost)
		}
	}
}

// rarely is the share of calls with a guess below which requests are said not to repeat.
const rarely = 0.02

// lastPredictor is the setting that suits what a method without predictors is judged by.
const lastPredictor = `, "predictors": [{"kind": "last"}]`

func (j *judge) judge() {
	j.gain = j.GainMS
	j.experience()
	if !j.fused() {
		j.decide()
		j.missing()
		j.public()
	}
	j.Foreseen = j.foreseen()
}

// foreseen reports whether it is known at all what predictions would save and cost.
func (m *MethodReport) foreseen() bool {
	if m.Verdict == InUse { // what its fuse counted is not foreseen
		return false
	}
	return m.SavedMS > 0 || m.SavedAloneMS > 0 || m.GainMS > 0 || m.CostMS > 0 || m.Verdict == WorthIt ||
		m.Verdict == NotWorthIt
}

// fused gives the fuse's verdict where that goes before what is foreseen.
func (j *judge) fused() bool {
	switch {
	case j.killed:
		return false
	case j.State == control.StateTripped.String():
		j.say(Tripped, "%s; it only observes until it is tried again", j.Reason)
	case j.State == control.StateProbing.String():
		j.say(TooEarly, "it has tripped (%s) and is being tried again: %s predictions are judged so far", j.Reason,
			number(int64(j.fuse.Judged)))
	default:
		return false
	}
	return true
}

// public says what it would be worth to declare the responses public.
func (j *judge) public() {
	s := &j.method.total
	if j.SharedGuessed < enoughGuesses || j.method.predicted || j.effects() || j.killed {
		return
	}
	saved := max(j.SavedMS, j.SavedAloneMS)
	if wilson(float64(s.sharedRight), float64(s.sharedGuessed)).Low < j.BreakEven ||
		j.SharedSavedMS < milliseconds(j.cfg.MinSaving) ||
		j.SharedSavedMS < 1.1*saved {
		return
	}
	j.Why += fmt.Sprintf(
		"; if all callers get the same response: %s of %s, and it saves %s per request: declare it public",
		percent(j.SharedHitRate), number(j.SharedGuessed), ms(j.SharedSavedMS))
	j.configure(`"mode": "canary", "share": 0.1, "predictors": [{"kind": "last", "public": true}]`)
}

func (j *judge) decide() {
	least := milliseconds(j.cfg.MinSaving)
	saved := max(j.SavedMS, j.SavedAloneMS)
	switch {
	case j.method.other:
		j.say(TooEarly, "it stands for methods that are not told apart: raise Config.MaxMethods")
	case j.effects() && !j.method.predicted:
		j.hasEffects()
	case j.Asked == 0:
		j.off()
	case j.Guessed < enoughGuesses && j.Asked < 10*enoughGuesses:
		j.Needed = enoughGuesses - j.Guessed
		j.say(TooEarly, "there was a guess for %s of %s calls: %s more are needed", number(j.Guessed), number(j.Asked),
			number(j.Needed))
	case float64(j.Guessed) < rarely*float64(j.Asked) && saved < least:
		j.say(NotWorthIt, "%s for only %s of %s calls", j.basis("its requests hardly repeat: there was a last response",
			"its predictors had a guess"), number(j.Guessed), number(j.Asked))
	case j.method.total.workedGuessed == 0:
		j.inUse()
	case j.Guessed < enoughGuesses:
		j.Needed = enoughGuesses - j.Guessed
		j.say(TooEarly, "there was a guess for only %s of %s calls: %s more are needed", number(j.Guessed), number(j.Asked),
			number(j.Needed))
	case j.gain < least && saved < least:
		j.say(NotWorthIt, "the request's end hardly waits for it: a right guess saves %s", ms(j.gain))
	case j.HitRateHigh < j.BreakEven:
		j.say(NotWorthIt, "%s", j.sum())
	case j.HitRateLow < j.BreakEven:
		j.tooClose()
	case saved < least:
		j.say(NotWorthIt, "there was a guess for only %s of %s calls: it saves %s per request", number(j.Guessed),
			number(j.Asked), ms(saved))
	case j.budget >= 0 && j.ExtraLoad > j.budget:
		j.say(NotWorthIt, "%s, but its wrong guesses add %s of load, above the budget of %s", j.sum(), percent(j.ExtraLoad),
			percent(j.budget))
	default:
		j.say(WorthIt, "%s", j.sum())
		j.step()
	}
}

func (j *judge) say(v Verdict, format string, args ...any) {
	j.Verdict, j.Why = v, fmt.Sprintf(format, args...)
}

func (j *judge) effects() bool {
	return !onGuesses(j.method.effect)
}

// sum spells the break-even sum out.
func (j *judge) sum() string {
	j.Compared = true
	return fmt.Sprintf("%s; needs %s: a right guess saves %s, a wrong one wastes %s of calls", j.hits(),
		percent(j.BreakEven), ms(j.GainMS), ms(j.CostMS))
}

func (j *judge) hits() string {
	if !j.method.predicted {
		return fmt.Sprintf("the last response to the same request would have been right %s of %s", percent(j.HitRate),
			number(j.Guessed))
	}
	return fmt.Sprintf("right %s of %s", percent(j.HitRate), number(j.Guessed))
}

// basis returns what fits the call site: without predictors, or with.
func (j *judge) basis(without, with string) string {
	if !j.method.predicted {
		return without
	}
	return with
}

func (j *judge) hasEffects() {
	why := "it is not declared free of side effects: it is not predicted by default, and is sent only when nothing " +
		"that it stands on " +
		"is a guess, so that it and what follows it wait"
	if j.method.reads {
		why += "; its name says that it only reads: if so, say it"
		j.configure(`"effect": "none"`)
	}
	if j.Guessed > 0 {
		why += fmt.Sprintf(" (%s", j.hits())
		if saved := max(j.SavedMS, j.SavedAloneMS); saved >= milliseconds(j.cfg.MinSaving) {
			why += fmt.Sprintf("; to predict it would save %s, for what follows it", ms(saved))
		}
		why += ")"
	}
	j.say(HasEffects, "%s", why)
}

// off tells why nothing is known.
func (j *judge) off() {
	if j.killed {
		j.say(TooEarly, "the kill switch has stopped all predictions, so nothing is known of them")
		return
	}
	j.say(TooEarly, "no guess was looked for, so nothing is known of predictions")
	if j.Mode == control.ModeOff.String() {
		j.configure(`"mode": "observe"`)
	}
}

// inUse judges a method of which only speculation itself is known: no request was without.
func (j *judge) inUse() {
	if j.killed {
		j.say(TooEarly, "%s; the kill switch has stopped all speculation", j.hits())
		return
	}
	if j.Mode != control.ModeOn.String() && j.Mode != control.ModeCanary.String() {
		why := "no request without speculation was worked out yet, so what that saves is not foreseen"
		if j.speculated > 0 && j.speculated == j.requests {
			why = "there was no request without speculation, so what that saves is not foreseen"
			if j.left > 0 {
				why += fmt.Sprintf(": mode on leaves %s without, once a thousand have begun", percent(j.left))
			}
			why += ", a canary with a share of 0.9 leaves 10 %"
		}
		j.say(TooEarly, "%s; %s", j.hits(), why)
		return
	}
	why := j.hits()
	if s := &j.stats; s.Right > 0 {
		why += fmt.Sprintf(": a right guess spared %s of waiting", ms(float64(s.SavedNanos)/1e6/float64(s.Right)))
		if s.Wrong > 0 {
			why += fmt.Sprintf(", a wrong one wasted %s of calls", ms(float64(s.WastedNanos)/1e6/float64(s.Wrong)))
		}
	}
	j.say(InUse, "%s", why)
}

// tooClose says how many guesses it takes until the interval of the hit rate leaves the break-even
// out.
func (j *judge) tooClose() {
	share, distance := j.HitRate, math.Abs(j.HitRate-j.BreakEven)
	more := math.Inf(1)
	if distance > 0 {
		more = math.Ceil(z95*z95*max(share*(1-share), 0.01)/(distance*distance)) - float64(j.Guessed)
	}
	if more > 1e6 {
		j.say(TooEarly, "%s: too close to call", j.sum())
		return
	}
	j.Needed = int64(max(more, 1))
	j.say(TooEarly, "%s: about %s more guesses are needed", j.sum(), number(j.Needed))
}

// step says what to write to go a step on.
func (j *judge) step() {
	switch j.Mode {
	case control.ModeOn.String(), control.ModeCanary.String(), "mixed":
		if j.speculated == 0 && !j.unpredicted() && j.State != control.StateTripped.String() {
			j.Why += "; its mode is " + j.Mode + ", but no call was speculated: calls speculate in tasks, which foresay.Do " +
				"and replayable handlers " +
				"make, and on connections of specgrpc.NewClient, not through ObserveInterceptor"
		}
		return
	}
	settings := `"mode": "canary", "share": 0.1`
	if !j.method.predicted {
		settings += lastPredictor
	}
	j.configure(settings)
}

// configure gives the call site's line, or if it has predictors, which a new line would take away,
// what to set in the line.
func (j *judge) configure(settings string) {
	if j.Predictors > 0 || j.method.predicted {
		j.Configure = settings
		return
	}
	j.Configure = fmt.Sprintf(`{"method": %q, %s}`, j.Name, settings)
}

// ms writes milliseconds with three digits.
func ms(v float64) string {
	switch a := math.Abs(v); {
	case a >= 99.95:
		return strconv.FormatFloat(v, 'f', 0, 64) + " ms"
	case a >= 9.995:
		return strconv.FormatFloat(v, 'f', 1, 64) + " ms"
	case a < 0.005:
		return "0 ms"
	default:
		return strconv.FormatFloat(v, 'f', 2, 64) + " ms"
	}
}

// percent writes a share with one digit after the point, unless it is a whole number.
func percent(v float64) string {
	v *= 100
	if v < 100 {
		v = min(v, 99.9) // 100 % is all
	}
	return strings.TrimSuffix(strconv.FormatFloat(v, 'f', 1, 64), ".0") + " %"
}

// number writes a count with commas.
func number(n int64) string {
	s := strconv.FormatInt(n, 10)
	for i := len(s) - 3; i > 0 && s[i-1] != '-'; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}
