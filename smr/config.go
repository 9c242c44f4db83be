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
