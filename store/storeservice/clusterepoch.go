package storeservice

import (
	"fmt"
	"path/filepath"
	"slices"

	"github.com/foresay/foresay/store/storeconfig"
	"github.com/foresay/foresay/wan"
)

// Fence goes on without a site, whose machine must have been stopped or is: all machines are stopped, and those of the other sites start in the next epoch.
func (c *Cluster) Fence(site string) error {
	return c.advance(func(s *storeconfig.Store) (*storeconfig.Store, error) { return s.Fenced(site) })
}

// Replace is Fence with a new site in the place of the lost one: at a site of the network where there is none, or else at that of the lost one.
func (c *Cluster) Replace(site, by string) error {
	at, err := c.vacancy(site)
	if err != nil {
		return err
	}
	if err := c.stopAt(at); err != nil {
		return err
	}
	l, err := c.listen(at)
	if err != nil {
		return err
	}
	p := &placed{name: by, site: by, at: at, peers: l.peers.Addr().String(), client: l.client.Addr().String()}
	l.close() // it will get the same ones
	return c.advance(func(s *storeconfig.Store) (*storeconfig.Store, error) {
		next, err := s.Replaced(site, storeconfig.Site{Name: by, Machines: []storeconfig.Machine{{Name: by, Peers: p.peers, Client: p.client}}})
		if err == nil {
			c.mu.Lock()
			c.machines[by] = p
			c.mu.Unlock()
		}
		return next, err
	})
}

// stopAt stops the machines at a site of the network.
func (c *Cluster) stopAt(at wan.Site) error {
	c.mu.Lock()
	var names []string
	for name, p := range c.machines {
		if p.at == at {
			names = append(names, name)
		}
	}
	c.mu.Unlock()
	for _, name := range names {
		if err := c.Stop(name); err != nil {
			return err
		}
	}
	return nil
}

// vacancy returns where a new site goes.
func (c *Cluster) vacancy(lost string) (wan.Site, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	taken := map[wan.Site]bool{}
	var at wan.Site
	for _, p := range c.machines {
		taken[p.at] = true
		if p.site == lost {
			at = p.at
		}
	}
	for _, s := range c.o.WAN.Sites() {
		if !taken[s] {
			return s, nil
		}
	}
	if at == "" {
		return "", fmt.Errorf("there is no site %q", lost)
	}
	return at, nil
}

// advance stops all machines, and starts those of the next epoch.
func (c *Cluster) advance(change func(*storeconfig.Store) (*storeconfig.Store, error)) error {
	s, err := storeconfig.ReadStore(filepath.Join(c.o.Dir, storeconfig.StoreFile))
	if err != nil {
		return err
	}
	next, err := change(s)
	if err != nil {
		return err
	}
	if err := storeconfig.CheckAdvance(c.o.Dir, next); err != nil {
		return err
	}
	for _, p := range c.Places() {
		if err := c.Stop(p.Machine); err != nil {
			return err
		}
	}
	if _, err := storeconfig.Advance(c.o.Dir, next); err != nil {
		return err
	}
	if err := c.writeViews(); err != nil {
		return err
	}
	for _, p := range c.Places() {
		i := slices.IndexFunc(next.Sites, func(site storeconfig.Site) bool { return site.Name == p.Site })
		if i < 0 || next.Sites[i].Fenced {
			continue
		}
		if err := c.Start(p.Machine); err != nil {
			return fmt.Errorf("machine %s: %w", p.Machine, err)
		}
	}
	return nil
}
