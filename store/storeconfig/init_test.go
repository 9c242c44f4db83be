package storeconfig

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/foresay/foresay/store/machine"
	"github.com/foresay/foresay/transport"
)

func TestParseSite(t *testing.T) {
	got, err := ParseSite("oregon=10.0.0.1:7400/:7401,10.0.0.2:7400/public:1")
	want := []Machine{{Peers: "10.0.0.1:7400", Client: "10.0.0.1:7401"}, {Peers: "10.0.0.2:7400", Client: "public:1"}}
	if err != nil || got.Name != "oregon" || !slices.EqualFunc(got.Machines, want, same) {
		t.Errorf("%+v, %v", got, err)
	}
	if got, err := ParseSite("a"); err != nil || got.Name != "a" || got.Machines != nil {
		t.Errorf("%+v, %v", got, err)
	}
	for text, want := range map[string]string{
		"":            `"" is no name of a site`,
		"a=":          `"" is not PEERS/CLIENT`,
		"a=h:1":       `"h:1" is not PEERS/CLIENT`,
		"a=h/:1":      "missing port in address",
		"a=h:1/x":     `site a: "x": missing port in address`,
		"a=h:1/h:2,":  `"" is not PEERS/CLIENT`,
		"a b=h:1/h:2": `"a b" is no name of a site`,
	} {
		if _, err := ParseSite(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q gives the error %v, want one with %q", text, err, want)
		}
	}
}

func same(a, b Machine) bool {
	return a.Name == b.Name && a.Peers == b.Peers && a.Client == b.Client && slices.Equal(a.Shards, b.Shards)
}

func TestInit(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "new")
	sites := []Site{{Name: "a"}, {Name: "b"}, {Name: "c"}}
	if err := Place(sites, 2, "127.0.0.1", 7000); err != nil {
		t.Fatal(err)
	}
	c, err := Init(InitOptions{Dir: dir, Cluster: "shop", Shards: 3, Sites: sites, RoundTrip: "20ms"})
	if err != nil {
		t.Fatal(err)
	}
	if got := c.Store.Sites[2].Machines[1]; got.Name != "c-2" || got.Client != "127.0.0.1:7011" || c.Store.Epoch != 1 ||
		c.Store.Sites[2].Number != 3 {
		t.Errorf("the last machine is %+v of epoch %d", got, c.Store.Epoch)
	}
	topology := c.Store.Topology()
	for _, name := range []string{"a-1", "a-2", "b-1", "b-2", "c-1", "c-2"} {
		m, err := ReadMachine(filepath.Join(dir, MachineFile(name)))
		if err != nil {
			t.Fatal(err)
		}
		cfg, err := m.TLS.Load()
		if err != nil {
			t.Fatal(err)
		}
		ids, err := machine.Members(topology, name)
		if err != nil {
			t.Fatal(err)
		}
		leaf := cfg.Certificates[0].Leaf
		for _, id := range ids {
			if !slices.Contains(leaf.DNSNames, transport.MemberName(id)) {
				t.Errorf("the certificate of %s is for %q, not for node %d", name, leaf.DNSNames, id)
			}
		}
		if err := leaf.VerifyHostname("127.0.0.1"); err != nil {
			t.Error(err)
		}
	}
	if cfg, err := c.TLS.Load(); err != nil || cfg.Certificates[0].Leaf.DNSNames[0] != "client" {
		t.Errorf("the client's certificate: %v", err)
	}
	if _, err := Init(InitOptions{Dir: dir, Cluster: "shop", Shards: 3, Sites: sites}); err == nil ||
		!strings.Contains(err.Error(), "has a store already") {
		t.Errorf("a second store in a directory: %v", err)
	}
	if _, err := Init(InitOptions{Dir: filepath.Join(dir, "x"), Cluster: "shop", Shards: 0, Sites: sites}); err == nil ||
		!strings.Contains(err.Error(), "shards: it is missing") {
		t.Errorf("a store without shards: %v", err)
	}
	if _, err := os.Stat(filepath.Join(dir, "x")); err == nil {
		t.Error("files of a store that is wrong were made")
	}
}
