package history

import (
	"errors"
	"fmt"
	"time"
)

// TxnID names a transaction.
type TxnID uint64

// String returns T and the number.
func (id TxnID) String() string {
	return fmt.Sprintf("T%d", uint64(id))
}

// Initial is the version of a key that nobody has written yet.
const Initial = ""

// AccessKind is what a transaction did to a key.
type AccessKind uint8

const (
	// Read saw one version of a register.
	Read AccessKind = iota + 1
	// Write made a version of a register.
	Write
	// ReadList saw all elements of a list.
	ReadList
	// Append added an element to a list, which makes a version.
	Append
)

// String returns the kind's name in the text form of a history.
func (k AccessKind) String() string {
	switch k {
	case Read:
		return "read"
	case Write:
		return "write"
	case ReadList:
		return "list"
	case Append:
		return "append"
	}
	return fmt.Sprintf("AccessKind(%d)", uint8(k))
}

// Access is one access of a transaction to a key. Each key is a register or a list.
type Access struct {
	Kind AccessKind
	Key  string
	// Value is what was written, appended or read; Initial if a read found nothing. No two writes
	// to a key have the same value: then a value names a version. A deletion is a write of a value
	// that stands for it.
	Value string
	// List is what ReadList saw, the oldest element first.
	List []string
}

// Txn is one transaction.
type Txn struct {
	ID      TxnID
	Client  Client
	Begin   time.Duration // when its client began it
	End     time.Duration // when its client learnt how it ended; meaningless if the outcome is Unknown
	Outcome Outcome       // Returned is committed, Failed is aborted
	// Accesses are in the order in which the transaction made them.
	Accesses []Access
}

// Transactions is a history of transactions.
type Transactions struct {
	Txns []Txn
	// Versions tells of each register the versions that transactions left there when they
	// committed, the oldest first, less Initial; what a transaction overwrote itself may be among
	// them. It is the store's word. A register that one transaction writes at most needs none. A
	// list needs none, because its longest read shows it.
	Versions map[string][]string
}

// validate returns an error that names what makes no sense.
func (h Transactions) validate() error {
	index := make(map[TxnID]struct{}, len(h.Txns))
	for i := range h.Txns {
		t := &h.Txns[i]
		if _, ok := index[t.ID]; ok {
			return fmt.Errorf("history: %v: there are two of this name", t.ID)
		}
		index[t.ID] = struct{}{}
		if err := checkTimes(t.Begin, t.End, t.Outcome); err != nil {
			return fmt.Errorf("history: %v: %w", t.ID, err)
		}
		for j := range t.Accesses {
			if err := t.Accesses[j].validate(); err != nil {
				return fmt.Errorf("history: %v: access %d to %q: %w", t.ID, j, t.Accesses[j].Key, err)
			}
		}
	}
	return nil
}

var errInitial = errors.New("the empty string is the initial version, which nobody writes")

func (a *Access) validate() error {
	switch a.Kind {
	case Read:
	case Write, Append:
		if a.Value == Initial {
			return errInitial
		}
	case ReadList:
		if a.Value != "" {
			return errors.New("a list is read with a value")
		}
		for _, value := range a.List {
			if value == Initial {
				return errInitial
			}
		}
		return nil
	default:
		return fmt.Errorf("no such kind of access: %d", a.Kind)
	}
	if a.List != nil {
		return fmt.Errorf("%v has a list", a.Kind)
	}
	return nil
}
