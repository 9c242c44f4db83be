package history

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// CommandID is what a command of a replicated state machine may be named by.
type CommandID interface {
	~string | ~uint64
}

// Proposal is a command that a client proposed.
type Proposal[ID CommandID] struct {
	ID      ID
	Client  Client
	Call    time.Duration
	Return  time.Duration // meaningless if the outcome is Unknown
	Outcome Outcome
}

// AppliedLog is the commands that one incarnation of a replica applied, in order. One that began
// with a snapshot, or with what its disk held, begins after the commands that are in there.
type AppliedLog[ID CommandID] struct {
	Replica string
	First   int // how many commands came before
	IDs     []ID
}

// Replication is a history of a replicated state machine.
type Replication[ID CommandID] struct {
	Proposals []Proposal[ID]
	Logs      []AppliedLog[ID]
	// Settled tells that the longest log was recorded after all proposals had returned and its
	// replica had caught up: a command that returned and is in no log is then lost.
	Settled bool
}

// Rule is what a replicated state machine keeps to.
type Rule uint8

const (
	// Agreement: of any two replicas' sequences of applied commands, one is a prefix of the other.
	Agreement Rule = iota + 1
	// Validity: what is applied was proposed, and its client was not told that it failed.
	Validity
	// ExactlyOnce: no command is applied twice.
	ExactlyOnce
	// RealTimeOrder: a command that returned before another was called is applied before it.
	RealTimeOrder
	// Durability: a command that returned is applied.
	Durability
)

// String returns the rule's name.
func (r Rule) String() string {
	switch r {
	case Agreement:
		return "agreement"
	case Validity:
		return "validity"
	case ExactlyOnce:
		return "exactly once"
	case RealTimeOrder:
		return "real-time order"
	case Durability:
		return "durability"
	}
	return fmt.Sprintf("Rule(%d)", uint8(r))
}

// Breach is a rule that was broken, and how: the first case that was found.
type Breach struct {
	Rule        Rule
	Explanation string
}

// ReplicationReport is what CheckReplication found: a breach at most for each rule, in the order of
// the rules.
type ReplicationReport struct {
	Breaches []Breach
}

// Verdict returns OK if no rule was broken, else Violation. It is never Undecided.
func (r ReplicationReport) Verdict() Verdict {
	if len(r.Breaches) == 0 {
		return OK
	}
	return Violation
}

// String returns the report as text.
func (r ReplicationReport) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "replication: %v\n", r.Verdict())
	for _, breach := range r.Breaches {
		fmt.Fprintf(&b, "%v: %s\n", breach.Rule, breach.Explanation)
	}
	return b.String()
}

// CheckReplication reports whether replicas applied commands as one state machine would have. It
// takes linear time. What commands answered is not its concern: see [CheckLinearizable].
//
// The error tells of a history that makes no sense.
func CheckReplication[ID CommandID](h Replication[ID]) (ReplicationReport, error) {
	c := replicationChecker[ID]{Replication: h, proposals: make(map[ID]int, len(h.Proposals)),
		broken: make(map[Rule]string)}
	for i, p := range h.Proposals {
		if _, ok := c.proposals[p.ID]; ok {
			return ReplicationReport{}, fmt.Errorf(
				"history: command %v is proposed twice: a retry is one proposal, from its first call to its last return", p.ID)
		}
		c.proposals[p.ID] = i
		if err := checkTimes(p.Call, p.Return, p.Outcome); err != nil {
			return ReplicationReport{}, fmt.Errorf("history: command %v: %w", p.ID, err)
		}
	}
	for _, log := range h.Logs {
		if log.First < 0 {
			return ReplicationReport{}, fmt.Errorf("history: replica %s: its log begins after %d commands", log.Replica,
				log.First)
		}
	}
	for _, log := range h.Logs {
		c.checkLog(log)
	}
	c.merge()
	c.checkOrder()
	var report ReplicationReport
	for rule := Agreement; rule <= Durability; rule++ {
		if explanation, ok := c.broken[rule]; ok {
			report.Breaches = append(report.Breaches, Breach{rule, explanation})
		}
	}
	return report, nil
}

type replicationChecker[ID CommandID] struct {
	Replication[ID]
	proposals map[ID]int
	broken    map[Rule]string
	// runs are the parts of the agreed order that some log shows, by position.
	runs []run[ID]
}

// run is a part of the agreed order without a gap, and which log shows each position.
type run[ID CommandID] struct {
	first int
	ids   []ID
	from  []string // replicas
}

func (c *replicationChecker[ID]) breach(rule Rule, format string, args ...any) {
	if _, ok := c.broken[rule]; !ok {
		c.broken[rule] = fmt.Sprintf(format, args...)
	}
}

// checkLog checks what one log shows by itself.
func (c *replicationChecker[ID]) checkLog(log AppliedLog[ID]) {
	at := make(map[ID]int, len(log.IDs))
	for i, id := range log.IDs {
		position := log.First + i
		if before, ok := at[id]; ok {
			c.breach(ExactlyOnce, "replica %s applied command %v as number %d and again as number %d", log.Replica, id, before,
				position)
		}
		at[id] = position
		p, ok := c.proposals[id]
		switch {
		case !ok:
			c.breach(Validity, "replica %s applied command %v as number %d, and nobody proposed it", log.Replica, id, position)
		case c.Proposals[p].Outcome == Failed:
			c.breach(Validity, "replica %s applied command %v as number %d, and client %d was told at %v that it failed",
				log.Replica, id, position, c.Proposals[p].Client, c.Proposals[p].Return)
		}
	}
}

// merge makes the agreed order of what all logs show, and compares them where they overlap.
func (c *replicationChecker[ID]) merge() {
	logs := slices.Clone(c.Logs)
	slices.SortStableFunc(logs, func(a, b AppliedLog[ID]) int { return a.First - b.First })
	for _, log := range logs {
		n := len(c.runs)
		if n == 0 || log.First > c.runs[n-1].first+len(c.runs[n-1].ids) {
			c.runs = append(c.runs, run[ID]{first: log.First})
			n++
		}
		r := &c.runs[n-1]
		for i, id := range log.IDs {
			place := log.First + i - r.first
			if place == len(r.ids) {
				r.ids, r.from = append(r.ids, id), append(r.from, log.Replica)
				continue
			}
			if r.ids[place] != id {
				c.breach(Agreement, "as number %d, replica %s applied command %v and replica %s command %v",
					log.First+i, r.from[place], r.ids[place], log.Replica, id)
				break // what follows differs too
			}
		}
	}
}

// checkOrder checks the agreed order against the clients' times.
func (c *replicationChecker[ID]) checkOrder() {
	applied := make(map[ID]bool)
	latest := -1 // of the proposals applied so far, the one that was called last
	for _, r := range c.runs {
		for i, id := range r.ids {
			p, ok := c.proposals[id]
			if !ok {
				continue
			}
			if first := !applied[id]; !first {
				c.breach(ExactlyOnce, "command %v is applied twice, the second time as number %d", id, r.first+i)
				continue
			}
			applied[id] = true
			if latest >= 0 {
				c.compare(c.Proposals[p], c.Proposals[latest], "applied after it")
			}
			if latest < 0 || c.Proposals[p].Call > c.Proposals[latest].Call {
				latest = p
			}
		}
	}
	whole := len(c.runs) == 1 && c.runs[0].first == 0 // the order has no gap that may hide a command
	for _, p := range c.Proposals {
		if applied[p.ID] || p.Outcome != Returned || !whole && len(c.runs) > 0 {
			continue
		}
		if c.Settled {
			c.breach(Durability, "command %v returned to client %d at %v, and no replica applied it", p.ID, p.Client, p.Return)
		}
		if latest >= 0 {
			c.compare(p, c.Proposals[latest], "not applied before it")
		}
	}
}

// compare breaks the real-time order if early, which is not applied before late, returned before
// late was called.
func (c *replicationChecker[ID]) compare(early, late Proposal[ID], how string) {
	if early.Outcome == Returned && early.Return < late.Call {
		c.breach(RealTimeOrder,
			"command %v returned to client %d at %v, before client %d called command %v at %v, and was %s", early.ID,
			early.Client, early.Return, late.Client, late.ID, late.Call, how)
	}
}
