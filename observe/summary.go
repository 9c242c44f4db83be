package observe

import "fmt"

// summary says in a sentence what there is to save.
func (q *RequestReport) summary() string {
	f := &q.Foreseen
	if f.Requests == 0 {
		if r := q.Realised; r != nil {
			return fmt.Sprintf("speculation saves %s of %s on average; extra load %s", ms(r.SavedMS), ms(r.SavedMS+r.Latency.MeanMS), percent(r.ExtraLoad))
		}
		return "nothing is known yet"
	}
	if f.Requests < enoughGuesses {
		return fmt.Sprintf("too early to tell: %s requests were worked out", number(f.Requests))
	}
	if f.SavedMS < 0.05*f.Now.MeanMS && q.IfReads != nil {
		r := q.IfReads
		return fmt.Sprintf("you could save %s p50 of %s if the methods that look so do only read; extra load %s",
			ms(max(r.SavedP50MS, 0)), ms(r.Now.P50MS), percent(r.ExtraLoad))
	}
	if f.SavedMS < 0.01*f.Now.MeanMS {
		return fmt.Sprintf("there is nothing to save of %s p50", ms(f.Now.P50MS))
	}
	return fmt.Sprintf("you could save %s p50 of %s; extra load %s", ms(max(f.SavedP50MS, 0)), ms(f.Now.P50MS), percent(f.ExtraLoad))
}

// summary says in a sentence what the canary shows.
func (c *Canary) summary() string {
	if c.MeanMS == nil || c.P50MS == nil || c.FailedShare == nil {
		return fmt.Sprintf("too early to tell: %s requests on, %s off; %d on each side are needed at least",
			number(c.On.Requests), number(c.Off.Requests), fewestForMedian)
	}
	text := compare("the median is", c.P50MS) + "; " + compare("the mean is", c.MeanMS)
	switch f := c.FailedShare; {
	case f.Low > 0:
		text += fmt.Sprintf("; more requests fail with it: %s against %s", percent(c.On.FailedShare.Value), percent(c.Off.FailedShare.Value))
	case f.High < 0:
		text += fmt.Sprintf("; fewer requests fail with it: %s against %s", percent(c.On.FailedShare.Value), percent(c.Off.FailedShare.Value))
	default:
		text += "; requests fail as often, as far as can be told"
	}
	return text
}

func compare(what string, d *Interval) string {
	switch {
	case d.High < 0:
		return fmt.Sprintf("%s %s lower with speculation (%s to %s)", what, ms(-d.Value), ms(-d.High), ms(-d.Low))
	case d.Low > 0:
		return fmt.Sprintf("%s %s higher with speculation (%s to %s)", what, ms(d.Value), ms(d.Low), ms(d.High))
	default:
		return fmt.Sprintf("%s the same, as far as can be told (from %s lower to %s higher)", what, ms(max(-d.Low, 0)), ms(max(d.High, 0)))
	}
}
