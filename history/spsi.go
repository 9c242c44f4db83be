package history

import (
	"fmt"
	"strings"
)

// Timestamp is a time by the clocks of a store, in the store's own unit.
type Timestamp int64

// Event numbers what happened at one node, from 1 up: no two events of a node have the same number,
// and the lower number happened first. Numbers of different nodes are never compared. 0 is none: it
// did not happen.
type Event uint64

// VersionState is the state of a version when it was read.
type VersionState uint8

const (
	// Unwritten: the read found nothing, the key's initial version.
	Unwritten VersionState = iota
	// LocalCommitted: its writer had local-committed, and was neither final nor aborted.
	LocalCommitted
	// FinalCommitted: its writer was final.
	FinalCommitted
)

// String returns the state's name.
func (s VersionState) String() string {
	switch s {
	case Unwritten:
		return "unwritten"
	case LocalCommitted:
		return "local-committed"
	case FinalCommitted:
		return "final"
	}
	return fmt.Sprintf("VersionState(%d)", uint8(s))
}

// SnapshotRead is one read of an execution. Reads that an execution's own writes answered are left
// out.
type SnapshotRead[ID comparable] struct {
	// Event is when the version was as told here: of a read that is not Held, when its value was
	// handed to the user.
	Event     Event
	Key       string
	State     VersionState
	Writer    ID        // whose version it was; meaningless if Unwritten, like Timestamp
	Timestamp Timestamp // the version's: the writer's LC or FC, by State
	// OLC and FFC are the reader's oldest local commit and freshest final commit with this read
	// included, OLC math.MaxInt64 if there is none. A protocol without them leaves both 0.
	OLC, FFC Timestamp
	// Held tells that the value was chosen, and never handed to the user.
	Held bool
}

// Commit is a local or a final commit. The zero value is none.
type Commit struct {
	Event     Event // at the node where the execution originated
	Timestamp Timestamp
	// Told is when the session was told of it, as an event of that node; 0 if it never was. It may be
	// the number of the commit itself or of another event.
	Told Event
}

// Execution is one execution of a transaction: one that was aborted and run again has two.
type Execution[ID comparable] struct {
	ID ID
	// Node is where it originated: all its events are of this node. One that forgets in a crash what
	// local-committed there is another node from then on, with another name.
	Node     string
	Session  Client
	Begin    Event
	Snapshot Timestamp          // RS
	Reads    []SnapshotRead[ID] // in order
	Writes   []string           // keys
	// Local and Final are its commits, with LC and FC, and Aborted is when it was aborted: by
	// certification, for another execution, or with its node. One that is neither final nor aborted
	// is open. One may become final without having local-committed, if nobody was to read from it
	// before.
	Local, Final Commit
	Aborted      Event
	// Before it is final, it is not visible to snapshots above Bound, nor to reads from Hidden on,
	// which wait for its end or are of a snapshot before it. 0: there is no such bound.
	Bound  Timestamp
	Hidden Event
	// Data, Stack and Flow are the executions that it depended on, as its node knew them: those whose
	// versions it read before they were final; those whose versions it wrote over before they were
	// final, and whose abort it must not outlive; and earlier ones of its session that had not ended
	// when it began, of which the latest is enough.
	Data, Stack, Flow []ID
}

// Speculation is a history of a store in which transactions read what others wrote before it is
// certain, and sessions are told of commits before they are final. It has every execution, the
// aborted ones too, as the store itself knows them.
type Speculation[ID comparable] struct {
	Executions []Execution[ID]
}

// SpeculationRule is what a store under speculative snapshot isolation (SPSI) keeps to [Li, Van Roy
// and Romano, Speculative Transaction Processing in Geo-Replicated Data Stores, section 5].
//
// Two executions conflict if they wrote a common key and are concurrent: each has a snapshot below
// the other's commit, FC if it is final and LC otherwise.
type SpeculationRule uint8

const (
	// Visibility (SPSI-1): a read returns the latest version, as of its snapshot RS, among those that
	// are final with FC <= RS, whenever they become so, and those that local-committed with LC <= RS
	// at the reader's node before the read and have not ended since. An execution whose version
	// becomes final with FC > RS is no longer visible then. Who has read a version that never became
	// final need not have seen what other nodes wrote after it: that is why it was refused, of which
	// its node may hear later, and they are aborted together.
	Visibility SpeculationRule = iota + 1
	// AtomicSnapshot (SPSI-1): a snapshot that has one version of an execution has no older version of
	// any key that it wrote.
	AtomicSnapshot
	// ConflictFreeSnapshot (SPSI-3): no snapshot has two executions that conflict, unless both are
	// final: then see FirstCommitterWins. A snapshot is whatever an execution read from, what those
	// had read from, and so on, as of the last read that was handed to the user.
	ConflictFreeSnapshot
	// SettledDependencies (SPSI-4): what a final execution depended on is final, and became so first
	// if it is of the same node; data and stack dependencies with FC <= RS. A read of a version that
	// is not final is a data dependency, and the reader has it among its own.
	SettledDependencies
	// LocalSpeculation (SPSI-1): no read returns a version of another node's execution before that is
	// final.
	LocalSpeculation
	// CascadingAbort: an execution aborts if one that it depends on does, or if one whose version it
	// read or wrote over becomes final with FC > RS. At the node where that happens it does nothing
	// else before; at another node it may be open, because it may not have heard.
	CascadingAbort
	// TimestampOrder: RS < LC <= FC. What wrote nothing may commit at RS.
	TimestampOrder
	// BoundedSnapshot: OLC >= FFC at each read that was handed to the user.
	BoundedSnapshot
	// FirstCommitterWins (SPSI-2): no two final executions conflict.
	FirstCommitterWins
	// SessionOrder: an execution's snapshot is not below what its session was told at the same node
	// before the execution began, LC or FC.
	SessionOrder

	lastSpeculationRule = SessionOrder
)

// String returns the rule's name.
func (r SpeculationRule) String() string {
	switch r {
	case Visibility:
		return "visibility"
	case AtomicSnapshot:
		return "atomic snapshot"
	case ConflictFreeSnapshot:
		return "conflict-free snapshot"
	case SettledDependencies:
		return "settled dependencies"
	case LocalSpeculation:
		return "local speculation"
	case CascadingAbort:
		return "cascading abort"
	case TimestampOrder:
		return "timestamp order"
	case BoundedSnapshot:
		return "bounded snapshot"
	case FirstCommitterWins:
		return "first committer wins"
	case SessionOrder:
		return "session order"
	}
	return fmt.Sprintf("SpeculationRule(%d)", uint8(r))
}

// SpeculationBreach is a rule that was broken, and how: the first case that was found.
type SpeculationBreach struct {
	Rule        SpeculationRule
	Explanation string
}

// SpeculationReport is what CheckSpeculation found: a breach at most for each rule, in the order of
// the rules.
type SpeculationReport struct {
	Breaches []SpeculationBreach
}

// Verdict returns OK if no rule was broken, else Violation. It is never Undecided.
func (r SpeculationReport) Verdict() Verdict {
	if len(r.Breaches) == 0 {
		return OK
	}
	return Violation
}

// String returns the report as text.
func (r SpeculationReport) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "speculation: %v\n", r.Verdict())
	for _, breach := range r.Breaches {
		fmt.Fprintf(&b, "%v: %s\n", breach.Rule, breach.Explanation)
	}
	return b.String()
}

// CheckSpeculation reports whether a store kept to speculative snapshot isolation: for its
// committed transactions, its aborted ones, and those between. It sorts the events and then takes
// linear time, but for snapshots with executions that are not final: for each of these it looks at
// what is in it since the oldest of them began.
//
// It takes the store's word for timestamps, states and dependencies, and checks them against each
// other. What clients saw by their own clocks is for [CheckTransactions], with the final executions
// at [SessionSnapshotIsolation].
//
// The error tells of a history that makes no sense.
func CheckSpeculation[ID comparable](h Speculation[ID]) (SpeculationReport, error) {
	c, err := indexSpeculation(h)
	if err != nil {
		return SpeculationReport{}, fmt.Errorf("history: %w", err)
	}
	c.checkReads()
	c.checkAtomicity()
	c.checkSnapshots()
	c.checkDependencies()
	c.checkSessions()
	c.checkCommits()
	var report SpeculationReport
	for rule := Visibility; rule <= lastSpeculationRule; rule++ {
		if explanation, ok := c.broken[rule]; ok {
			report.Breaches = append(report.Breaches, SpeculationBreach{rule, explanation})
		}
	}
	return report, nil
}
