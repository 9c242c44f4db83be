package storeservice

import (
	"fmt"
	"time"

	pb "github.com/foresay/foresay/api/foresay/store/v1"
	"github.com/foresay/foresay/internal/cli/metrics"
	"github.com/foresay/foresay/store"
)

// SpeculationStatus is what a machine's coordinator has seen, since the machine began, of
// transactions that build on each other.
type SpeculationStatus struct {
	LocalCommits  uint64 `json:"local_commits"`
	Misspeculated uint64 `json:"misspeculated"` // of these: they were aborted later
	FinalCommits  uint64 `json:"final_commits"` // of transactions that only read, too
	// Builders have read what was not final, or were certified on top of it.
	Builders uint64       `json:"builders"`
	Aborted  []CauseCount `json:"aborted"` // by each cause
	// Chains counts local commits by on how many others, which were not final, they depended then.
	Chains       []ChainCount `json:"chains"`
	MeanChain    float64      `json:"mean_chain"`
	LongestChain uint64       `json:"longest_chain"`
	Unfinal      uint64       `json:"unfinal"` // that are committed locally now, and not final
	// Blocked wait now for what they have read, as their snapshot may have two that conflict.
	Blocked              uint64  `json:"blocked"`
	OldestBlocked        string  `json:"oldest_blocked,omitempty"`
	OldestBlockedSeconds float64 `json:"oldest_blocked_seconds"`
	// Degree is how far transactions build on what is not final: off, reads, or how many of a chain
	// are committed locally at most. Tuning is how it is chosen, at the machine that does.
	Degree string        `json:"degree"`
	Tuning *TuningStatus `json:"tuning,omitempty"`

	chainSum uint64
}

// TuningStatus is how far a store's search for the best degree is.
type TuningStatus struct {
	Settled bool           `json:"settled"` // it has found one
	Windows uint64         `json:"windows"` // that are over
	Last    []TuningWindow `json:"last"`    // the latest of them, the latest last
}

// TuningWindow is what has become of transactions while the degree was the same.
type TuningWindow struct {
	Degree           string  `json:"degree"`
	Seconds          float64 `json:"seconds"`
	CommitsPerSecond float64 `json:"commits_per_second"`
	AbortPercent     float64 `json:"abort_percent"`
	P99MS            float64 `json:"p99_ms"` // from begin to final commit
}

func describeTuning(p *pb.SpeculationStatus_Tuning) *TuningStatus {
	if p == nil {
		return nil
	}
	out := &TuningStatus{Settled: p.GetSettled(), Windows: p.GetWindows(), Last: []TuningWindow{}}
	for _, w := range p.GetLast() {
		d := TuningWindow{Degree: w.GetDegree(), Seconds: time.Duration(w.GetLengthNs()).Seconds(),
			P99MS: float64(w.GetLatencyNs()) / 1e6}
		if d.Seconds > 0 {
			d.CommitsPerSecond = float64(w.GetCommitted()) / d.Seconds
		}
		if all := w.GetCommitted() + w.GetAborted(); all > 0 {
			d.AbortPercent = 100 * float64(w.GetAborted()) / float64(all)
		}
		out.Last = append(out.Last, d)
	}
	return out
}

// CauseCount is how many transactions were aborted for a cause.
type CauseCount struct {
	Cause        string `json:"cause"`
	Transactions uint64 `json:"transactions"`
}

// ChainCount is how many transactions depended on at most so many others, and on more than the
// count before says.
type ChainCount struct {
	AtMost       *uint64 `json:"at_most,omitempty"` // nil: any number
	Transactions uint64  `json:"transactions"`
}

func describeSpeculation(p *pb.SpeculationStatus) *SpeculationStatus {
	if p == nil {
		return nil
	}
	out := &SpeculationStatus{LocalCommits: p.GetLocals(), Misspeculated: p.GetMisspeculated(),
		FinalCommits: p.GetFinals(), Builders: p.GetBuilders(), LongestChain: p.GetLongest(), Unfinal: p.GetUnfinal(),
		Blocked: p.GetBlocked(), OldestBlockedSeconds: time.Duration(p.GetBlockedNs()).Seconds(), chainSum: p.GetChainSum(),
		Degree: p.GetDegree(), Tuning: describeTuning(p.GetTuning())}
	for _, c := range p.GetAborted() {
		out.Aborted = append(out.Aborted, CauseCount{c.GetCause(), c.GetTransactions()})
	}
	for _, c := range p.GetChains() {
		out.Chains = append(out.Chains, ChainCount{c.AtMost, c.GetTransactions()})
	}
	if p.GetLocals() > 0 {
		out.MeanChain = float64(p.GetChainSum()) / float64(p.GetLocals())
	}
	if v := p.GetOldestBlocked(); v != nil {
		out.OldestBlocked = store.TxnID{Time: v.GetTime(), Client: store.ClientID(v.GetClient())}.String()
	}
	return out
}

// SnapshotStatus is what transactions' snapshots go by at a server.
type SnapshotStatus struct {
	Serves bool `json:"serves"` // it does, as far as it knows
	// It serves none above the ceiling, and none below the horizon; nil: not known yet. They were so
	// far ahead of the time here, and behind it, when the server told them.
	Ceiling             *time.Time `json:"ceiling,omitempty"`
	CeilingAheadSeconds float64    `json:"ceiling_ahead_seconds,omitempty"`
	Horizon             *time.Time `json:"horizon,omitempty"`
	HorizonAgeSeconds   float64    `json:"horizon_age_seconds,omitempty"`
	// Silent are the sites whose copies of the shard serve none.
	Silent []string `json:"silent,omitempty"`
}

func describeSnapshots(p *pb.SnapshotStatus, now time.Time) *SnapshotStatus {
	if p == nil {
		return nil
	}
	out := &SnapshotStatus{Serves: p.GetServes(), Silent: p.GetSilent()}
	at := func(ns uint64) *time.Time {
		if ns == 0 {
			return nil
		}
		t := time.Unix(0, int64(ns)).UTC()
		return &t
	}
	if out.Ceiling = at(p.GetCeiling()); out.Ceiling != nil {
		out.CeilingAheadSeconds = out.Ceiling.Sub(now).Seconds()
	}
	if out.Horizon = at(p.GetHorizon()); out.Horizon != nil {
		out.HorizonAgeSeconds = now.Sub(*out.Horizon).Seconds()
	}
	return out
}

// tellSpeculation adds what the coordinator has seen; nil: there is nothing.
func tellSpeculation(p *metrics.Page, s *SpeculationStatus) {
	if s == nil {
		return
	}
	const prefix = "foresay_store_speculation_"
	p.Counter(prefix+"local_commits_total", "Transactions that were committed locally.", s.LocalCommits)
	p.Counter(prefix+"final_commits_total", "Transactions that were committed for good, those that only read included.",
		s.FinalCommits)
	p.Counter(prefix+"building_transactions_total",
		"Transactions that have read what was not final, or were certified on top of it.", s.Builders)
	p.Counter(prefix+"misspeculated_transactions_total",
		"Transactions that were committed locally and aborted later.", s.Misspeculated)
	for _, c := range s.Aborted {
		p.Counter(prefix+"aborted_transactions_total", "Aborted transactions, by cause.", c.Transactions, "cause", c.Cause)
	}
	var bounds []float64
	var counts []uint64
	for _, c := range s.Chains {
		if counts = append(counts, c.Transactions); c.AtMost != nil {
			bounds = append(bounds, float64(*c.AtMost))
		}
	}
	p.Sizes(prefix+"chain_length",
		"On how many transactions that were not final one depended when it was committed locally.", bounds, counts,
		float64(s.chainSum))
	p.Gauge(prefix+"unfinal_transactions", "Transactions that are committed locally and not final.", float64(s.Unfinal))
	p.Gauge(prefix+"blocked_transactions",
		"Transactions that wait for what they have read, as their snapshot may have two that conflict.", float64(s.Blocked))
	p.Gauge(prefix+"oldest_blocked_seconds", "For how long the first of them has waited.", s.OldestBlockedSeconds)
}

// tellSnapshots adds what snapshots go by at a shard's server; nil: there is nothing.
func tellSnapshots(p *metrics.Page, shard uint32, s *SnapshotStatus) {
	if s == nil {
		return
	}
	label := fmt.Sprint(shard)
	p.Gauge("foresay_store_serves_snapshots", "Whether the shard's server here serves reads of snapshots.",
		metrics.Flag(s.Serves), "shard", label)
	p.Gauge("foresay_store_silent_readers", "Copies of the shard that serve none.", float64(len(s.Silent)), "shard", label)
	p.Gauge("foresay_store_ceiling_ahead_seconds", "How far in the future snapshots may be that it serves.",
		s.CeilingAheadSeconds, "shard", label)
	p.Gauge("foresay_store_horizon_age_seconds", "How old snapshots may be that it serves.", s.HorizonAgeSeconds,
		"shard", label)
}
