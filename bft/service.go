package bft

import (
	"fmt"
	"slices"
	"time"

	"github.com/foresay/foresay/keyspace"
	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/quorum"
)

// A Service is what a group replicates. Replicas apply the same commands in the same order to the
// same keys, so nothing else may matter: no clock but the time that it is given, no chance, no
// field of its own. A command may be malformed: the result then says so.
type Service interface {
	// Apply executes a command at the time on which the replicas agreed. That never goes back.
	Apply(space keyspace.Space, now time.Duration, command []byte) (value []byte)
	// Read answers a query and changes nothing. A query may be ordered as well, if its answers differ
	// or its client has writes that are not confirmed: then Apply answers it.
	Read(keys keyspace.Reader, query []byte) (value []byte)
}

// A Directory has the keys of a group. It is not changed while a node has it.
type Directory struct {
	Epoch Epoch
	// Members are the replicas in the order in which they are primaries.
	Members []Party
	Gone    []Key // of members that are none any more: nobody is one with such a key again
	Clients map[protocol.ID]Key
	// Administrators are the clients that may change the members. All replicas have the same.
	Administrators []protocol.ID
}

// A Party is a replica with its key. Where it is reached is for its hosts.
type Party struct {
	ID      protocol.ID
	Key     Key
	Address string
}

// Validate tells what is wrong with a directory, or nil.
func (d *Directory) Validate() error {
	if len(d.Members) == 0 || len(d.Members) > maxSeals {
		return fmt.Errorf("bft: Directory.Members: %d members", len(d.Members))
	}
	for i, m := range d.Members {
		for _, o := range d.Members[:i] {
			if o.ID == m.ID || o.Key == m.Key {
				return fmt.Errorf("bft: Directory.Members: %d and %d share an ID or a key", o.ID, m.ID)
			}
		}
		if _, client := d.Clients[m.ID]; client || m.ID == protocol.App {
			return fmt.Errorf("bft: Directory.Members: %d is 0 or a client's ID", m.ID)
		}
	}
	return nil
}

// Primary returns who leads a view.
func (d *Directory) Primary(v View) Party { return d.Members[v.Turn()%uint64(len(d.Members))] }

// Member reports whether an ID is a member's.
func (d *Directory) Member(id protocol.ID) bool {
	return slices.ContainsFunc(d.Members, func(p Party) bool { return p.ID == id })
}

// KeyOf returns the key of a member, the zero Key, which nobody holds, of others.
func (d *Directory) KeyOf(id protocol.ID) Key {
	for _, m := range d.Members {
		if m.ID == id {
			return m.Key
		}
	}
	return Key{}
}

// IsMember reports whether a key is a member's.
func (d *Directory) IsMember(key Key) bool {
	return slices.ContainsFunc(d.Members, func(p Party) bool { return p.Key == key })
}

// Quorum and Witness are the sizes of quorum.Byzantine and quorum.Witness for the members.
func (d *Directory) Quorum() int { return quorum.Byzantine(len(d.Members)) }

// Witness returns how many members are needed for one of them to be honest.
func (d *Directory) Witness() int { return quorum.Witness(len(d.Members)) }

// From reports whether a request is its client's.
func (d *Directory) From(r *Signed[Request]) bool {
	key, ok := d.Clients[r.Body().Client]
	return ok && r.By(key)
}
