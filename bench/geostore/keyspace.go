package geostore

import (
	"bytes"
	"iter"
	"strconv"

	"github.com/foresay/foresay/store"
	"github.com/foresay/foresay/workload"
)

// firstVersion is the version of a key that was there from the start.
func firstVersion() store.Version { return store.Version{Time: 1, Client: 1} }

// A keyspace is the keys k0, k1 and so on, as they are in a server's key space, all with one value
// of the first version.
type keyspace struct {
	n      uint64
	prefix string
	value  []byte // encoded
}

func newKeyspace(format *store.Preload, n uint64, value []byte) keyspace {
	return keyspace{
		n: n, prefix: format.Prefix,
		value: format.Encode(store.Value{Version: firstVersion(), Present: true, Bytes: value}),
	}
}

// has reports whether a key of a server's key space is one of them.
func (k keyspace) has(key []byte) bool {
	digits, ok := bytes.CutPrefix(key, []byte(k.prefix+workload.Name(0)[:1]))
	if !ok || len(digits) == 0 || len(digits) > 1 && digits[0] == '0' {
		return false
	}
	n, err := strconv.ParseUint(string(digits), 10, 64)
	return err == nil && n < k.n
}

// scan goes through the keys from lo to before hi, which may be nil, in their order as bytes.
func (k keyspace) scan(lo, hi []byte) iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		for n, ok := k.first(lo); ok; n, ok = k.next(n, true) {
			key := k.diskKey(n)
			if hi != nil && bytes.Compare(key, hi) >= 0 || !yield(key) {
				return
			}
		}
	}
}

func (k keyspace) diskKey(n uint64) []byte { return []byte(k.prefix + workload.Name(n)) }

// first returns the first number whose key is not before lo.
func (k keyspace) first(lo []byte) (n uint64, ok bool) {
	for ok = k.n > 0; ok; {
		key := k.diskKey(n)
		if bytes.Compare(key, lo) >= 0 {
			return n, true
		}
		n, ok = k.next(n, bytes.HasPrefix(lo, key))
	}
	return 0, false
}

// next returns the number that comes after n in the order of decimal digits: 0, 1, 10, 100, 101,
// 11. With deeper as false it leaves out those that begin with n's digits.
func (k keyspace) next(n uint64, deeper bool) (uint64, bool) {
	if n == 0 {
		return 1, k.n > 1
	}
	if deeper && n*10 < k.n {
		return n * 10, true
	}
	for n%10 == 9 || n+1 >= k.n {
		if n /= 10; n == 0 {
			return 0, false
		}
	}
	return n + 1, true
}
