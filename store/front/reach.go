package front

import (
	"context"
	"slices"
	"time"

	"google.golang.org/grpc/connectivity"
)

// leastLook is for how long at least a machine that is being connected to is waited for, once a
// majority of the sites is connected.
const leastLook = 10 * time.Millisecond

// absent returns the places of the sites that have a machine without a connection. A client that
// runs on finds out which sites are away by their silence; one that has just started, or was idle,
// looks before it writes. It waits until each machine is connected or has failed to be, but once a
// majority of the sites is connected no longer than that took again, so that a site which is cut
// off and refuses nothing does not hold it up; and not a second time for a machine that it has
// waited for.
func (c *Conn) absent(ctx context.Context) (out []int) {
	if c.connected() {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, 4*c.cfg.RoundTrip)
	defer cancel()
	begun, limit := time.Now(), (*time.Timer)(nil)
	for {
		open := c.look()
		if len(open) == 0 || ctx.Err() != nil || c.closing.Err() != nil {
			break
		}
		if limit == nil && c.majorityConnected() {
			limit = time.AfterFunc(max(time.Since(begun), leastLook), cancel)
			defer limit.Stop()
		}
		changed(ctx, c.closing, open)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for i, site := range c.sites {
		if slices.ContainsFunc(c.of(site), func(m *machine) bool { return !m.connected() }) {
			out = append(out, i)
		}
	}
	for _, m := range c.machines {
		m.waited = !m.connected()
	}
	if len(out) > (len(c.sites)-1)/2 { // nothing goes on without some of them
		return nil
	}
	return out
}

// of returns a site's machines; some may be there several times.
func (c *Conn) of(site string) (out []*machine) {
	for _, m := range c.machines {
		if m.site == site {
			out = append(out, m)
		}
	}
	return out
}

func (c *Conn) connected() bool {
	for _, m := range c.machines {
		if !m.connected() {
			return false
		}
	}
	return true
}

func (c *Conn) majorityConnected() bool {
	n := 0
	for _, site := range c.sites {
		if all := c.of(site); len(all) > 0 && !slices.ContainsFunc(all, func(m *machine) bool { return !m.connected() }) {
			n++
		}
	}
	return n > len(c.sites)/2
}

// A contact is a machine that is being connected to.
type contact struct {
	m  *machine
	in connectivity.State
}

// look has machines connected to that are not, and returns those that may still be.
func (c *Conn) look() (open []contact) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, m := range c.machines {
		switch s := m.conn.GetState(); s {
		case connectivity.Ready, connectivity.TransientFailure, connectivity.Shutdown:
		default:
			m.conn.Connect()
			if !m.waited && !slices.ContainsFunc(open, func(x contact) bool { return x.m == m }) {
				open = append(open, contact{m, s})
			}
		}
	}
	return open
}

// changed waits until one of the contacts has come further, or nobody waits for it any more.
func changed(ctx, closing context.Context, open []contact) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(closing, cancel)()
	done := make(chan struct{}, len(open))
	for _, a := range open {
		go func() {
			a.m.conn.WaitForStateChange(ctx, a.in)
			done <- struct{}{}
		}()
	}
	<-done
	cancel()
	for range len(open) - 1 {
		<-done
	}
}
