package smr

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/foresay/foresay/protocol"
)

// A StatusQuery goes from an application to its replica, which answers with a Status.
type StatusQuery struct{ ID CallID }

// Status is how a replica sees itself and its group.
type Status struct {
	ID        CallID // of the query
	Replica   protocol.ID
	Role      string      // in the protocol's words: "leader", "follower", "candidate", "blank"
	Leader    protocol.ID // whom it takes for the leader, 0 for nobody, or if the protocol has none
	Serves    bool        // it has commands decided without a leader; never if the protocol has one
	Ballot    uint64      // or term, or epoch
	Committed Slot        // all slots up to it are decided
	Applied   Slot        // all commands up to it are executed. Invariant: Applied <= Committed.
	Snapshot  Slot        // of the newest snapshot
	LogSize   int         // records in the log
	Sessions  int
	Members   []Member      // in order of their IDs
	Removed   []protocol.ID // in order; they do not come back under these IDs
	// Timed says that slots are times. ClaimsAhead is how far what the replica has promised by time,
	// or a majority has, is ahead of its clock, and ClockHeld by how much that is ahead and not
	// followed: see ClockOff.
	Timed       bool
	ClaimsAhead time.Duration
	ClockHeld   time.Duration
	Resting     bool // hosts vouch for the members, which send each other no beats
	// Waits says what a replica of a new group waits for before it takes part; "" if for nothing.
	Waits string
}

// Ready reports whether what a client asks of the replica would be done now, by itself or by the
// leader that it knows.
func (s Status) Ready() bool { return s.Leader != 0 || s.Serves }

// MembersChanged goes from a replica to its application when the members have changed, and once
// after its start: a host has to know where they are.
type MembersChanged struct {
	Members []Member
	// Joining is the one of Members that somebody wants to be added, 0 for none. It is no member yet,
	// and may never be one: nothing more is said if the change is given up.
	Joining protocol.ID
}

// MembersAre goes from an application to its client node: the members of now, which it has learned
// from replicas. A client node otherwise knows those of its configuration, and whoever leads; of
// the members that came later it hears nothing while all is well.
type MembersAre struct{ Members []Member }

// ClockOff goes from a replica to its application when its clock is off, in protocols whose slots
// are times, and with zeros when it is right again.
type ClockOff struct {
	// Behind is how far the clock is behind what was promised by time: it is slow, or a majority of
	// the clocks was ahead.
	Behind time.Duration
	// Held is by how much the clock has jumped ahead, which the replica does not follow.
	Held time.Duration
	// Alone is how far what the replica alone has promised by time is ahead of what a majority has:
	// its clock is ahead, or was. It neither votes for nor proposes new commands until the time of the
	// group is there.
	Alone time.Duration
}

// Refused goes from a replica to its application: it must not take part under its identity, and
// does nothing any more. The reason says why and what to do.
type Refused struct {
	Reason  string
	Removed bool // it was removed from its group
}

// MembersDiffer goes from a replica to its application: another one would begin a new group with
// other members than this one, or this one's group has begun with others. Neither takes part
// because of the other until they are the same.
type MembersDiffer struct {
	Replica     protocol.ID
	Theirs, Own []protocol.ID // in order
}

func (m MembersDiffer) String() string {
	return fmt.Sprintf("the members differ: replica %d begins with %s, this one with %s", m.Replica, idList(m.Theirs),
		idList(m.Own))
}

func idList(ids []protocol.ID) string {
	return strings.Trim(strings.ReplaceAll(fmt.Sprint(ids), " ", ","), "[]")
}

// RefusedAsRemoved is what a replica says that was removed from its group.
func RefusedAsRemoved(id protocol.ID) Refused {
	return Refused{Reason: fmt.Sprintf("replica %d was removed from the group", id), Removed: true}
}

// Salvaged is what was found on the disk of a replica whose group has lost its quorum. The state
// machine has executed all of it.
type Salvaged struct {
	Members  []Member // of the group, as the disk knows it, in order of their IDs
	Snapshot Slot     // of the snapshot on the disk
	Applied  Slot     // of the last entry that was executed
	// Doubtful counts the entries that were executed though the disk does not say that they were
	// decided: whether their clients were told so, nobody can know.
	Doubtful int
}

// ErrNoSalvage says that a disk does not tell what its replica had executed.
var ErrNoSalvage = errors.New("a replica's disk has its votes, which do not tell what was decided and executed")
