package storetest

import (
	"bytes"
	"fmt"
	"iter"
	"maps"
	"slices"

	"github.com/foresay/foresay/history"
	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/store"
)

// Versions are the values that servers have written, by their keys: as histories show them.
type Versions map[store.Key]map[store.Version]string

// Add notes a value. It is an error if another server has another one under the same version.
func (w Versions) Add(p store.Protocol, key store.Key, v store.Value) error {
	all := w[key]
	if all == nil {
		all = map[store.Version]string{}
		w[key] = all
	}
	text := Shown(p, v)
	if old, ok := all[v.Version]; ok && old != text {
		return fmt.Errorf("version %v of %q is %q and %q", v.Version, key, old, text)
	}
	all[v.Version] = text
	return nil
}

// Order returns the versions of a key, the first one first.
func (w Versions) Order(key store.Key) []store.Version {
	return slices.SortedFunc(maps.Keys(w[key]), store.Version.Compare)
}

// Values returns the values of a key in the order of their versions.
func (w Versions) Values(key store.Key) []string {
	var values []string
	for _, v := range w.Order(key) {
		values = append(values, w[key][v])
	}
	return values
}

// WrittenBy reports whether a transaction has written a version of a key.
func (w Versions) WrittenBy(p store.Protocol, key store.Key, id store.TxnID) bool {
	for v := range w[key] {
		if p.Writer(v) == p.Writer(id) {
			return true
		}
	}
	return false
}

// WroteAs returns the value of a key under a version, or under another one of the same
// transaction's: what is not final may be read under an earlier one (Protocol.Stamped). It is empty
// if there is none.
func (w Versions) WroteAs(p store.Protocol, key store.Key, read store.Version) string {
	if text, ok := w[key][read]; ok || !p.Stamped {
		return text
	}
	for v, text := range w[key] {
		if p.Writer(v) == p.Writer(read) {
			return text
		}
	}
	return ""
}

// Shown is a value as it is in histories: of what a transaction writes the version may be its ID.
func Shown(p store.Protocol, v store.Value) string {
	switch {
	case v.Present:
		return string(v.Bytes)
	case v.Version.IsZero():
		return history.Initial
	}
	return "deleted by " + p.Writer(v.Version).String()
}

// EqualSites returns an error unless all sites that have a shard hold the same of it, as values
// says what a server holds.
func EqualSites(
	l store.Layout, values func(server protocol.ID) (iter.Seq2[store.Key, store.Value], error),
) error {
	for j := range l.Sites[0].Shards {
		var first []byte
		sites := l.SitesOf(j)
		for _, i := range sites {
			site := l.Sites[i]
			held, err := values(site.Shards[j])
			if err != nil {
				return err
			}
			var all []byte
			for k, v := range held {
				all = fmt.Appendf(all, "%s=%v %t %x\n", k, v.Version, v.Present, v.Bytes)
			}
			if i != sites[0] && !bytes.Equal(first, all) {
				return fmt.Errorf("shard %d: site %s holds\n%sand site %s\n%s", j, l.Sites[sites[0]].Name, first, site.Name, all)
			}
			first = all
		}
	}
	return nil
}
