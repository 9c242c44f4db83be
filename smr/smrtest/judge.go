package smrtest

import (
	"fmt"
	"time"

	"github.com/foresay/foresay/history"
)

// judge looks at the history of a run that has settled.
func (w *World) judge() error {
	h := history.Replication[commandID]{Settled: true}
	for _, p := range w.proposals {
		h.Proposals = append(h.Proposals, p.Proposal)
	}
	for _, l := range w.logs {
		h.Logs = append(h.Logs, l.AppliedLog)
	}
	report, err := history.CheckReplication(h)
	if err != nil {
		return err
	}
	if report.Verdict() != history.OK {
		return fmt.Errorf("%v", report)
	}
	return history.CheckKV(&w.ops, 20*time.Second)
}
