package storeservice

import (
	"context"
	"fmt"
	"path/filepath"

	"github.com/foresay/foresay/store/storeconfig"
	"github.com/foresay/foresay/wan"
)

// Fence has a site leave the store while the others go on. If its machine runs, it leaves when all
// that it voted for is carried out; if it does not, or is cut off, it is lost, and is stopped. An
// error that is due to other machines that are away may be tried again.
func (c *Cluster) Fence(ctx context.Context, site string) error {
	return c.advance(ctx, site, nil, func(s *storeconfig.Store) (*storeconfig.Store, error) { return s.Fenced(site) })
}

// Replace is Fence with a new site in the place of that which leaves: at a site of the network
// where there is none, or else at its own. The new machine starts, and copies what the others have.
func (c *Cluster) Replace(ctx context.Context, site, by string) error {
	c.mu.Lock()
	p := c.machines[by] // of a change that was not completed
	c.mu.Unlock()
	if p == nil {
		at, err := c.vacancy(site)
		if err != nil {
			return err
		}
		l, err := c.listen(at)
		if err != nil {
			return err
		}
		p = &devMachine{name: by, site: by, at: at, peers: l.peers.Addr().String(), client: l.client.Addr().String()}
		l.close() // it will get the same ones
	}
	return c.advance(ctx, site, p, func(s *storeconfig.Store) (*storeconfig.Store, error) {
		return s.Replaced(site, storeconfig.Site{Name: by,
			Machines: []storeconfig.Machine{{Name: by, Peers: p.peers, Client: p.client}}})
	})
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

// advance has the store go on in its next epoch, in which there is a newcomer; nil: there is none.
func (c *Cluster) advance(
	ctx context.Context, leaver string, newcomer *devMachine, change func(*storeconfig.Store) (*storeconfig.Store, error),
) error {
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
	if newcomer != nil {
		c.mu.Lock()
		c.machines[newcomer.name] = newcomer
		c.mu.Unlock()
	}
	if next, err = c.agree(ctx, leaver, next); err != nil {
		return err
	}
	if _, err := storeconfig.Advance(c.o.Dir, next); err != nil {
		return err
	}
	if err := c.writeViews(); err != nil {
		return err
	}
	for _, site := range next.Sites {
		for _, m := range site.Machines {
			if site.Since == next.Epoch {
				if err := c.Start(m.Name); err != nil {
					return fmt.Errorf("machine %s: %w", m.Name, err)
				}
			}
		}
	}
	return nil
}

// agree has the machines that run agree on the next epoch. If none does, there is nobody to ask.
func (c *Cluster) agree(ctx context.Context, leaver string, next *storeconfig.Store) (*storeconfig.Store, error) {
	lost := ""
	var from wan.Site
	for _, p := range c.Places() {
		switch {
		case p.Site == leaver && p.Running && !p.Cut:
		case p.Site == leaver && lost == "":
			if err := c.Stop(p.Machine); err != nil {
				return nil, err
			}
			lost = leaver
		case p.Running && (from == "" || !p.Cut):
			from = p.At
		}
	}
	if from == "" {
		return next, nil
	}
	operator, err := c.Dial(from)
	if err != nil {
		return nil, err
	}
	defer operator.Close()
	chosen, err := operator.Change(ctx, next, lost, func(format string, a ...any) {
		c.o.Logger.Info("store: change of the sites: " + fmt.Sprintf(format, a...))
	})
	if err != nil {
		return nil, err
	}
	return chosen, nil
}
