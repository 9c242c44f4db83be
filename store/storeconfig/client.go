package storeconfig

import (
	"fmt"
	"path/filepath"

	"github.com/foresay/foresay/internal/cli/configfile"
)

// TLSFiles are the files of certificates that a MachineConfig or ClientConfig names.
type TLSFiles = configfile.TLSFiles

// Log is what a MachineConfig says about the log.
type Log = configfile.Log

// A ClientConfig is the file of clients. Names of files in it are relative to its own directory.
type ClientConfig struct {
	StoreFile string `json:"store"`
	// Views are files of the store by names of sites, with the addresses that clients there use.
	Views    map[string]string `json:"views,omitempty"`
	TLS      *TLSFiles         `json:"tls,omitempty"`
	Insecure bool              `json:"insecure,omitempty"`

	File  string `json:"-"` // where this was read
	Store *Store `json:"-"` // what StoreFile holds, or the view that was asked for
}

// ReadClient reads the file of clients, and the store's that it names: at a site the one for
// clients there, if the name is not empty. Its errors name the file, the line and the field.
func ReadClient(name, site string) (*ClientConfig, error) {
	c := &ClientConfig{File: name}
	err := configfile.Read(name, c, func() error { return c.check(name, site) })
	if err != nil {
		return nil, fmt.Errorf("config: %w", err)
	}
	c.TLS = c.TLS.Beside(name)
	return c, nil
}

func (c *ClientConfig) check(file, site string) (err error) {
	if c.StoreFile == "" {
		return configfile.Fieldf("store", "it is missing: the file that says what the store consists of")
	}
	view := c.StoreFile
	if site != "" {
		var ok bool
		if view, ok = c.Views[site]; !ok {
			return configfile.Fieldf("views", "there is none for the site %q", site)
		}
	}
	if c.Store, err = ReadStore(configfile.Beside(file, view)); err != nil {
		return fmt.Errorf("store: %w", err)
	}
	return configfile.CheckTLS(c.TLS, c.Insecure)
}

// StorePath returns where the store's file is.
func (c *ClientConfig) StorePath() string {
	return filepath.Clean(configfile.Beside(c.File, c.StoreFile))
}

// SetViews has a clients' file name files of the store for clients at sites, of which one is for
// all who do not say where they are.
func SetViews(name string, views map[string]string, usual string) error {
	c := &ClientConfig{} // as it is: names of files stay relative
	if err := configfile.Read(name, c, func() error { return nil }); err != nil {
		return err
	}
	c.StoreFile, c.Views = usual, views
	return configfile.Write(name, c)
}
