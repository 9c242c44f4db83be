package service

import (
	"crypto/ed25519"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/foresay/foresay/bft"
)

// nextKey is what is added to the name of a file with a replica's key to get that of its next key.
const nextKey = ".next"

// begunFile is the file that has the keys with which a replica has begun with its disk. It is
// beside the disk, so that it shows that this was lost. One from before keys changed is empty.
func (c *Config) begunFile() string { return c.Data + ".begun" }

// begunWith returns the keys with which the replica has begun, in digits, and whether it has at
// all.
func (c *Config) begunWith() (keys []string, begun bool, err error) {
	b, err := os.ReadFile(c.begunFile())
	if errors.Is(err, fs.ErrNotExist) {
		return nil, false, nil
	}
	return strings.Fields(string(b)), true, err
}

// hasBegun reports whether the replica has begun with its present key: it is a member's then, or
// was, whatever the group's file says.
func (c *Config) hasBegun() (bool, error) {
	if c.Data == "" {
		return false, nil
	}
	keys, _, err := c.begunWith()
	return slices.Contains(keys, publicText(c.key)), err
}

// begin notes on the disk that the replica begins with a key.
func (c *Config) begin(key ed25519.PrivateKey) error {
	keys, _, err := c.begunWith()
	if err != nil {
		return err
	}
	own := publicText(key)
	if slices.Contains(keys, own) {
		return nil
	}
	return writeDurably(c.begunFile(), []byte(strings.Join(append(keys, own), "\n")+"\n"))
}

// writeDurably makes a file that outlives the machine, in the place of another one perhaps.
func writeDurably(name string, content []byte) error {
	f, err := os.Create(name + ".new")
	if err != nil {
		return err
	}
	_, err = f.Write(content)
	if err := errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	return renameDurably(name+".new", name)
}

func renameDurably(from, to string) error {
	if err := os.Rename(from, to); err != nil {
		return err
	}
	dir, err := os.Open(filepath.Dir(to))
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}

// readNextKey returns the replica's next key, nil if there is none.
func (c *Config) readNextKey() (ed25519.PrivateKey, error) {
	key, err := readKey(c.Key + nextKey)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return key, err
}

// turnKeys reads the next key, which may have come since, and has it take the place of the present
// one if it is the member's in an epoch: nobody needs that any more. It returns what is the next
// key then, nil if there is none.
func (c *Config) turnKeys(d *bft.Directory) (next ed25519.PrivateKey, err error) {
	if next, err = c.readNextKey(); err != nil || next == nil {
		return nil, err
	}
	if bft.NewSigner(next).Key() != d.KeyOf(c.ID) {
		return next, nil
	}
	if err := c.begin(next); err != nil {
		return nil, err
	}
	if err := renameDurably(c.Key+nextKey, c.Key); err != nil {
		return nil, err
	}
	c.key = next
	return nil, nil
}

// ParseKey returns the public key that hexadecimal digits are.
func ParseKey(text string) (bft.Key, error) { return parseKey(text) }

// InitNextKey makes the next key of a replica, of which Init or InitJoin has made the files, and
// returns its public key in digits. The replica needs it when the group has ordered the change.
func InitNextKey(c *Config) (string, error) {
	key, err := writeKey(c.Key + nextKey)
	if errors.Is(err, fs.ErrExist) {
		if key, err = readKey(c.Key + nextKey); err == nil {
			return publicText(key), nil // it was made before
		}
	}
	if err != nil {
		return "", fmt.Errorf("replica %d: its next key: %w", c.ID, err)
	}
	return publicText(key), nil
}
