package smr

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/foresay/foresay/protocol"
)

// Defaults of configurations.
const (
	DefaultRoundTrip     = 100 * time.Millisecond
	DefaultUnderwayBytes = 6 << 20 // MaxUnderwayBytes
	defaultMaxBatch      = 1024
	defaultMaxPending    = 65536
	defaultSnapshotEvery = 100_000
	defaultPendingBytes  = 64 << 20
	defaultLogBytes      = 32 << 20
	defaultAnswerBytes   = 64 << 20
	defaultMaxSessions   = 10_000
	defaultPartBytes     = 128 << 10
)

// ReplicaConfig is what a replica of any protocol of the family is made from. A zero value of an
// optional field is its default.
type ReplicaConfig struct {
	ID protocol.ID
	// Members are the replicas of a new group, the same for each of them. A replica whose disk
	// knows better ignores it; one that joins an existing group has Join set, and gets from Members
	// whom to ask.
	Members []Member
	Join    bool
	Machine StateMachine

	// RoundTrip is about the longest round-trip time between two members. Timeouts follow from it.
	// 0 is 100 ms.
	RoundTrip time.Duration
	// Leader is the member that should lead first, 0 for whoever comes first. Protocols without a
	// leader ignore it.
	Leader protocol.ID
	// MaxBatch is how many commands are agreed on at once at most. 0 is 1024, 1 is no batching.
	MaxBatch int
	// MaxPending bounds the commands that a replica has taken and not answered, and the queries;
	// more are rejected as overload. 0 is 65536.
	MaxPending int
	// MaxPendingBytes bounds the bytes of these commands, and of these queries; a single larger one
	// is taken. 0 is 64 MiB.
	MaxPendingBytes int
	// SnapshotEvery is how many commands are executed between two snapshots, after which the log is
	// cut. 0 is 100000.
	SnapshotEvery int
	// LogBytes is about how many bytes of commands are executed between two snapshots, if
	// SnapshotEvery does not come first; for a Machine that is no Differ as many as the last
	// snapshot has, if that is more. 0 is 32 MiB.
	LogBytes int
	// SnapshotPartBytes is how much of a snapshot is written in one go; commands wait for that
	// long. 0 is 128 KiB.
	SnapshotPartBytes int
	// MaxSessions bounds the sessions; the one that was unused for the longest time goes first. 0
	// is 10000.
	MaxSessions int
	// MaxAnswerBytes bounds the results that are kept until their clients acknowledge them, in case
	// they ask again. Beyond it those of sessions that were unused for the longest time are
	// forgotten, but not that the commands were executed. 0 is 64 MiB.
	MaxAnswerBytes int
	// MaxUnderwayBytes bounds how much of the log is sent to a member that has not acknowledged it,
	// but for one message: one that was away gets what it lacks a part at a time, and what is lost
	// is sent again no faster. 0 is 6 MiB: two logs, of two tracks, and what else is said fit in the
	// queue of a connection (transport.Config.QueueBytes), which loses what is more.
	MaxUnderwayBytes int
	// Executed gets, for figures, how long after it came to this replica a command was executed
	// here, of those that clients asked this replica for. It is called in the node's own calls, and
	// must not wait. nil: nobody.
	Executed func(outcome Outcome, took time.Duration)
	// Vouch tells what this replica's host knows of another member's, and of itself. It is called
	// in the node's own calls. With it, groups rest while they have nothing to do. nil: hosts do not
	// vouch for each other, and no group rests.
	Vouch func(protocol.ID) (Vouched, bool)
}

// WithDefaults returns the configuration with all fields set and the members in order, or an error
// that names the field.
func (c ReplicaConfig) WithDefaults() (ReplicaConfig, error) {
	var err error
	if c.Members, err = validMembers(c.Members); err != nil {
		return c, fmt.Errorf("smr: ReplicaConfig.Members: %w", err)
	}
	i := slices.IndexFunc(c.Members, func(m Member) bool { return m.ID == c.ID })
	lead := slices.IndexFunc(c.Members, func(m Member) bool { return m.ID == c.Leader })
	switch {
	case c.ID == protocol.App:
		return c, fmt.Errorf("smr: ReplicaConfig.ID is 0")
	case c.Machine == nil:
		return c, fmt.Errorf("smr: ReplicaConfig.Machine is nil")
	case !c.Join && i < 0:
		return c, fmt.Errorf("smr: ReplicaConfig.Members does not have the replica %d itself; set Join for one that is to "+
			"be added", c.ID)
	case !c.Join && c.Leader != 0 && lead < 0:
		return c, fmt.Errorf("smr: ReplicaConfig.Leader: %d is no member", c.Leader)
	case c.RoundTrip < 0:
		return c, fmt.Errorf("smr: ReplicaConfig.RoundTrip is %v", c.RoundTrip)
	case c.MaxBatch < 0:
		return c, fmt.Errorf("smr: ReplicaConfig.MaxBatch is %d", c.MaxBatch)
	case c.MaxPending < 0:
		return c, fmt.Errorf("smr: ReplicaConfig.MaxPending is %d", c.MaxPending)
	case c.MaxPendingBytes < 0:
		return c, fmt.Errorf("smr: ReplicaConfig.MaxPendingBytes is %d", c.MaxPendingBytes)
	case c.LogBytes < 0:
		return c, fmt.Errorf("smr: ReplicaConfig.LogBytes is %d", c.LogBytes)
	case c.SnapshotEvery < 0:
		return c, fmt.Errorf("smr: ReplicaConfig.SnapshotEvery is %d", c.SnapshotEvery)
	case c.SnapshotPartBytes < 0:
		return c, fmt.Errorf("smr: ReplicaConfig.SnapshotPartBytes is %d", c.SnapshotPartBytes)
	case c.MaxAnswerBytes < 0:
		return c, fmt.Errorf("smr: ReplicaConfig.MaxAnswerBytes is %d", c.MaxAnswerBytes)
	case c.MaxSessions < 0:
		return c, fmt.Errorf("smr: ReplicaConfig.MaxSessions is %d", c.MaxSessions)
	case c.MaxUnderwayBytes < 0:
		return c, fmt.Errorf("smr: ReplicaConfig.MaxUnderwayBytes is %d", c.MaxUnderwayBytes)
	}
	c.RoundTrip = cmp.Or(c.RoundTrip, DefaultRoundTrip)
	c.MaxBatch = cmp.Or(c.MaxBatch, defaultMaxBatch)
	c.MaxPending = cmp.Or(c.MaxPending, defaultMaxPending)
	c.MaxPendingBytes = cmp.Or(c.MaxPendingBytes, defaultPendingBytes)
	c.LogBytes = cmp.Or(c.LogBytes, defaultLogBytes)
	c.SnapshotEvery = cmp.Or(c.SnapshotEvery, defaultSnapshotEvery)
	c.SnapshotPartBytes = cmp.Or(c.SnapshotPartBytes, defaultPartBytes)
	c.MaxAnswerBytes = cmp.Or(c.MaxAnswerBytes, defaultAnswerBytes)
	c.MaxSessions = cmp.Or(c.MaxSessions, defaultMaxSessions)
	c.MaxUnderwayBytes = cmp.Or(c.MaxUnderwayBytes, DefaultUnderwayBytes)
	return c, nil
}

// ClientConfig is what a client node of any protocol of the family is made from.
type ClientConfig struct {
	ID      protocol.ID
	Members []Member // of whom some are still members
	// RoundTrip is about the longest round-trip time to a member. A request without an answer is
	// repeated after a multiple of it. 0 is 100 ms.
	RoundTrip time.Duration
	// MaxPending bounds the calls that are not done; more are rejected at once. 0 is 65536.
	MaxPending int
	// MaxPendingBytes bounds the bytes of their commands and queries; a single larger one is taken.
	// 0 is 64 MiB.
	MaxPendingBytes int
	// Nearest is the member to ask first, 0 for any.
	Nearest protocol.ID
}

// WithDefaults returns the configuration with all fields set and the members in order, or an error
// that names the field.
func (c ClientConfig) WithDefaults() (ClientConfig, error) {
	var err error
	if c.Members, err = validMembers(c.Members); err != nil {
		return c, fmt.Errorf("smr: ClientConfig.Members: %w", err)
	}
	has := func(id protocol.ID) bool {
		return slices.ContainsFunc(c.Members, func(m Member) bool { return m.ID == id })
	}
	switch {
	case c.ID == protocol.App:
		return c, fmt.Errorf("smr: ClientConfig.ID is 0")
	case has(c.ID):
		return c, fmt.Errorf("smr: ClientConfig.ID: %d is a member", c.ID)
	case c.Nearest != 0 && !has(c.Nearest):
		return c, fmt.Errorf("smr: ClientConfig.Nearest: %d is no member", c.Nearest)
	case c.RoundTrip < 0:
		return c, fmt.Errorf("smr: ClientConfig.RoundTrip is %v", c.RoundTrip)
	case c.MaxPending < 0:
		return c, fmt.Errorf("smr: ClientConfig.MaxPending is %d", c.MaxPending)
	case c.MaxPendingBytes < 0:
		return c, fmt.Errorf("smr: ClientConfig.MaxPendingBytes is %d", c.MaxPendingBytes)
	}
	c.MaxPendingBytes = cmp.Or(c.MaxPendingBytes, defaultPendingBytes)
	c.RoundTrip = cmp.Or(c.RoundTrip, DefaultRoundTrip)
	c.MaxPending = cmp.Or(c.MaxPending, defaultMaxPending)
	return c, nil
}

// validMembers returns the members in order of their IDs.
func validMembers(group []Member) ([]Member, error) {
	if len(group) == 0 {
		return nil, fmt.Errorf("there are none")
	}
	sorted := slices.SortedFunc(slices.Values(group), func(a, b Member) int { return cmp.Compare(a.ID, b.ID) })
	for i, m := range sorted {
		switch {
		case m.ID == protocol.App:
			return nil, fmt.Errorf("one has the ID 0")
		case i > 0 && sorted[i-1].ID == m.ID:
			return nil, fmt.Errorf("%d is there twice", m.ID)
		}
	}
	return sorted, nil
}

// A Vouched is the last word of another host, which says from time to time that it is there. A host
// that is there runs all its replicas: it ends with the first of them that fails.
type Vouched struct {
	Run uint64        // names the run of the host: its replicas have begun anew if it is another one
	At  time.Duration // when it was heard last, by the clock of this host's nodes
}

// Within reports whether it was heard for less than so long. Nodes of a host run beside each other:
// the moment may be a little after the one at which a call of the node that asks began.
func (v Vouched) Within(now, patience time.Duration) bool {
	return now-v.At < patience && v.At-now < patience
}
