package command

import (
	"bytes"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/foresay/foresay/bench"
)

func play(p *Progress) {
	for i := range 40 {
		p.Report(bench.Progress{Experiment: "chain", Done: i, Total: 40, Doing: strings.Repeat("long ", 20)})
	}
	p.Clear()
}

func TestProgressWithoutTerminalIsTenLines(t *testing.T) {
	var b bytes.Buffer
	play(NewProgress(&b))
	if got := strings.Count(b.String(), "\n"); got != 10 {
		t.Errorf("%d lines were written, want 10:\n%s", got, b.String())
	}
	if strings.ContainsAny(b.String(), "\r\x1b") {
		t.Errorf("control characters were written: %q", b.String())
	}
}

func TestProgressOnTerminalStaysOnItsLine(t *testing.T) {
	var b bytes.Buffer
	play(&Progress{w: &b, Terminal: true})
	if strings.Contains(b.String(), "\n") {
		t.Error("the bar began a new line")
	}
	drawn := strings.Split(b.String(), "\r")
	for _, d := range drawn {
		if n := utf8.RuneCountInString(strings.TrimSuffix(d, ClearedToEnd)); n > columns {
			t.Errorf("the bar is %d columns wide: %q", n, d)
		}
	}
	if last := drawn[len(drawn)-1]; last != ClearedToEnd {
		t.Errorf("the bar was left as %q", last)
	}
}
