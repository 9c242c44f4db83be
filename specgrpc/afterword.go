package specgrpc

import "context"

type serverCallKey struct{}

// AfterWord is for interceptors that account for what a server does. It has f
// called when the word of the caller on the call that ctx belongs to has come
// true: with true when the call is confirmed and its hooks ran, with false when it
// is undone. f is called once, at once if that has happened already, and must be
// quick. AfterWord returns false, and never calls f, if the call's caller is not
// speculative: then the handler's return is the end of it.
func AfterWord(ctx context.Context, f func(confirmed bool)) bool {
	c, _ := ctx.Value(serverCallKey{}).(*serverCall)
	if c == nil {
		return false
	}
	c.mu.Lock()
	told, stands := c.told, c.stands()
	if !told {
		c.after = append(c.after, f)
	}
	c.mu.Unlock()
	if told {
		f(stands)
	}
	return true
}

// stands reports whether the call was confirmed and not refused after that. Under mu.
func (c *serverCall) stands() bool { return c.word == confirmed && c.why == nil }

// tellAfter tells what became of a call that is over.
func (c *serverCall) tellAfter() {
	c.mu.Lock()
	after, stands := c.after, c.stands()
	c.after, c.told = nil, true
	c.mu.Unlock()
	for _, f := range after {
		f(stands)
	}
}
