package store

import (
	"cmp"

	"github.com/foresay/foresay/history"
)

// Promises returns the level of committed transactions.
func (p Protocol) Promises() history.Level { return cmp.Or(p.Level, history.StrictSerializable) }
