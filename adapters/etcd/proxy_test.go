package etcd

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"regexp"
	"sync"
	"testing"
	"time"
)

// proxy passes TCP connections on to a member, later or not for now.
type proxy struct {
	listener net.Listener
	delay    time.Duration // each way

	mu     sync.Mutex
	target string
	held   map[string]bool // senders whose bytes wait; "*" is all
	free   chan struct{}   // closed when held changes
	wg     sync.WaitGroup
	ctx    context.Context
}

func newProxy(t testing.TB, target string, delay time.Duration) *proxy {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	p := &proxy{listener: l, delay: delay, target: target, held: make(map[string]bool), free: make(chan struct{}),
		ctx: ctx}
	p.wg.Go(p.accept)
	t.Cleanup(func() {
		cancel()
		l.Close()
		p.wg.Wait()
	})
	return p
}

func (p *proxy) addr() string { return p.listener.Addr().String() }

// hold has the bytes to and from a member that connects here wait, or lets them go.
func (p *proxy) hold(sender string, on bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.held[sender] = on
	close(p.free)
	p.free = make(chan struct{})
}

func (p *proxy) aim(target string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.target = target
}

func (p *proxy) accept() {
	for {
		from, err := p.listener.Accept()
		if err != nil {
			return
		}
		p.wg.Go(func() { p.serve(from) })
	}
}

func (p *proxy) serve(from net.Conn) {
	defer from.Close()
	p.mu.Lock()
	target := p.target
	p.mu.Unlock()
	to, err := net.Dial("tcp", target)
	if err != nil {
		return
	}
	defer to.Close()
	ctx, cancel := context.WithCancel(p.ctx)
	defer cancel()
	defer context.AfterFunc(ctx, func() { from.Close(); to.Close() })()
	// A member says in its first request who it is.
	head := make([]byte, 4096)
	n, err := from.Read(head)
	if err != nil {
		return
	}
	sender := ""
	if m := regexp.MustCompile(`(?i)X-Server-From: ([0-9a-f]+)`).FindSubmatch(head[:n]); m != nil {
		sender = string(m[1])
	}
	var wg sync.WaitGroup
	wg.Go(func() { p.copy(ctx, sender, to, io.MultiReader(bytes.NewReader(head[:n]), from)); cancel() })
	wg.Go(func() { p.copy(ctx, sender, from, to); cancel() })
	wg.Wait()
}

// chunk is what was read at once, and when it is due.
type chunk struct {
	bytes []byte
	due   time.Time
}

func (p *proxy) copy(ctx context.Context, sender string, to io.Writer, from io.Reader) {
	chunks := make(chan chunk, 1024)
	var wg sync.WaitGroup
	defer wg.Wait()
	defer close(chunks)
	wg.Go(func() {
		for c := range chunks {
			if p.wait(ctx, sender, c.due) != nil {
				return
			}
			if _, err := to.Write(c.bytes); err != nil {
				return
			}
		}
	})
	for {
		buf := make([]byte, 64<<10)
		n, err := from.Read(buf)
		if n > 0 {
			select {
			case chunks <- chunk{buf[:n], time.Now().Add(p.delay)}:
			case <-ctx.Done():
				return
			}
		}
		if err != nil {
			return
		}
	}
}

// wait waits until bytes are due and nobody holds them.
func (p *proxy) wait(ctx context.Context, sender string, due time.Time) error {
	if d := time.Until(due); d > 0 {
		select {
		case <-time.After(d):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	for {
		p.mu.Lock()
		held, free := p.held[sender] || p.held["*"], p.free
		p.mu.Unlock()
		if !held {
			return nil
		}
		select {
		case <-free:
		case <-ctx.Done():
			return errors.New("the proxy is closed")
		}
	}
}
