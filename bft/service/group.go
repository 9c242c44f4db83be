package service

import (
	"cmp"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"time"

	"github.com/foresay/foresay/bft"
	"github.com/foresay/foresay/internal/catalog"
	"github.com/foresay/foresay/internal/cli/configfile"
	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/transport"
)

// A Group is the file that all replicas and clients of a group have: who belongs to it from the
// beginning, and the key of each. Later members are in the replicated state, and proven by the keys
// of those before them. Whoever can change the file decides whom its reader believes.
type Group struct {
	Cluster  string `json:"cluster"`
	Protocol string `json:"protocol"`
	Service  string `json:"service"`
	// RoundTrip is about the longest round-trip time between two replicas.
	RoundTrip string   `json:"round_trip,omitempty"`
	Members   []Member `json:"members"` // in the order in which they are primaries
	Clients   []Party  `json:"clients"`

	file      string // that it was read from
	proto     bft.Protocol
	roundTrip time.Duration
	directory *bft.Directory // of epoch 0
}

// A Party is a client with its public key, in hexadecimal digits.
type Party struct {
	ID    protocol.ID `json:"id"`
	Key   string      `json:"key"`
	Admin bool        `json:"admin,omitempty"` // it may change the members
}

// A Member is a replica with its public key, and where others reach it.
type Member struct {
	ID      protocol.ID `json:"id"`
	Address string      `json:"address"`
	Key     string      `json:"key"`
}

// Bounds of groups. One of fewer members survives no faulty one.
const (
	MinMembers = 4
	MaxMembers = 64
)

// firstClient is the lowest ID of a client, as package transport has it.
const firstClient = protocol.ID(1 << 16)

// ReadGroup reads a group's file. Its errors name the file, the line and the field.
func ReadGroup(name string) (*Group, error) {
	g := &Group{file: name}
	if err := configfile.Read(name, g, g.check); err != nil {
		return nil, err
	}
	return g, nil
}

// check validates the file and fills in what follows from it.
func (g *Group) check() (err error) {
	if g.Cluster == "" {
		return configfile.Fieldf("cluster", "it is missing")
	}
	if len(g.Cluster) > 100 {
		return configfile.Fieldf("cluster", "it has %d bytes, more than 100", len(g.Cluster))
	}
	if g.proto, err = catalog.Byzantine(g.Protocol); err != nil {
		return configfile.Field("protocol", err)
	}
	if _, err := catalog.Service(g.Service); err != nil {
		return configfile.Field("service", err)
	}
	if g.RoundTrip != "" {
		if g.roundTrip, err = time.ParseDuration(g.RoundTrip); err != nil || g.roundTrip <= 0 {
			return configfile.Fieldf("round_trip", "%q is no duration such as 100ms", g.RoundTrip)
		}
	}
	return g.checkParties()
}

func (g *Group) checkParties() error {
	if n := len(g.Members); n < MinMembers || n > MaxMembers {
		return configfile.Fieldf("members", "there are %d; want %d, which survive one that is faulty, to %d", n, MinMembers,
			MaxMembers)
	}
	g.directory = &bft.Directory{Clients: map[protocol.ID]bft.Key{}}
	where := map[protocol.ID]string{}
	keys, addresses := map[bft.Key]string{}, map[string]string{}
	party := func(at string, id protocol.ID, key string) (bft.Key, error) {
		k, err := parseKey(key)
		switch {
		case err != nil:
			return k, configfile.Field(at+".key", err)
		case where[id] != "":
			return k, configfile.Fieldf(at+".id", "%d is that of %s", id, where[id])
		case keys[k] != "":
			return k, configfile.Fieldf(at+".key", "it is that of %s", keys[k])
		}
		where[id], keys[k] = at, at
		return k, nil
	}
	for i, m := range g.Members {
		at := fmt.Sprintf("members[%d]", i)
		if m.ID == 0 || m.ID >= firstClient {
			return configfile.Fieldf(at+".id", "%d is no replica's; want 1 to %d", m.ID, firstClient-1)
		}
		if err := configfile.CheckAddress(at+".address", m.Address, false); err != nil {
			return err
		}
		if other := addresses[m.Address]; other != "" {
			return configfile.Fieldf(at+".address", "%q is that of %s", m.Address, other)
		}
		addresses[m.Address] = at
		key, err := party(at, m.ID, m.Key)
		if err != nil {
			return err
		}
		g.directory.Members = append(g.directory.Members, bft.Party{ID: m.ID, Key: key, Address: m.Address})
	}
	for i, c := range g.Clients {
		at := fmt.Sprintf("clients[%d]", i)
		if c.ID < firstClient || c.ID >= transport.FirstMemberClient {
			return configfile.Fieldf(at+".id", "%d is no client's; want %d to %d", c.ID, firstClient,
				transport.FirstMemberClient-1)
		}
		key, err := party(at, c.ID, c.Key)
		if err != nil {
			return err
		}
		g.directory.Clients[c.ID] = key
		if c.Admin {
			g.directory.Administrators = append(g.directory.Administrators, c.ID)
		}
	}
	return g.directory.Validate()
}

func parseKey(text string) (key bft.Key, err error) {
	b, err := hex.DecodeString(text)
	if err != nil || len(b) != len(key) {
		return key, fmt.Errorf("%.80q is no public key: want %d hexadecimal digits", text, 2*len(key))
	}
	return bft.Key(b), nil
}

// fingerprint tells apart groups with other members, keys, protocols or services.
func (g *Group) fingerprint() string {
	h := sha256.New()
	fmt.Fprintf(h, "%q %q %q", g.Cluster, cmp.Or(g.Protocol, g.proto.Name), g.Service)
	for _, m := range g.directory.Members {
		fmt.Fprintf(h, " %d %x", m.ID, m.Key)
	}
	for _, id := range g.directory.Administrators {
		fmt.Fprintf(h, " administrator %d %x", id, g.directory.Clients[id])
	}
	return hex.EncodeToString(h.Sum(nil)[:6])
}

// name is a part of all that is signed, and what hosts compare when they connect.
func (g *Group) name() string {
	return fmt.Sprintf("%s (%s, %s, members %s)", g.Cluster, g.proto.Name, g.Service, g.fingerprint())
}

func (g *Group) scheme() *bft.Scheme { return bft.NewScheme(g.name(), bft.Ed25519{}) }

// sendQueueBytes bounds what waits at a host to leave for another one.
const sendQueueBytes = 8 * bft.MaxMessageBytes

// pins are the keys of an epoch, by which hosts go.
func pins(d *bft.Directory) map[protocol.ID]ed25519.PublicKey {
	keys := map[protocol.ID]ed25519.PublicKey{}
	for _, m := range d.Members {
		keys[m.ID] = ed25519.PublicKey(m.Key[:])
	}
	for id, k := range d.Clients {
		keys[id] = ed25519.PublicKey(k[:])
	}
	return keys
}

// network returns the network of a host with a key, in an epoch.
func (g *Group) network(d *bft.Directory, key ed25519.PrivateKey) (transport.Config, error) {
	c := transport.Config{Cluster: g.name(), FirstClient: firstClient, Keys: pins(d),
		MaxMessageBytes: bft.MaxMessageBytes, QueueBytes: sendQueueBytes}
	var err error
	c.TLS, err = transport.Pinned(key)
	return c, err
}

// owner names whose key it is, for people.
func (g *Group) owner(key bft.Key) string {
	for _, m := range g.directory.Members {
		if m.Key == key {
			return fmt.Sprintf("replica %d's", m.ID)
		}
	}
	for id, k := range g.directory.Clients {
		if k == key {
			return fmt.Sprintf("client %d's", id)
		}
	}
	return "nobody's"
}

// hasKey says with an error that a private key is not the one of a party.
func (g *Group) hasKey(file string, key ed25519.PrivateKey, of string, want bft.Key) error {
	got := bft.NewSigner(key).Key()
	if got == want {
		return nil
	}
	return configfile.Fieldf("key", "%s has the key %v, but %s's in the group's file %s is %v; that one is %s there",
		file, got, of, g.file, want, g.owner(got))
}
