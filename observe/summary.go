package observe

import (
	"fmt"
	"strings"
)

// tells reports whether there were requests enough on both sides to say anything.
func (c *Canary) tells() bool { return c.MeanMS != nil && c.P50MS != nil && c.FailedShare != nil }

// summary says in a sentence what there is to save, and what is saved.
func (q *RequestReport) summary(killed bool) string {
	r := q.Realised
	switch {
	case len(q.Methods) == 0:
		return "it makes no calls that are observed: calls belong to a request by its context"
	case q.Foreseen.Requests == 0 && r == nil:
		return "nothing is known yet"
	}
	if c := q.Canary; c != nil && c.tells() {
		return c.headline()
	}
	if r == nil {
		return q.toSave(killed)
	}
	if r.Untaken {
		untaken := fmt.Sprintf("no guess was taken in %s of %s requests that could have taken some", number(r.Requests),
			number(q.Requests))
		if q.Foreseen.Requests == 0 {
			return untaken
		}
		return q.toSave(killed) + "; " + untaken
	}
	saves := fmt.Sprintf("speculation saves %s of %s on average in %s of %s requests; extra load there %s", ms(r.SavedMS),
		ms(r.SavedMS+r.Latency.MeanMS),
		number(r.Requests), number(q.Requests), percent(r.ExtraLoad))
	if q.Foreseen.Requests == 0 {
		return saves
	}
	return q.toSave(killed) + "; " + saves
}

func (q *RequestReport) toSave(killed bool) string {
	const little, next = 0.05, 0.01 // of the request's time
	f := &q.Foreseen
	if why := q.unknown(killed); why != "" {
		return why
	}
	switch {
	case f.Requests < enoughGuesses:
		return fmt.Sprintf("too early to tell: %s requests were worked out", number(f.Requests))
	case f.SavedMS < little*f.Now.MeanMS && q.IfReads != nil:
		return q.IfReads.text() + ", if the methods that look so do only read"
	case f.SavedMS < next*f.Now.MeanMS:
		return fmt.Sprintf("there is nothing to save of %s p50", ms(f.Now.P50MS))
	}
	if q.IfPlain != nil {
		return strings.Replace(f.text(), ";", " with specgrpc on the servers;", 1)
	}
	return f.text()
}

// text tells of the median, unless most of what is saved lies elsewhere.
func (f *Foreseen) text() string {
	if f.SavedP50MS < f.SavedMS/2 {
		return fmt.Sprintf("you could save %s of %s on average; extra load %s", ms(f.SavedMS), ms(f.Now.MeanMS),
			percent(f.ExtraLoad))
	}
	return fmt.Sprintf("you could save %s p50 of %s; extra load %s", ms(f.SavedP50MS), ms(f.Now.P50MS),
		percent(f.ExtraLoad))
}

// source is who put the requests of a comparison on their sides.
type source uint8

const (
	byCanary source = iota
	byModeOn        // which leaves a few without speculation
	byBoth          // one after the other
)

func (c *Canary) source() source {
	switch c.On.Canary + c.Off.Canary {
	case c.On.Requests + c.Off.Requests:
		return byCanary
	case 0:
		return byModeOn
	}
	return byBoth
}

// against says what requests are compared.
func (c *Canary) against() string {
	left := "those left without"
	if c.Left > 0 {
		left = "the " + percent(c.Left) + " left without"
	}
	sides := func(on, off int64) string { return fmt.Sprintf("%s requests on and %s off", number(on), number(off)) }
	switch c.source() {
	case byCanary:
		return "by the canary of " + sides(c.On.Requests, c.Off.Requests)
	case byModeOn:
		return "against " + left + ": " + sides(c.On.Requests, c.Off.Requests)
	}
	return fmt.Sprintf("by the canary of %s, and against %s: %s", sides(c.On.Canary, c.Off.Canary), left,
		sides(c.On.Requests-c.On.Canary, c.Off.Requests-c.Off.Canary))
}

// headline says what was measured, which is what a clock says.
func (c *Canary) headline() string {
	d, of := c.MeanMS, c.against()
	// Requests that fail end early: that is no saving.
	if f := c.FailedShare; f != nil && f.Low > 0 {
		return "more requests fail with speculation: " + c.failures() + ", " + of
	}
	switch {
	case d.High < 0:
		return fmt.Sprintf("speculation saves %s of %s on average (%s to %s), %s", ms(-d.Value), ms(c.Off.Latency.MeanMS),
			ms(-d.High), ms(-d.Low), of)
	case d.Low > 0:
		return fmt.Sprintf("speculation costs %s on average (%s to %s), %s", ms(d.Value), ms(d.Low), ms(d.High), of)
	default:
		return fmt.Sprintf("no difference can be told: speculation saves %s on average (%s to %s), %s", ms(-d.Value),
			ms(-d.High), ms(-d.Low), of)
	}
}

// summary says in a sentence what the comparison shows.
func (c *Canary) summary() string {
	if !c.tells() {
		return fmt.Sprintf("too early to tell: %s requests on, %s off; %d on each side are needed at least",
			number(c.On.Requests), number(c.Off.Requests), fewestForMedian)
	}
	text := compare("the median is", c.P50MS) + "; " + compare("the mean is", c.MeanMS)
	switch f := c.FailedShare; {
	case f.Low > 0:
		text += "; more requests fail with it: " + c.failures()
	case f.High < 0:
		text += "; fewer requests fail with it: " + c.failures()
	default:
		text += "; requests fail as often, as far as can be told"
	}
	return text
}

// failures are the shares of failed requests, with speculation and without.
func (c *Canary) failures() string {
	return fmt.Sprintf("%s against %s", percent(c.On.FailedShare.Value), percent(c.Off.FailedShare.Value))
}

func compare(what string, d *Interval) string {
	switch {
	case d.High < 0:
		return fmt.Sprintf("%s %s lower with speculation (%s to %s)", what, ms(-d.Value), ms(-d.High), ms(-d.Low))
	case d.Low > 0:
		return fmt.Sprintf("%s %s higher with speculation (%s to %s)", what, ms(d.Value), ms(d.Low), ms(d.High))
	default:
		return fmt.Sprintf("%s the same, as far as can be told (from %s lower to %s higher)", what, ms(max(-d.Low, 0)),
			ms(max(d.High, 0)))
	}
}
