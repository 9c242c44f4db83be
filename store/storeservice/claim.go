package storeservice

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/foresay/foresay/store/storeconfig"
)

// tenant is whose a data directory is, the last epoch in which it was used, and by which protocol
// and mode what is in it is to be read.
type tenant struct {
	Cluster string `json:"cluster"`
	Machine string `json:"machine"`
	Epoch   uint64 `json:"epoch"`
	// Protocol is as store.Protocol's Title. Empty: it was made before that was noted. Whatever
	// is in such a directory, nobody can tell, so it stays empty.
	Protocol string `json:"protocol,omitempty"`
	// ID is the store's, which another one of the same name does not have. Empty: the directory was
	// made before that was noted, or the store has none.
	ID string `json:"id,omitempty"`
}

// claim makes sure that a data directory is the machine's, that it is of the store's protocol, and
// that the machine does not go back to an earlier epoch, in which a fenced site may still count. It
// notes a new epoch durably before it returns.
func claim(cfg *storeconfig.MachineConfig) error {
	name := filepath.Join(cfg.Data, "machine.json")
	now := tenant{cfg.Store.Cluster, cfg.Machine, cfg.Store.Epoch, cfg.Store.StoreProtocol().Title(), cfg.Store.ID}
	b, err := os.ReadFile(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return now.write(name)
	case err != nil:
		return err
	}
	var was tenant
	if err := json.Unmarshal(b, &was); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	switch {
	case was.Cluster != now.Cluster || was.Machine != now.Machine:
		return fmt.Errorf("the directory %s is that of machine %s of %s, not of %s of %s", cfg.Data, was.Machine, was.Cluster,
			now.Machine, now.Cluster)
	case was.ID != "" && now.ID != "" && was.ID != now.ID:
		return fmt.Errorf("the directory %s is that of machine %s of another store that is named %s too: its ID is %s, and "+
			"%s says %s", cfg.Data, was.Machine, was.Cluster, was.ID, cfg.StoreFile, now.ID)
	case was.Protocol != "" && was.Protocol != now.Protocol:
		return fmt.Errorf("the directory %s is of a store that runs %s, and the file %s says %s: protocol and mode cannot "+
			"be changed; 'foresay store export' and 'import' take the keys to another store", cfg.Data, was.Protocol,
			cfg.StoreFile, now.Protocol)
	case was.Epoch > now.Epoch:
		return fmt.Errorf("the file %s is of epoch %d, and the machine has run in epoch %d: take the file of that epoch",
			cfg.StoreFile, now.Epoch, was.Epoch)
	case was.Epoch == now.Epoch:
		return nil
	}
	now.Protocol, now.ID = was.Protocol, was.ID
	return now.write(name)
}

func (t tenant) write(name string) error {
	b, err := json.Marshal(t)
	if err != nil {
		return err
	}
	return writeDurably(name, b)
}

// writeDurably replaces a file with one that is on disk when it returns.
func writeDurably(name string, b []byte) error {
	f, err := os.Create(name + ".new")
	if err != nil {
		return err
	}
	_, err = f.Write(append(b, '\n'))
	if err := errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	if err := os.Rename(name+".new", name); err != nil {
		return err
	}
	dir, err := os.Open(filepath.Dir(name))
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}
