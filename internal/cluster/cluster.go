// Package cluster runs the nodes of a cluster in one process, for development: each is at a site of
// a network that has the delays of another one, where it can be stopped, started again with its
// disk or without, and cut off.
package cluster

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/foresay/foresay/wan"
	"github.com/foresay/foresay/wan/shape"
)

// leastRoundTrip is enough for the nodes of a computer that does other things too.
const leastRoundTrip = 50 * time.Millisecond

// RoundTrip returns what the timeouts of nodes at these sites follow from.
func RoundTrip(m wan.Matrix, sites []wan.Site) time.Duration {
	return max(m.MaxRTT(sites), leastRoundTrip)
}

// A Cluster is nodes, by their names. Its methods may be called concurrently.
type Cluster struct {
	noun  string
	sites []wan.Site
	net   *shape.Network

	starting sync.Mutex // one node at a time
	mu       sync.Mutex
	nodes    map[string]*node
	cut      map[wan.Site]bool
}

// node is one that was started, whether it runs or not.
type node struct {
	running bool
	stop    context.CancelFunc
	ended   chan struct{} // closed when it has stopped
	err     error         // why it did; after ended
}

// New returns a cluster without nodes, on a network of these sites. The noun is what errors call a
// node.
func New(noun string, net *shape.Network, sites []wan.Site) *Cluster {
	return &Cluster{noun: noun, sites: sites, net: net, nodes: map[string]*node{}, cut: map[wan.Site]bool{}}
}

// Start runs a node that does not run: open returns what it does until its context ends.
func (c *Cluster) Start(name string, open func() (run func(context.Context) error, err error)) error {
	c.starting.Lock()
	defer c.starting.Unlock()
	if running, _ := c.State(name); running {
		return fmt.Errorf("%s %s runs", c.noun, name)
	}
	run, err := open()
	if err != nil {
		return err
	}
	ctx, stop := context.WithCancel(context.Background())
	n := &node{running: true, stop: stop, ended: make(chan struct{})}
	c.mu.Lock()
	c.nodes[name] = n
	c.mu.Unlock()
	go func() {
		err := run(ctx)
		c.mu.Lock()
		n.running, n.err = false, err
		c.mu.Unlock()
		close(n.ended)
	}()
	return nil
}

// State reports whether a node runs, and why it stopped, if it did not because it was asked to.
func (c *Cluster) State(name string) (running bool, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := c.nodes[name]
	if n == nil {
		return false, nil
	}
	return n.running, n.err
}

// Stop stops a node, and reports whether it ran: its connections end, its disk stays.
func (c *Cluster) Stop(name string) (ran bool) {
	c.mu.Lock()
	n := c.nodes[name]
	ran = n != nil && n.running
	c.mu.Unlock()
	if ran {
		n.stop()
		<-n.ended
	}
	return ran
}

// Lose takes away the disk of a node that was stopped: a directory.
func (c *Cluster) Lose(name, disk string) error {
	c.starting.Lock()
	defer c.starting.Unlock()
	if running, _ := c.State(name); running {
		return fmt.Errorf("%s %s runs: stop it first", c.noun, name)
	}
	return os.RemoveAll(disk)
}

// Cut cuts a site off from all others, or ends that.
func (c *Cluster) Cut(at wan.Site, cut bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, s := range c.sites {
		if s != at {
			c.net.SetDown(at, s, cut)
			c.net.SetDown(s, at, cut)
		}
	}
	c.cut[at] = cut
}

// IsCut reports whether a site is cut off.
func (c *Cluster) IsCut(at wan.Site) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.cut[at]
}

// StopAll stops all nodes. It returns why those ended that failed before, but for expected reasons.
func (c *Cluster) StopAll(expected func(error) bool) error {
	c.mu.Lock()
	var all []*node
	for _, n := range c.nodes {
		all = append(all, n)
		n.stop()
	}
	c.mu.Unlock()
	var errs []error
	for _, n := range all {
		if <-n.ended; n.err != nil && !expected(n.err) {
			errs = append(errs, n.err)
		}
	}
	return errors.Join(errs...)
}
