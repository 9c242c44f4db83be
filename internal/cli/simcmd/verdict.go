package simcmd

import (
	"bytes"
	"fmt"
	"io"

	"github.com/foresay/foresay/smr/smrtest"
)

// verdict is what came of one seed.
type verdict struct {
	Protocol  string  `json:"protocol"`
	Seed      uint64  `json:"seed"`
	Faults    string  `json:"faults"`
	Hash      string  `json:"hash"`
	Steps     uint64  `json:"steps"`
	Crashes   int     `json:"crashes"`
	Committed int     `json:"committed"`
	Rejected  int     `json:"rejected"`
	Unknown   int     `json:"unknown"`
	Commands  int     `json:"commands"`
	GapMs     float64 `json:"gap_ms"`
	OK        bool    `json:"ok"`
	Error     string  `json:"error,omitempty"`
	Replay    string  `json:"replay"`
	Explained string  `json:"explained,omitempty"`

	report smrtest.Report
}

// playScenario plays a scenario and judges it.
func playScenario(sc smrtest.Scenario, explain bool) verdict {
	var told bytes.Buffer
	if explain {
		sc.Explain = &told
	}
	r, err := smrtest.Play(sc)
	v := verdict{
		Protocol: sc.Protocol.Name, Seed: sc.Seed, Faults: sc.Faults.String(), Hash: fmt.Sprintf("%016x", r.Hash),
		Steps: r.Steps, Crashes: r.Crashes,
		Committed: r.Committed, Rejected: r.Rejected, Unknown: r.Unknown, Commands: r.Commands,
		GapMs: float64(r.Gap.Microseconds()) / 1000,
		OK:    err == nil, Replay: sc.Replay, Explained: told.String(), report: r,
	}
	if err != nil {
		v.Error = err.Error()
	}
	return v
}

func (v *verdict) write(w io.Writer) error {
	word := "all promises kept"
	if v.Error != "" {
		word = "BROKEN: " + v.Error
	}
	_, err := fmt.Fprintf(w, "%s: %v: %s\n%s", v.Protocol, v.report, word, v.Explained)
	return err
}
