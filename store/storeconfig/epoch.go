package storeconfig

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"

	"github.com/foresay/foresay/internal/cli/configfile"
	"github.com/foresay/foresay/store"
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

// Replaced returns the store's next epoch, in which another site is in the place of one, which may
// be fenced. It gets a number that no site had.
func (s *Store) Replaced(site string, by Site) (*Store, error) {
	next := s.next()
	lost := next.Site(site)
	if lost == nil {
		return nil, fmt.Errorf("there is no site %q; the sites are %s", site, s.SiteNames())
	}
	switch {
	case by.Name == site:
		return nil, fmt.Errorf("the new site cannot be called %q like the one that it replaces: the machines tell sites "+
			"apart by their names; take another one, such as %q", site, site+"-2")
	case s.Site(by.Name) != nil:
		return nil, fmt.Errorf("there is a site %q already; a new one needs a name of its own", by.Name)
	}
	by.Number, by.Fenced, by.Since = 1, false, next.Epoch
	for _, other := range s.Sites {
		by.Number = max(by.Number, other.Number+1) // the highest one is never given up without a higher one
	}
	if by.Number > store.MaxSiteNumber {
		return nil, fmt.Errorf("all %d numbers of sites have been used", store.MaxSiteNumber)
	}
	by.nameMachines()
	for _, m := range lost.Machines {
		next.Left = append(next.Left, m.Name)
	}
	*lost = by
	return next, next.check()
}

// next returns a copy for the next epoch.
func (s *Store) next() *Store {
	next := *s
	next.Epoch++
	next.Sites = append([]Site(nil), s.Sites...)
	next.Left = slices.Clone(s.Left)
	return &next
}

// SeenAs returns the store with its machines where a client knows them from an earlier file, which
// may be one for clients at a certain site. Those that are new are where the store's own file says.
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

// CheckAdvance looks for all that Advance needs, and that a new machine has a name which none has
// had: once the machines have agreed on an epoch there is no way back.
func CheckAdvance(dir string, next *Store) error {
	fail := func(err error) error { return fmt.Errorf("next epoch of %s: %w", dir, err) }
	old, err := readBefore(dir, next)
	if err != nil {
		return fail(err)
	}
	used, err := usedNames(dir, old.Epoch)
	if err != nil {
		return fail(err)
	}
	for _, site := range next.Sites {
		if old.Site(site.Name) != nil {
			continue
		}
		for _, m := range site.Machines {
			if used[m.Name] {
				return fail(fmt.Errorf("there was a machine %s before; a new one needs a name of its own", m.Name))
			}
		}
		if _, err := configfile.ReadAuthority(dir); err != nil {
			return fail(fmt.Errorf("the machines of site %s need certificates, and so the key of the store's authority: %w",
				site.Name, err))
		}
	}
	f, err := os.CreateTemp(dir, "check-*.tmp")
	if err != nil {
		return fail(err)
	}
	if err := errors.Join(f.Close(), os.Remove(f.Name())); err != nil {
		return fail(err)
	}
	return nil
}

// NameMachines names the machines of a site that is new after an epoch of the store in a directory:
// after the site, as Init does, unless a machine has had that name; then with a number behind it.
func NameMachines(dir string, epoch uint64, site *Site) error {
	used, err := usedNames(dir, epoch)
	if err != nil {
		return err
	}
	unnamed := *site
	unnamed.Machines = slices.Clone(site.Machines)
	unnamed.nameMachines()
	for i, m := range unnamed.Machines {
		if site.Machines[i].Name != "" {
			continue
		}
		name := m.Name
		for n := 2; used[name]; n++ {
			name = fmt.Sprintf("%s-%d", m.Name, n)
		}
		used[name] = true
		site.Machines[i].Name = name
	}
	return nil
}

// usedNames returns the names of the machines of all epochs up to one whose files are in a
// directory, and of those that have left.
func usedNames(dir string, last uint64) (map[string]bool, error) {
	files, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	used := map[string]bool{}
	for _, f := range files {
		if kept, _ := path.Match(epochFile("*"), f.Name()); !kept && f.Name() != StoreFile {
			continue
		}
		s, err := ReadStore(filepath.Join(dir, f.Name()))
		if err != nil {
			return nil, err
		}
		if s.Epoch > last {
			continue
		}
		for _, name := range s.Left {
			used[name] = true
		}
		for _, site := range s.Sites {
			for _, m := range site.Machines {
				used[m.Name] = true
			}
		}
	}
	return used, nil
}

// epochFile is the name of the file that is kept of an epoch.
func epochFile(epoch any) string { return fmt.Sprintf("store-epoch-%v.json", epoch) }

// ReadKept reads the file that a directory keeps of an earlier epoch.
func ReadKept(dir string, epoch uint64) (s *Store, name string, err error) {
	name = filepath.Join(dir, epochFile(epoch))
	s, err = ReadStore(name)
	return s, name, err
}

// readBefore reads the file of the epoch before another one.
func readBefore(dir string, next *Store) (*Store, error) {
	old, err := ReadStore(filepath.Join(dir, StoreFile))
	if err == nil && next.Epoch != old.Epoch+1 {
		err = fmt.Errorf("it is epoch %d, and the file is of epoch %d by now", next.Epoch, old.Epoch)
	}
	return old, err
}

// Advance writes the next epoch of the store in a directory that Init made: its file, of which it
// keeps the one of the epoch before, and the files of machines that are new. It returns the name of
// the old epoch's file. It may be interrupted, and called again.
func Advance(dir string, next *Store) (kept string, err error) {
	fail := func(err error) (string, error) { return "", fmt.Errorf("next epoch of %s: %w", dir, err) }
	name := filepath.Join(dir, StoreFile)
	old, err := readBefore(dir, next)
	if err != nil {
		return fail(err)
	}
	for _, site := range next.Sites {
		if old.Site(site.Name) != nil {
			continue
		}
		ca, err := configfile.ReadAuthority(dir)
		if err != nil {
			return fail(err)
		}
		if err := writeMachines(dir, ca, next.Topology(), site); err != nil {
			return fail(err)
		}
	}
	kept = filepath.Join(dir, epochFile(old.Epoch))
	if err := replaceFile(name, kept, old, next); err != nil {
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
