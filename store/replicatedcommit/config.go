package replicatedcommit

import (
	"errors"
	"fmt"

	"github.com/foresay/foresay/store"
)

// message is what nodes send and applications exchange with them: one of the types of this package
// or of package store.
type message = store.Message

// withDefaults returns the configuration with all fields set. Its error names what is wrong, or
// says that there is not enough to copy from for sites that are new.
func withDefaults(c store.Config) (store.Config, error) {
	c, err := c.WithDefaults()
	if err != nil {
		return c, err
	}
	if !c.Layout.Whole() {
		return c, errors.New("replicatedcommit: Config.Layout: a site lacks a shard; here every site has them all")
	}
	old := 0
	for _, i := range c.Layout.Unfenced() {
		if !c.IsNew(i) {
			old++
		}
	}
	if want := neededSources(c.Layout); old < want {
		return c, fmt.Errorf("replicatedcommit: %d of %d sites are neither fenced nor new in epoch %d (want %d at least)",
			old, len(c.Layout.Sites), c.Epoch, want)
	}
	return c, nil
}
