package storeconfig

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/foresay/foresay/internal/catalog"
	"github.com/foresay/foresay/internal/cli/configfile"
	"github.com/foresay/foresay/store"
	"github.com/foresay/foresay/store/machine"
	"github.com/foresay/foresay/transport"
)

// The names of files in a directory that Init made.
const (
	StoreFile  = "store.json"
	ClientFile = "client.json"
)

// MachineFile returns the name of a machine's file in a directory that Init made.
func MachineFile(machine string) string { return "machine-" + machine + ".json" }

// InitOptions say which files Init makes.
type InitOptions struct {
	Dir       string
	Cluster   string
	Protocol  string // empty: the first of package catalog's
	Mode      string // empty: the protocol's first
	Order     string // as in Store
	Speculate string // likewise
	Readers   int    // likewise
	Shards    int
	Sites     []Site     // numbers and names of machines that are missing are made up
	Placement [][]string // as in Store
	RoundTrip string
	// Trip is the round trip between two sites, by their places: by it groups that only coordinate
	// are near. nil: it is not known, and those that follow in the list are taken.
	Trip func(a, b int) time.Duration
}

// ParseSite reads a site: NAME=PEERS/CLIENT[,PEERS/CLIENT...], with the addresses of each of its
// machines for other machines and for clients. A client's address without a host has that of the
// other one. A name alone is a site whose machines have no addresses yet.
func ParseSite(text string) (Site, error) {
	name, machines, given := strings.Cut(text, "=")
	s := Site{Name: name}
	if !namePattern.MatchString(name) {
		return s, fmt.Errorf("%q is no name of a site: letters, digits, and after the first one dots, dashes and underscores",
			name)
	}
	if !given {
		return s, nil
	}
	for _, m := range strings.Split(machines, ",") {
		peers, client, ok := strings.Cut(m, "/")
		if !ok {
			return s, fmt.Errorf("%q is not PEERS/CLIENT, two addresses of a machine", m)
		}
		if port, ok := strings.CutPrefix(client, ":"); ok {
			host, _, err := net.SplitHostPort(peers)
			if err != nil {
				return s, err
			}
			client = net.JoinHostPort(host, port)
		}
		for _, a := range []string{peers, client} {
			if err := configfile.CheckAddress("site "+name, a, false); err != nil {
				return s, err
			}
		}
		s.Machines = append(s.Machines, Machine{Peers: peers, Client: client})
	}
	return s, nil
}

// nameMachines gives names to machines without.
func (s *Site) nameMachines() {
	for i := range s.Machines {
		if s.Machines[i].Name == "" && len(s.Machines) == 1 {
			s.Machines[i].Name = s.Name
		} else if s.Machines[i].Name == "" {
			s.Machines[i].Name = fmt.Sprintf("%s-%d", s.Name, i+1)
		}
	}
}

// Place gives addresses to sites without machines: n each, on a host, with ports in a row from
// first on or, if that is 0, with ports that are free now.
func Place(sites []Site, n int, host string, first int) error {
	missing := 0
	for _, s := range sites {
		if len(s.Machines) == 0 {
			missing += n
		}
	}
	if missing == 0 {
		return nil
	}
	addresses, err := configfile.FreeAddresses(host, first, 2*missing)
	if err != nil {
		return err
	}
	for i := range sites {
		if len(sites[i].Machines) > 0 {
			continue
		}
		for range n {
			sites[i].Machines = append(sites[i].Machines, Machine{Peers: addresses[0], Client: addresses[1]})
			addresses = addresses[2:]
		}
		sites[i].nameMachines()
	}
	return nil
}

// Init makes the files of a new store: one that says what it consists of, one for each machine, one
// for clients, and certificates for all of them. It overwrites nothing: a directory that has a
// store is an error. It returns the clients' file.
func Init(o InitOptions) (*ClientConfig, error) {
	fail := func(err error) (*ClientConfig, error) { return nil, fmt.Errorf("init %s: %w", o.Dir, err) }
	s := &Store{Cluster: o.Cluster, ID: strings.ToLower(rand.Text()), Protocol: o.Protocol, Mode: o.Mode,
		Order: o.Order, Speculate: o.Speculate, Readers: o.Readers, Epoch: 1, Shards: o.Shards, Sites: slices.Clone(o.Sites),
		RoundTrip: o.RoundTrip,
		Placement: o.Placement}
	for i := range s.Sites {
		s.Sites[i].Number = i + 1
		s.Sites[i].nameMachines()
	}
	if p, err := catalog.Store(s.Protocol); err == nil { // else check says so
		if p, err = p.In(s.Mode); err == nil && p.Coordinating {
			s.Coordinating = store.Names(s.SiteNames(), store.Coordinating(len(s.Sites), o.Trip))
		}
	}
	if err := s.check(); err != nil {
		return fail(err)
	}
	if err := os.MkdirAll(o.Dir, 0o755); err != nil {
		return fail(err)
	}
	for _, name := range []string{StoreFile, ClientFile} {
		if err := absent(filepath.Join(o.Dir, name), "the directory has a store already"); err != nil {
			return fail(err)
		}
	}
	ca, err := configfile.NewAuthority(o.Dir, o.Cluster)
	if err != nil {
		return fail(err)
	}
	for _, site := range s.Sites {
		if err := writeMachines(o.Dir, ca, s.Topology(), site); err != nil {
			return fail(err)
		}
	}
	files, err := ca.Issue(o.Dir, transport.AnyClientName)
	if err != nil {
		return fail(err)
	}
	if err := configfile.Write(filepath.Join(o.Dir, StoreFile), s); err != nil {
		return fail(err)
	}
	clientFile := filepath.Join(o.Dir, ClientFile)
	if err := configfile.Write(clientFile, &ClientConfig{StoreFile: StoreFile, TLS: files}); err != nil {
		return fail(err)
	}
	c, err := ReadClient(clientFile, "")
	if err != nil {
		return fail(err)
	}
	return c, nil
}

// absent returns an error if there is a file of a name.
func absent(name, complaint string) error {
	_, err := os.Stat(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err == nil:
		return errors.New(complaint)
	}
	return err
}

// writeMachines issues the certificates of a site's machines, and writes their files.
func writeMachines(dir string, ca *configfile.Authority, t store.Topology, site Site) error {
	for _, m := range site.Machines {
		ids, err := machine.Members(t, m.Name)
		if err != nil {
			return err
		}
		// Other machines know it by its nodes, clients by its address.
		var names []string
		for _, id := range ids {
			names = append(names, transport.MemberName(id))
		}
		host, _, err := net.SplitHostPort(m.Client)
		if err != nil {
			return err
		}
		files, err := ca.Issue(dir, "machine-"+m.Name, append(names, host)...)
		if err != nil {
			return err
		}
		c := &MachineConfig{StoreFile: StoreFile, Machine: m.Name, Data: "data-" + m.Name, TLS: files}
		if err := configfile.Write(filepath.Join(dir, MachineFile(m.Name)), c); err != nil {
			return err
		}
	}
	return nil
}
