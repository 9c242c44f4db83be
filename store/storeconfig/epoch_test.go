package storeconfig

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// newStore makes a store of three sites.
func newStore(t *testing.T) (dir string, c *ClientConfig) {
	t.Helper()
	dir = t.TempDir()
	sites := []Site{{Name: "a"}, {Name: "b"}, {Name: "c"}}
	if err := Place(sites, 1, "127.0.0.1", 7000); err != nil {
		t.Fatal(err)
	}
	c, err := Init(InitOptions{Dir: dir, Cluster: "shop", Shards: 3, Sites: sites})
	if err != nil {
		t.Fatal(err)
	}
	return dir, c
}

// TestFixedSites: where a protocol cannot do without a site, no epoch is made in which one is
// fenced or replaced, and no file says so.
func TestFixedSites(t *testing.T) {
	_, c := newStore(t)
	s := *c.Store
	s.Protocol = "layered"
	for _, s.Placement = range [][][]string{nil, {{"a", "b", "c"}, {"b", "c", "a"}, {"c", "a", "b"}}} {
		expectFixedSites(t, s)
	}
}

func expectFixedSites(t *testing.T, s Store) {
	t.Helper()
	s.Sites = slices.Clone(s.Sites)
	if err := s.check(); err != nil {
		t.Fatal(err)
	}
	d, err := ParseSite("d=127.0.0.1:7100/:7101")
	if err != nil {
		t.Fatal(err)
	}
	const want = "a store of the protocol layered has the sites that it began with"
	_, fenced := s.Fenced("c")
	_, replaced := s.Replaced("c", d)
	s.Sites[2].Fenced = true
	b, err := s.Encode()
	if err != nil {
		t.Fatal(err)
	}
	_, parsed := ParseStore(b)
	for _, err := range []error{fenced, replaced, parsed} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
}

// TestIdentity: no two stores are the same one, whatever they have in common, and one stays what it
// is in all of its epochs and in all views of it. Files without an id are told by the rest.
func TestIdentity(t *testing.T) {
	_, one := newStore(t)
	_, two := newStore(t)
	if a, b := one.Store.Identity(), two.Store.Identity(); a == b || a != one.Store.ID {
		t.Errorf("two stores are %q and %q", a, b)
	}
	d, err := ParseSite("d=127.0.0.1:7100/:7101")
	if err != nil {
		t.Fatal(err)
	}
	for _, id := range []string{one.Store.ID, ""} {
		first := *one.Store
		first.ID = id
		fenced, err := first.Fenced("c")
		if err != nil {
			t.Fatal(err)
		}
		view := *first.SeenAs(&first)
		view.Sites[0].Machines[0].Client = "elsewhere:1"
		if a, b, c := first.Identity(), fenced.Identity(), view.Identity(); a == "" || a != b || a != c {
			t.Errorf("a store with the id %q is %q, %q in the next epoch, %q in a view", id, a, b, c)
		}
		replaced, err := first.Replaced("c", d)
		if err != nil {
			t.Fatal(err)
		}
		if same := first.Identity() == replaced.Identity(); same != (id != "") {
			t.Errorf("a store with the id %q is the same one with another site: %v", id, same)
		}
		other := first
		other.Shards++
		if same := first.Identity() == other.Identity(); same != (id != "") {
			t.Errorf("stores with the id %q and other shards are the same: %v", id, same)
		}
	}
}

func TestEpochs(t *testing.T) {
	dir, c := newStore(t)
	first := c.Store
	second, err := first.Fenced("c")
	if err != nil {
		t.Fatal(err)
	}
	if second.Epoch != 2 || !second.Site("c").Fenced || first.Site("c").Fenced || first.Epoch != 1 {
		t.Errorf("the fenced store is %+v, the one before %+v", second, first)
	}
	kept, err := Advance(dir, second)
	if err != nil {
		t.Fatal(err)
	}
	if was, err := ReadStore(kept); err != nil || was.Epoch != 1 {
		t.Errorf("the kept file is %+v, %v", was, err)
	}
	m, err := ReadMachine(filepath.Join(dir, MachineFile("a")))
	if err != nil || m.Store.Epoch != 2 || !m.Store.Site("c").Fenced {
		t.Errorf("a's file leads to %+v, %v", m, err)
	}
	if _, err := Advance(dir, second); err == nil ||
		!strings.Contains(err.Error(), "it is epoch 2, and the file is of epoch 2 by now") {
		t.Errorf("the same epoch again: %v", err)
	}

	d, err := ParseSite("d=127.0.0.1:7100/:7101")
	if err != nil {
		t.Fatal(err)
	}
	third, err := m.Store.Replaced("c", d)
	if err != nil {
		t.Fatal(err)
	}
	if got := third.Sites[2]; got.Name != "d" || got.Number != 4 || got.Fenced || third.Epoch != 3 {
		t.Errorf("in c's place is %+v, in epoch %d", got, third.Epoch)
	}
	if _, err := Advance(dir, third); err != nil {
		t.Fatal(err)
	}
	if m, err := ReadMachine(filepath.Join(dir, MachineFile("d"))); err != nil || m.SiteName() != "d" ||
		m.Store.Epoch != 3 {
		t.Errorf("d's file is %+v, %v", m, err)
	}

	// A number is never given twice, a name not while it is in use, and a machine's name never.
	e := Site{Name: "e", Machines: []Machine{{Peers: "h:1", Client: "h:2"}}}
	fourth, err := third.Replaced("d", e)
	if err != nil || fourth.Sites[2].Number != 5 {
		t.Errorf("in d's place is %+v, %v", fourth, err)
	}
	again := fourth.Sites[2]
	again.Name, again.Machines = "c", []Machine{{Name: "c", Peers: "h:3", Client: "h:4"}}
	older := *third // of a store whose file did not say which machines have left
	older.Left = nil
	fifth, err := older.Replaced("d", again)
	if err != nil {
		t.Fatal(err)
	}
	for want, err := range map[string]error{
		`there is no site "x"`:              errorOf(first.Fenced("x")),
		"the site c is fenced already":      errorOf(second.Fenced("c")),
		"1 of 3 sites are not fenced":       errorOf(second.Fenced("b")),
		`there is a site "b" already`:       errorOf(third.Replaced("a", Site{Name: "b"})),
		`cannot be called "a" like the one`: errorOf(third.Replaced("a", Site{Name: "a"})),
		"there was a machine c before; a":   CheckAdvance(dir, fifth),
		"there was a machine c before, as":  errorOf(third.Replaced("d", again)),
		"sites[0].machines: there are none": errorOf(third.Replaced("a", Site{Name: "x"})),
	} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got the error %v, want one with %q", err, want)
		}
	}
}

// TestInterruptedAdvance: what an interruption leaves, or another attempt, keeps nobody from
// writing the next epoch; what would is known before the machines agree.
func TestInterruptedAdvance(t *testing.T) {
	dir, c := newStore(t)
	replaced := func(s *Store, site, by string) *Store {
		t.Helper()
		d, err := ParseSite(fmt.Sprintf("%s=127.0.0.1:%d/:%d", by, 7100+10*s.Epoch, 7101+10*s.Epoch))
		if err == nil {
			err = NameMachines(dir, s.Epoch, &d)
		}
		if err != nil {
			t.Fatal(err)
		}
		next, err := s.Replaced(site, d)
		if err != nil {
			t.Fatal(err)
		}
		return next
	}
	second := replaced(c.Store, "c", "d")
	left := filepath.Join(dir, MachineFile("d"))
	if err := os.WriteFile(left, []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := CheckAdvance(dir, second); err != nil {
		t.Errorf("with a file that an interruption left: %v", err)
	}
	if _, err := Advance(dir, second); err != nil {
		t.Fatal(err)
	}
	if m, err := ReadMachine(left); err != nil || m.SiteName() != "d" {
		t.Errorf("d's file is %+v, %v", m, err)
	}
	if before, name, err := ReadKept(dir, 1); err != nil || before.Epoch != 1 ||
		filepath.Base(name) != "store-epoch-1.json" {
		t.Errorf("kept is %+v, %s, %v", before, name, err)
	}

	// The name of a site that is gone is free, that of its machine is not, also where the file of
	// its epoch is missing.
	if err := os.Remove(filepath.Join(dir, "store-epoch-1.json")); err != nil {
		t.Fatal(err)
	}
	if next, err := second.Replaced("b", Site{Name: "c",
		Machines: []Machine{{Name: "c", Peers: "127.0.0.1:7200", Client: "127.0.0.1:7201"}}}); err == nil ||
		!strings.Contains(err.Error(), "there was a machine c before") {
		t.Errorf("with a name that was used: %+v, %v", next, err)
	}
	third := replaced(second, "b", "c")
	if got := third.Site("c").Machines[0].Name; got != "c-2" {
		t.Errorf("the new machine of c is %s", got)
	}
	if err := CheckAdvance(dir, third); err != nil {
		t.Error(err)
	}
	key := filepath.Join(dir, "ca-key.pem")
	if err := os.Rename(key, key+".away"); err != nil {
		t.Fatal(err)
	}
	if err := CheckAdvance(dir, third); err == nil ||
		!strings.Contains(err.Error(), "the machines of site c need certificates") ||
		!strings.Contains(err.Error(), "ca-key.pem") {
		t.Errorf("without the authority's key: %v", err)
	}
	fenced, err := second.Fenced("b")
	if err != nil {
		t.Fatal(err)
	}
	if err := CheckAdvance(dir, fenced); err != nil {
		t.Errorf("without new machines: %v", err)
	}
	if files, err := filepath.Glob(filepath.Join(dir, "check-*")); err != nil || len(files) > 0 {
		t.Errorf("it leaves %v, %v", files, err)
	}
}

func errorOf[T any](_ T, err error) error { return err }
