package client

import (
	"fmt"
	"slices"

	"github.com/foresay/foresay/store"
)

// An Option says something about one transaction, to Txn and Run.
type Option interface{ apply(*options) }

// options are what is said about a transaction.
type options struct {
	declared      bool
	level         Level       // 0: the store's own
	reads, writes []store.Key // in ascending order
	tentative     *Tentative  // nil: it is told when it is final
	err           error       // what makes no sense
}

// optionsOf returns what is said about a transaction of a backend.
func optionsOf(b Backend, opts []Option) (o options) {
	for _, x := range opts {
		x.apply(&o)
	}
	if level := LevelOf(b); (o.level == Strict || o.level == Serializable) && level > o.level {
		o.reject(fmt.Sprintf("it asks to be %v, and the store's protocol promises %v transactions only", o.level, level))
	}
	if _, ok := o.level.MaxAge(); ok && !b.Stales() {
		o.reject(fmt.Sprintf("it asks to be %v, and the store's protocol has no closed timestamps", o.level))
	}
	return o
}

type optionFunc func(*options)

func (f optionFunc) apply(o *options) { f(o) }

// Keys declares keys that the transaction is going to read and to write; one that it reads and
// writes is in both. It is a hint. A store whose protocol can do so, Carousel, has them prepared
// while they are read [Carousel §3.2.1] or, if none is to be written, has them all read as of one
// timestamp, and the transaction is committed when the values are there [Carousel §3.2.4]. The
// others have them all read at once, however the function asks for them. Keys that are missing or
// wrong cost time: the former are read when the function asks for them, and prepared or validated
// when it commits; the latter, if they are to be written, are kept from others until the
// transaction ends. In a task of package foresay, and after an attempt that was refused, nothing is
// declared.
//
// A key that is declared twice, or empty, is a RejectedError of the transaction's, as are more than
// store.MaxAccesses keys, or 32 KiB of them, and Keys given twice.
func Keys(reads, writes []string) Option {
	return optionFunc(func(o *options) {
		if o.declared {
			o.reject("the transaction's keys are declared twice")
		}
		o.declared = true
		o.reads, o.writes = o.sorted("read", reads), o.sorted("write", writes)
		if err := store.ValidKeys(o.reads, o.writes); err != nil {
			o.reject(err.Error())
		}
	})
}

// reject keeps the first thing that makes no sense.
func (o *options) reject(detail string) {
	if o.err == nil {
		o.err = &RejectedError{Detail: detail}
	}
}

func (o *options) sorted(what string, keys []string) (out []store.Key) {
	for i, k := range keys {
		if k == "" {
			o.reject(fmt.Sprintf("the key number %d that is declared, to %s it, is empty", i+1, what))
		}
		out = append(out, store.Key(k))
	}
	slices.Sort(out)
	return out
}
