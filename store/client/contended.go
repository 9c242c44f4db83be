package client

import (
	"sync"
	"time"

	"github.com/foresay/foresay/store"
)

// contended are keys that refusals told to be in dispute, for a short while. Guesses at them are seldom right, so that a predicated transaction which reads one asks a quorum. Its zero value
// is ready.
type contended struct {
	mu    sync.Mutex
	until map[store.Key]time.Time
}

const (
	contendedFor = time.Second
	maxContended = 4096
)

// note tells that a key is in dispute now.
func (c *contended) note(key store.Key) {
	now := time.Now()
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.until == nil || len(c.until) >= maxContended {
		old := c.until
		c.until = map[store.Key]time.Time{}
		for k, t := range old {
			if t.After(now) && len(c.until) < maxContended/2 {
				c.until[k] = t
			}
		}
	}
	c.until[key] = now.Add(contendedFor)
}

// has tells whether a key is in dispute.
func (c *contended) has(key store.Key) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	t, ok := c.until[key]
	if ok && !t.After(time.Now()) {
		delete(c.until, key)
		ok = false
	}
	return ok
}
