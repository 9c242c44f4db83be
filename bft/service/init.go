package service

import (
	"crypto/ed25519"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/foresay/foresay/internal/catalog"
	"github.com/foresay/foresay/internal/cli/configfile"
	"github.com/foresay/foresay/protocol"
)

// InitOptions say which files Init makes.
type InitOptions struct {
	Dir       string
	Protocol  string
	Service   string
	Cluster   string
	Replicas  int
	Clients   int
	Host      string // where all replicas listen
	Port      int    // of the first one, the others follow; 0: ports that are free now
	RoundTrip string
	Addresses []string // of the replicas, instead of Host and Port
}

// Names of files in a directory that Init made.
const (
	GroupFile = "group.json"
	keyFile   = "key.pem"
	// FirstClientID is the ID of the first client that Init makes; those of others follow.
	FirstClientID protocol.ID = 70000
)

// ConfigFile returns the name of a replica's file in a directory that Init made.
func ConfigFile(id protocol.ID) string {
	return filepath.Join(fmt.Sprintf("replica-%d", id), "replica.json")
}

// ClientFile returns the name of a client's file in a directory that Init made, by the place of the
// client from 0 on.
func ClientFile(place int) string {
	return filepath.Join(fmt.Sprintf("client-%d", FirstClientID+protocol.ID(place)), "client.json")
}

// Init makes a group's file, a directory with a key for each replica, and one for each client. It
// overwrites nothing: a directory that has a group is an error. It returns the group.
func Init(o InitOptions) (*Group, error) {
	fail := func(err error) (*Group, error) { return nil, fmt.Errorf("init %s: %w", o.Dir, err) }
	if _, err := catalog.Byzantine(o.Protocol); err != nil {
		return fail(err)
	}
	if _, err := catalog.Service(o.Service); err != nil {
		return fail(err)
	}
	if err := os.MkdirAll(o.Dir, 0o755); err != nil {
		return fail(err)
	}
	file := filepath.Join(o.Dir, GroupFile)
	if _, err := os.Stat(file); !errors.Is(err, fs.ErrNotExist) {
		if err == nil {
			err = errors.New("the directory has a group already")
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
	g := &Group{Cluster: o.Cluster, Protocol: o.Protocol, Service: o.Service, RoundTrip: o.RoundTrip}
	for i, address := range addresses {
		id := protocol.ID(i + 1)
		key, err := newParty(o.Dir, ConfigFile(id))
		if err != nil {
			return fail(err)
		}
		g.Members = append(g.Members, Member{id, address, publicText(key)})
		c := &Config{Group: filepath.Join("..", GroupFile), ID: id, Key: keyFile, Data: "data"}
		if err := configfile.Write(filepath.Join(o.Dir, ConfigFile(id)), c); err != nil {
			return fail(err)
		}
	}
	for i := range o.Clients {
		id := FirstClientID + protocol.ID(i)
		key, err := newParty(o.Dir, ClientFile(i))
		if err != nil {
			return fail(err)
		}
		g.Clients = append(g.Clients, Party{ID: id, Key: publicText(key), Admin: i == 0})
		c := &ClientConfig{Group: filepath.Join("..", GroupFile), ID: id, Key: keyFile}
		if err := configfile.Write(filepath.Join(o.Dir, ClientFile(i)), c); err != nil {
			return fail(err)
		}
	}
	if err := configfile.Write(file, g); err != nil {
		return fail(err)
	}
	g, err := ReadGroup(file)
	if err != nil {
		return fail(err)
	}
	return g, nil
}

// InitJoin makes the files and the key of a replica that is to be added to the group of a directory
// that Init has made, or to take the place of one whose directory is gone. Without an address it is
// that of the one whose place it takes, or a free one.
func InitJoin(dir string, id protocol.ID, address string) (*Config, error) {
	fail := func(err error) (*Config, error) { return nil, fmt.Errorf("init %s: %w", dir, err) }
	g, err := ReadGroup(filepath.Join(dir, GroupFile))
	if err != nil {
		return fail(err)
	}
	if !IsReplica(id) {
		return fail(fmt.Errorf("%d is no replica's ID; want 1 to %d", id, firstClient-1))
	}
	for _, m := range g.Members {
		if m.ID == id && address == "" {
			address = m.Address
		}
	}
	if address == "" {
		if address, err = configfile.FreeBeside(g.Members[0].Address); err != nil {
			return fail(err)
		}
	}
	file := filepath.Join(dir, ConfigFile(id))
	if _, err := newParty(dir, ConfigFile(id)); err != nil {
		if errors.Is(err, fs.ErrExist) {
			err = fmt.Errorf("replica %d has a key there already: move its directory away: %w", id, err)
		}
		return fail(err)
	}
	c := &Config{Group: filepath.Join("..", GroupFile), ID: id, Join: true, Key: keyFile, Data: "data", Listen: address}
	if err := configfile.Write(file, c); err != nil {
		return fail(err)
	}
	if c, err = ReadConfig(file); err != nil {
		return fail(err)
	}
	return c, nil
}

// IsReplica reports whether an ID can be a replica's.
func IsReplica(id protocol.ID) bool { return id > 0 && id < firstClient }

// Replaces reports whether the replica is to take the place of one of the group's file.
func (c *Config) Replaces() bool { return c.group.directory.Member(c.ID) }

// PublicKey returns the replica's public key, in digits.
func (c *Config) PublicKey() string { return publicText(c.key) }

// newParty makes the directory that a file is in, and a key in it.
func newParty(dir, file string) (ed25519.PrivateKey, error) {
	own := filepath.Join(dir, filepath.Dir(file))
	if err := os.MkdirAll(own, 0o755); err != nil {
		return nil, err
	}
	return writeKey(filepath.Join(own, keyFile))
}

func publicText(key ed25519.PrivateKey) string {
	return hex.EncodeToString(key.Public().(ed25519.PublicKey))
}

// Example returns a replica's file and a group's, with comments.
func Example() (replica, group string) {
	return exampleReplica, fmt.Sprintf(exampleGroup, strings.Join(catalog.ByzantineNames(), ", "),
		strings.Join(catalog.ServiceNames(), ", "))
}

const exampleReplica = `// A replica's file, for 'foresay bft serve --config FILE'. It is JSON; lines that begin with // are comments.
// Names of files and directories are relative to this file. 'foresay bft init' writes such files,
// with keys.
{
  // The group's file, the same everywhere: 'foresay bft config --group' shows one.
  "group": "../group.json",
  // Who this replica is, among the members that stand there.
  "id": 1,
  // Whether its key is not in the group's file, as it is to be added, or to replace one.
  "join": false,
  // Its private key, of Ed25519. Whoever has it is this replica: keep it here, and nowhere else.
  "key": "key.pem",
  // The directory of its log. What it promised is there: never copy it, never start it twice.
  "data": "data",
  // Where it listens, for other replicas and for clients. Left out: its address in the group's file.
  "listen": "0.0.0.0:7400",
  // Where /metrics (Prometheus' text) and /ready are served by HTTP. Left out: nowhere.
  "metrics": "127.0.0.1:7480",
  "log": {"level": "info", "format": "text"}
}
`

const exampleGroup = `// A group's file. All replicas and clients have the same; it is no secret, but whoever can change it
// decides whom its reader believes.
{
  // Its name, which is a part of all that is signed.
  "cluster": "shop",
  // One of %s.
  "protocol": "pbft",
  // What is replicated: one of %s.
  "service": "counter",
  // About the longest round-trip time between two replicas: timeouts follow from it. Left out: 100ms.
  "round_trip": "100ms",
  // The replicas, in the order in which they lead, with their public keys. One of four may be faulty, two of seven.
  "members": [
    {"id": 1, "address": "10.0.0.1:7400", "key": "03a107bff3ce10be1d70dd18e74bc09967e4d6309ba50d5f1ddc8664125531b8"},
    {"id": 2, "address": "10.0.0.2:7400", "key": "79b5562e8fe654f94078b112e8a98ba7901f853ae695bed7e0e3910bad049664"},
    {"id": 3, "address": "10.0.0.3:7400", "key": "e7ce481cc1988294bf4fae9b16deecfc32d88f72ca80f2d3d8c0f5dac3d33372"},
    {"id": 4, "address": "10.0.0.4:7400", "key": "2152f8d19b791d24453242e15f2eab6cb7cffa7b6a5ed30097960e069881db12"}
  ],
  // Who may make calls. An administrator may change the members, which is not written here: the group
  // proves who its later members are. To let somebody in, write the key here everywhere
  // and restart the replicas one by one.
  "clients": [
    {"id": 70000, "key": "8b18a4c0bd0bbb5a7b2e8a4cc8a8a2ed2be46d4d98c1f7ec3ea3b2fdc0a9cfaa", "admin": true}
  ]
}
`
