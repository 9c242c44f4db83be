package storeconfig

import (
	"fmt"
	"path/filepath"

	"github.com/foresay/foresay/internal/cli/configfile"
)

// A MachineConfig is the file of one machine. Names of files in it are relative to its own
// directory.
type MachineConfig struct {
	StoreFile string    `json:"store"`
	Machine   string    `json:"machine"`
	Listen    Listen    `json:"listen,omitzero"`
	Data      string    `json:"data"`
	TLS       *TLSFiles `json:"tls,omitempty"`
	Insecure  bool      `json:"insecure,omitempty"`
	Metrics   string    `json:"metrics,omitempty"`
	// CacheBytes is how much of what is on the disk is also kept in memory.
	CacheBytes int `json:"cache_bytes,omitempty"`
	Log        Log `json:"log,omitzero"`

	File  string `json:"-"` // where it was read
	Store *Store `json:"-"` // what StoreFile holds
}

const defaultCacheBytes = 64 << 20

// Listen says where a machine listens, if that is not where others find it.
type Listen struct {
	Peers  string `json:"peers,omitempty"`
	Client string `json:"client,omitempty"`
}

// ReadMachine reads a machine's file, and the store's that it names. Its errors name the file, the
// line and the field.
func ReadMachine(name string) (*MachineConfig, error) {
	c := &MachineConfig{File: name}
	err := configfile.Read(name, c, func() error { return c.check(name) })
	if err != nil {
		return nil, fmt.Errorf("config: %w", err)
	}
	c.Data, c.TLS = configfile.Beside(name, c.Data), c.TLS.Beside(name)
	return c, nil
}

func (c *MachineConfig) check(file string) (err error) {
	if c.StoreFile == "" {
		return configfile.Fieldf("store", "it is missing: the file that says what the store consists of")
	}
	if c.Store, err = ReadStore(configfile.Beside(file, c.StoreFile)); err != nil {
		return fmt.Errorf("store: %w", err)
	}
	i, j, ok := c.Store.Topology().Find(c.Machine)
	switch {
	case c.Machine == "":
		return configfile.Fieldf("machine", "it is missing: this machine's name in the store's file")
	case !ok:
		return configfile.Fieldf("machine", "%s has no machine %q", c.StoreFile, c.Machine)
	case c.Data == "":
		return configfile.Fieldf("data", "it is missing: the directory that keeps the machine's shards")
	}
	own := c.Store.Sites[i].Machines[j]
	for _, a := range [...]struct {
		field, known string
		address      *string
	}{{"listen.peers", own.Peers, &c.Listen.Peers}, {"listen.client", own.Client, &c.Listen.Client}} {
		if *a.address == "" {
			*a.address = a.known
		}
		if err := configfile.CheckAddress(a.field, *a.address, true); err != nil {
			return err
		}
	}
	if c.Metrics != "" {
		if err := configfile.CheckAddress("metrics", c.Metrics, true); err != nil {
			return err
		}
	}
	switch {
	case c.CacheBytes < 0:
		return configfile.Fieldf("cache_bytes", "%d is less than 0", c.CacheBytes)
	case c.CacheBytes == 0:
		c.CacheBytes = defaultCacheBytes
	}
	if err := c.Log.Check(); err != nil {
		return err
	}
	return configfile.CheckTLS(c.TLS, c.Insecure)
}

// StorePath returns where the store's file is.
func (c *MachineConfig) StorePath() string {
	return filepath.Clean(configfile.Beside(c.File, c.StoreFile))
}

// SiteName returns the site that the machine is at.
func (c *MachineConfig) SiteName() string {
	i, _, _ := c.Store.Topology().Find(c.Machine) // check has found it
	return c.Store.Sites[i].Name
}
