package service

import (
	"crypto/ed25519"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"os"
	"slices"

	"github.com/foresay/foresay/internal/cli/configfile"
	"github.com/foresay/foresay/protocol"
)

// A Config is the file of one replica. Names of files in it are relative to its own directory.
type Config struct {
	Group string      `json:"group"` // the group's file
	ID    protocol.ID `json:"id"`
	// Join says that the replica has a key that is not in the group's file: a change of the members
	// makes it one.
	Join    bool           `json:"join,omitempty"`
	Key     string         `json:"key"` // the file of the private key
	Data    string         `json:"data"`
	Listen  string         `json:"listen,omitempty"`
	Metrics string         `json:"metrics,omitempty"`
	Log     configfile.Log `json:"log,omitzero"`

	group *Group
	key   ed25519.PrivateKey
}

// ReadConfig reads a replica's file, and those that it names. Its errors name the file, the line
// and the field.
func ReadConfig(name string) (*Config, error) {
	c := &Config{}
	if err := configfile.Read(name, c, func() error { return c.check(name) }); err != nil {
		return nil, fmt.Errorf("config: %w", err)
	}
	return c, nil
}

func (c *Config) check(file string) (err error) {
	c.Group, c.Key, c.Data = configfile.Beside(file, c.Group), configfile.Beside(file, c.Key),
		configfile.Beside(file, c.Data)
	if c.group, c.key, err = readIdentity(c.Group, c.Key); err != nil {
		return err
	}
	i := slices.IndexFunc(c.group.Members, func(m Member) bool { return m.ID == c.ID })
	switch known, err := c.hasBegun(); {
	case err != nil:
		return err
	case c.Join && !IsReplica(c.ID):
		return configfile.Fieldf("id", "%d is no replica's; want 1 to %d", c.ID, firstClient-1)
	case c.Join || known:
	case i < 0:
		return configfile.Fieldf("id", "replica %d, which this file is for, is not among the members in %s, and \"join\" is "+
			"not true", c.ID, c.Group)
	default:
		want := c.group.directory.Members[i].Key
		if err := c.group.hasKey(c.Key, c.key, fmt.Sprintf("replica %d", c.ID), want); err != nil {
			return err
		}
	}
	if c.Data == "" {
		return configfile.Fieldf("data", "it is missing: the directory that keeps the replica's log")
	}
	if c.Listen == "" && i >= 0 {
		c.Listen = c.group.Members[i].Address
	}
	if err := configfile.CheckAddress("listen", c.Listen, true); err != nil {
		return err
	}
	if c.Metrics != "" {
		if err := configfile.CheckAddress("metrics", c.Metrics, true); err != nil {
			return err
		}
	}
	return c.Log.Check()
}

// A ClientConfig is the file of one client. Names of files in it are relative to its own directory.
// One process at a time uses it: replies go to the one that was heard last.
type ClientConfig struct {
	Group string      `json:"group"`
	ID    protocol.ID `json:"id"`
	Key   string      `json:"key"`

	group *Group
	key   ed25519.PrivateKey
}

// ReadClientConfig reads a client's file, and those that it names. Its errors name the file, the
// line and the field.
func ReadClientConfig(name string) (*ClientConfig, error) {
	c := &ClientConfig{}
	if err := configfile.Read(name, c, func() error { return c.check(name) }); err != nil {
		return nil, fmt.Errorf("config: %w", err)
	}
	return c, nil
}

func (c *ClientConfig) check(file string) (err error) {
	c.Group, c.Key = configfile.Beside(file, c.Group), configfile.Beside(file, c.Key)
	if c.group, c.key, err = readIdentity(c.Group, c.Key); err != nil {
		return err
	}
	want, ok := c.group.directory.Clients[c.ID]
	if !ok {
		return configfile.Fieldf("id", "client %d, which this file is for, is not among the clients in %s", c.ID, c.Group)
	}
	return c.group.hasKey(c.Key, c.key, fmt.Sprintf("client %d", c.ID), want)
}

// readIdentity reads a group's file and the private key of one of it.
func readIdentity(groupFile, keyFile string) (*Group, ed25519.PrivateKey, error) {
	switch {
	case groupFile == "":
		return nil, nil, configfile.Fieldf("group", "it is missing: the group's file")
	case keyFile == "":
		return nil, nil, configfile.Fieldf("key", "it is missing: the file of the private key")
	}
	group, err := ReadGroup(groupFile)
	if err != nil {
		return nil, nil, configfile.Field("group", err)
	}
	key, err := readKey(keyFile)
	if err != nil {
		return nil, nil, configfile.Field("key", err)
	}
	return group, key, nil
}

const keyBlock = "PRIVATE KEY"

// readKey reads a private key.
func readKey(file string) (ed25519.PrivateKey, error) {
	b, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	block, _ := pem.Decode(b)
	if block == nil || block.Type != keyBlock {
		return nil, fmt.Errorf("%s has no private key in PEM form", file)
	}
	key, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	own, ok := key.(ed25519.PrivateKey)
	if !ok {
		return nil, fmt.Errorf("%s has a key that is not for Ed25519", file)
	}
	return own, nil
}

// writeKey makes a private key, writes it to a file that is not there yet, and returns it.
func writeKey(file string) (ed25519.PrivateKey, error) {
	_, key, err := ed25519.GenerateKey(nil)
	if err != nil {
		return nil, err
	}
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, err
	}
	f, err := os.OpenFile(file, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	err = pem.Encode(f, &pem.Block{Type: keyBlock, Bytes: der})
	if e := f.Close(); err == nil {
		err = e
	}
	return key, err
}
