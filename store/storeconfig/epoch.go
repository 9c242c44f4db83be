package storeconfig

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/foresay/foresay/internal/cli/configfile"
	"github.com/foresay/foresay/store/replicatedcommit"
)

// Fenced returns the store's next epoch, in which a site does not take part any more.
func (s *Store) Fenced(site string) (*Store, error) {
	next := s.next()
	lost := next.Site(site)
	switch {
	case lost == nil:
		return nil, fmt.Errorf("there is no site %q; the sites are %s", site, s.SiteNames())
	case lost.Fenced:
		return nil, fmt.Errorf("the site %s is fenced already", site)
	}
	lost.Fenced = true
	return next, next.check()
}

// Replaced returns the store's next epoch, in which another site is in the place of one, which may be fenced. It gets a number that no site had.
func (s *Store) Replaced(site string, by Site) (*Store, error) {
	next := s.next()
	lost := next.Site(site)
	if lost == nil {
		return nil, fmt.Errorf("there is no site %q; the sites are %s", site, s.SiteNames())
	}
	if s.Site(by.Name) != nil {
		return nil, fmt.Errorf("there is a site %q already; a new one needs a name of its own", by.Name)
	}
	by.Number, by.Fenced, by.Since = 1, false, next.Epoch
	for _, other := range s.Sites {
		by.Number = max(by.Number, other.Number+1) // the highest one is never given up without a higher one
	}
	if by.Number > replicatedcommit.MaxSiteNumber {
		return nil, fmt.Errorf("all %d numbers of sites have been used", replicatedcommit.MaxSiteNumber)
	}
	by.nameMachines()
	*lost = by
	return next, next.check()
}

// next returns a copy for the next epoch.
func (s *Store) next() *Store {
	next := *s
	next.Epoch++
	next.Sites = append([]Site(nil), s.Sites...)
	return &next
}

// SeenAs returns the store with its machines where a client knows them from an earlier file, which may be one for clients at a certain site. Those that are new are where the store's
// own file says.
func (s *Store) SeenAs(known *Store) *Store {
	out := *s
	out.Sites = nil
	for _, site := range s.Sites {
		site.Machines = slices.Clone(site.Machines)
		for i := range site.Machines {
			if j, k, ok := known.Topology().Find(site.Machines[i].Name); ok {
				site.Machines[i].Client = known.Sites[j].Machines[k].Client
			}
		}
		out.Sites = append(out.Sites, site)
	}
	return &out
}

// Advance writes the next epoch of the store in a directory that Init made: its file, of which it keeps the one of the epoch before, and the files of machines that are new. It
// returns the name of the old epoch's file.
func Advance(dir string, next *Store) (kept string, err error) {
	fail := func(err error) (string, error) { return "", fmt.Errorf("next epoch of %s: %w", dir, err) }
	name := filepath.Join(dir, StoreFile)
	old, err := ReadStore(name)
	switch {
	case err != nil:
		return fail(err)
	case next.Epoch != old.Epoch+1:
		return fail(fmt.Errorf("it is epoch %d, and the file is of epoch %d by now", next.Epoch, old.Epoch))
	}
	for _, site := range next.Sites {
		if old.Site(site.Name) != nil {
			continue
		}
		for _, m := range site.Machines {
			if err := absent(filepath.Join(dir, MachineFile(m.Name)), fmt.Sprintf("there was a machine %s before; a new one needs a name of its own", m.Name)); err != nil {
				return fail(err)
			}
		}
		ca, err := configfile.ReadAuthority(dir)
		if err != nil {
			return fail(err)
		}
		if err := writeMachines(dir, ca, next.Topology(), site); err != nil {
			return fail(err)
		}
	}
	kept = filepath.Join(dir, fmt.Sprintf("store-epoch-%d.json", old.Epoch))
	if err := configfile.Write(kept, old); err != nil {
		return fail(err)
	}
	if err := configfile.Write(name+".new", next); err != nil {
		return fail(err)
	}
	if err := os.Rename(name+".new", name); err != nil {
		return fail(err)
	}
	return kept, nil
}

// Encode returns the store's file as machines keep and compare it.
func (s *Store) Encode() ([]byte, error) { return json.Marshal(s) }

// ParseStore reads what Encode made.
func ParseStore(b []byte) (*Store, error) {
	s := &Store{}
	return s, configfile.Parse("the store's next file", b, s, s.check)
}
