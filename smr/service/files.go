package service

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/foresay/foresay/internal/catalog"
	"github.com/foresay/foresay/internal/cli/configfile"
	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/transport"
)

// InitOptions say which files Init makes.
type InitOptions struct {
	Dir       string
	Protocol  string
	Replicas  int
	Cluster   string
	Host      string // where all replicas listen
	Port      int    // of the first one, the others follow; 0: ports that are free now
	RoundTrip string
	Leader    protocol.ID // who should lead first; 0: whoever comes first
	Addresses []string    // of the replicas, instead of Host and Port
	Routing               // among groups
}

// ClientFile is the name of the clients' file in a directory that Init made.
const ClientFile = "client.json"

// ConfigFile returns the name of a replica's file in a directory that Init made.
func ConfigFile(id protocol.ID) string { return fmt.Sprintf("replica-%d.json", id) }

// Init makes the files of a cluster on this machine: one for each replica, one for clients, and
// certificates for all of them. It overwrites nothing: a directory that has a cluster is an error.
// It returns the clients' configuration.
func Init(o InitOptions) (*ClientConfig, error) {
	fail := func(err error) (*ClientConfig, error) { return nil, fmt.Errorf("init %s: %w", o.Dir, err) }
	if _, err := catalog.Protocol(o.Protocol); err != nil {
		return fail(err)
	}
	if err := o.Routing.check(); err != nil {
		return fail(err)
	}
	if err := os.MkdirAll(o.Dir, 0o755); err != nil {
		return fail(err)
	}
	clientFile := filepath.Join(o.Dir, ClientFile)
	if _, err := os.Stat(clientFile); !errors.Is(err, fs.ErrNotExist) {
		if err == nil {
			err = errors.New("the directory has a cluster already")
		}
		return fail(err)
	}
	addresses := o.Addresses
	if addresses == nil {
		var err error
		if addresses, err = configfile.FreeAddresses(o.Host, o.Port, o.Replicas); err != nil {
			return fail(err)
		}
	}
	ca, err := configfile.NewAuthority(o.Dir, o.Cluster)
	if err != nil {
		return fail(err)
	}
	var members []Member
	for i, a := range addresses {
		members = append(members, Member{protocol.ID(i + 1), a})
	}
	for _, m := range members {
		c := &Config{Cluster: o.Cluster, Protocol: o.Protocol, Routing: o.Routing, ID: m.ID, Members: members,
			RoundTrip: o.RoundTrip, Leader: o.Leader}
		if err := writeReplica(o.Dir, ca, c); err != nil {
			return fail(err)
		}
	}
	files, err := ca.Issue(o.Dir, transport.AnyClientName)
	if err != nil {
		return fail(err)
	}
	c := &ClientConfig{Cluster: o.Cluster, Protocol: o.Protocol, Routing: o.Routing, Members: members, TLS: files,
		RoundTrip: o.RoundTrip}
	if err := configfile.Write(clientFile, c); err != nil {
		return fail(err)
	}
	c, err = ReadClientConfig(clientFile)
	if err != nil {
		return fail(err)
	}
	return c, nil
}

// InitJoin makes the files of one more replica in a directory that Init made: one that is to be
// added. An empty address is one that is free now.
func InitJoin(dir string, id protocol.ID, address string) (*Config, error) {
	fail := func(err error) (*Config, error) { return nil, fmt.Errorf("init %s: replica %d: %w", dir, id, err) }
	if err := checkID("id", id); err != nil {
		return fail(err)
	}
	base := &ClientConfig{} // read as it is: names of files stay relative
	if err := configfile.Read(filepath.Join(dir, ClientFile), base, base.Check); err != nil {
		return fail(err)
	}
	if slices.ContainsFunc(base.Members, func(m Member) bool { return m.ID == id }) {
		return fail(errors.New("a replica of this ID is there already; a new one needs an ID that none has had"))
	}
	name := filepath.Join(dir, ConfigFile(id))
	if _, err := os.Stat(name); !errors.Is(err, fs.ErrNotExist) {
		if err == nil {
			err = fmt.Errorf("%s is there already", name)
		}
		return fail(err)
	}
	ca, err := configfile.ReadAuthority(dir)
	if err != nil {
		return fail(err)
	}
	if address == "" {
		if address, err = configfile.FreeBeside(base.Members[0].Address); err != nil {
			return fail(err)
		}
	}
	c := &Config{Cluster: base.Cluster, Protocol: base.Protocol, Recovery: base.Recovery, Routing: base.Routing,
		ID: id, Listen: address, Members: base.Members, Join: true, RoundTrip: base.RoundTrip}
	if err := writeReplica(dir, ca, c); err != nil {
		return fail(err)
	}
	if c, err = ReadConfig(name); err != nil {
		return fail(err)
	}
	return c, nil
}

// writeReplica issues a replica's certificate and writes its file.
func writeReplica(dir string, ca *configfile.Authority, c *Config) error {
	files, err := ca.Issue(dir, transport.MemberName(c.ID))
	if err != nil {
		return err
	}
	c.TLS, c.Data = files, fmt.Sprintf("replica-%d", c.ID)
	return configfile.Write(filepath.Join(dir, ConfigFile(c.ID)), c)
}
