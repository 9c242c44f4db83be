package bft

import (
	"fmt"
	"slices"

	"github.com/foresay/foresay/internal/wirefmt"
	"github.com/foresay/foresay/protocol"
)

// An Epoch is the number of a time in which the members and their keys are the same, from 0 on.
type Epoch uint32

// epochBits is by how much a view is shifted to get its epoch.
const epochBits = 32

// First returns the first view of an epoch. A view belongs to one epoch, so what is signed in a
// view means nothing in another epoch.
func (e Epoch) First() View { return View(e) << epochBits }

// Epoch returns the epoch of a view.
func (v View) Epoch() Epoch { return Epoch(v >> epochBits) }

// Turn returns the number of a view among those of its epoch.
func (v View) Turn() uint64 { return uint64(v) - uint64(v.Epoch().First()) }

// A Change of the members is what an administrator orders: the command of an [Operation] that has
// Members. It comes into force with the next epoch.
type Change struct {
	Kind  ChangeKind
	Party Party // for Remove its ID alone; for RotateKeys without an address, for Replace perhaps
}

// ChangeKind says what is changed.
type ChangeKind uint8

const (
	// Add makes somebody a member.
	Add ChangeKind = iota + 1
	// Remove ends a membership.
	Remove
	// Replace puts a new incarnation with a new key and an empty disk in the place of a member. The
	// old one is one of those that may be faulty until then, and nobody afterwards.
	Replace
	// RotateKeys gives a member, which keeps its disk, another key.
	RotateKeys
)

func (k ChangeKind) String() string {
	switch k {
	case Add:
		return "add"
	case Remove:
		return "remove"
	case Replace:
		return "replace"
	case RotateKeys:
		return "rotate-keys"
	}
	return "no change"
}

var changeLayout = wirefmt.NewLayout("bft: change of the members", func(c *wirefmt.Coder, m *Change) {
	wirefmt.Version(c, 1)
	wirefmt.Enum(c, &m.Kind, Add, RotateKeys, "change")
	partyFields(c, &m.Party)
})

func partyFields(c *wirefmt.Coder, p *Party) {
	wirefmt.Uint32(c, &p.ID)
	KeyFields(c, &p.Key)
	wirefmt.String(c, &p.Address)
}

// Command returns a change as a command.
func (c Change) Command() []byte { return changeLayout.Encode(c) }

// DecodeChange returns the change that a command is.
func DecodeChange(command []byte) (Change, error) { return changeLayout.Decode(command) }

// Changed is what became of a change.
type Changed struct {
	Epoch   Epoch  // that it begins
	Refused string // why it does not, "" if it does
}

var changedLayout = wirefmt.NewLayout("bft: result of a change", func(c *wirefmt.Coder, m *Changed) {
	wirefmt.Version(c, 1)
	wirefmt.Uint32(c, &m.Epoch)
	wirefmt.String(c, &m.Refused)
})

// Value returns what became of a change as the value of a Result.
func (c Changed) Value() []byte { return changedLayout.Encode(c) }

// DecodeChanged returns what became of a change, from the value of its Result.
func DecodeChanged(value []byte) (Changed, error) { return changedLayout.Decode(value) }

// MinMembers and MaxMembers bound groups whose members change. Fewer survive no faulty one.
const (
	MinMembers = 4
	MaxMembers = maxSeals
)

// maxAddress bounds an address, in bytes.
const maxAddress = 256

// After returns the directory of the next epoch, or why there cannot be such a one. It is a
// function of the change and of Epoch, Members and Gone alone, so all replicas agree.
//
// The quorums of two epochs that follow on each other share an honest replica if as many of the
// members of each are faulty as may be, the one that is replaced counted among those of the former:
// see TestConsecutiveEpochs.
func (d *Directory) After(c Change) (*Directory, error) {
	next := &Directory{Epoch: d.Epoch + 1, Members: slices.Clone(d.Members), Gone: slices.Clone(d.Gone),
		Clients: d.Clients, Administrators: d.Administrators}
	id, key := c.Party.ID, c.Party.Key
	i := slices.IndexFunc(d.Members, func(p Party) bool { return p.ID == id })
	switch {
	case c.Kind == Add && i >= 0:
		return nil, fmt.Errorf("replica %d is a member already", id)
	case c.Kind != Add && i < 0:
		return nil, fmt.Errorf("replica %d is no member", id)
	case id == protocol.App || len(c.Party.Address) > maxAddress:
		return nil, fmt.Errorf("replica %d at %.40q cannot be a member", id, c.Party.Address)
	case c.Kind != Remove && (d.IsMember(key) || slices.Contains(d.Gone, key)):
		return nil, fmt.Errorf("the key %v is, or was, a member's", key)
	case c.Kind == Remove && len(d.Members) <= MinMembers:
		return nil, fmt.Errorf("%d members would be left, fewer than %d", len(d.Members)-1, MinMembers)
	case c.Kind == Add && len(d.Members) >= MaxMembers:
		return nil, fmt.Errorf("there are %d members already", len(d.Members))
	}
	if c.Kind != Add {
		next.Gone = append(next.Gone, d.Members[i].Key)
	}
	switch c.Kind {
	case Add:
		next.Members = append(next.Members, c.Party)
	case Remove:
		next.Members = slices.Delete(next.Members, i, i+1)
	case Replace, RotateKeys:
		m := &next.Members[i]
		if m.Key = key; c.Party.Address != "" {
			m.Address = c.Party.Address
		}
	}
	return next, nil
}

// membersLayout is that of Directory.Encode.
var membersLayout = wirefmt.NewLayout("bft: members", func(c *wirefmt.Coder, d *Directory) {
	wirefmt.Version(c, 1)
	wirefmt.Uint32(c, &d.Epoch)
	wirefmt.List(c, &d.Members, 2+len(Key{})+1, partyFields)
	wirefmt.List(c, &d.Gone, 1+len(Key{}), KeyFields)
})

// Encode returns the epoch, the members, and whose keys are gone, as bytes.
func (d *Directory) Encode() []byte { return membersLayout.Encode(*d) }

// Decode returns the directory whose Encode returned b, with the clients of this one.
func (d *Directory) Decode(b []byte) (*Directory, error) {
	next, err := membersLayout.Decode(b)
	if err != nil {
		return nil, err
	}
	next.Clients, next.Administrators = d.Clients, d.Administrators
	return &next, nil
}
