package storeservice

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	pb "github.com/foresay/foresay/api/foresay/store/v1"
	"github.com/foresay/foresay/internal/plainerr"
)

// together returns when no other machine of the same site can be in an earlier epoch any more. A
// site's shards say in an epoch what they know of decisions, and no coordinator of the site may
// make another one in the epoch before: see replicatedcommit/DESIGN.md, "Changes of the epoch while
// the store runs".
func (m *Machine) together(ctx context.Context, say func(what string)) error {
	c := m.changes
	waits := m.siblings()
	if c.together() >= c.own.Epoch || len(waits) == 0 {
		return nil
	}
	conn, err := m.dialOthers()
	if err != nil {
		return err
	}
	defer conn.Close()
	for {
		var why []string
		waits = slices.DeleteFunc(waits, func(other string) bool {
			ask, cancel := context.WithTimeout(ctx, followEvery)
			defer cancel()
			answer, err := conn.Change(ask, other, &pb.ChangeRequest{})
			switch {
			case err != nil:
				why = append(why, fmt.Sprintf("%s (%s)", other, plainerr.Text(err)))
			case answer.GetEpoch() < c.own.Epoch:
				why = append(why, fmt.Sprintf("%s (it is of epoch %d)", other, answer.GetEpoch()))
			default:
				return true
			}
			return false
		})
		if len(waits) == 0 {
			return c.arrived()
		}
		say(fmt.Sprintf("its site goes on in epoch %d when %s, of the same site, is of that epoch too; if that is gone "+
			"for good, the site has to leave: foresay store resolve --dir %s --site %s --lost",
			c.own.Epoch, strings.Join(why, ", "), filepath.Dir(m.cfg.StorePath()), m.cfg.SiteName()))
		select {
		case <-time.After(changePoll):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// siblings returns the other machines of a machine's site that may have been in an earlier epoch.
func (m *Machine) siblings() []string {
	s := m.cfg.Store
	var out []string
	if i, _, ok := s.Topology().Find(m.cfg.Machine); ok && s.Epoch > max(1, s.Sites[i].Since) {
		for _, other := range s.Sites[i].Machines {
			if other.Name != m.cfg.Machine {
				out = append(out, other.Name)
			}
		}
	}
	return out
}

// together returns the latest epoch of which all machines of the site were found to be.
func (c *changes) together() uint64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.disk.Together
}

// arrived notes that all machines of the site are of the machine's epoch, for good: none of them
// waits for another one that is away when it starts again.
func (c *changes) arrived() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	next := c.disk
	next.Together = c.own.Epoch
	return c.save(next)
}
