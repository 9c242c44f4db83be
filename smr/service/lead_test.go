package service

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/wan"
)

// writing has one client after the other write, as long as it is not stopped, and tells the longest
// time that a put took.
func (w *world) writing(ctx context.Context, c *Client) (stop func() (longest time.Duration)) {
	ctx, cancel := context.WithCancel(ctx)
	longest := make(chan time.Duration)
	go func() {
		most := time.Duration(0)
		for {
			began := time.Now()
			_, err := c.Put(ctx, "w", nil)
			if ctx.Err() != nil {
				longest <- most
				return
			}
			if err != nil {
				w.Errorf("a put while leaders hand over: %v", err)
			}
			most = max(most, time.Since(began))
		}
	}()
	return func() time.Duration {
		cancel()
		return <-longest
	}
}

// TestHandOver has leaders hand over by command, and before they end, while a client writes: no put
// takes much longer than a few round trips, which are 10 ms here.
func TestHandOver(t *testing.T) {
	for _, name := range []string{"raft", "multipaxos"} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, name, func(w *world) {
				replicas := []*ran{w.start(1), w.start(2), w.start(3)}
				w.client(func(ctx context.Context, c *Client) {
					if _, err := c.Put(ctx, "k", nil); err != nil {
						w.Fatal(err)
					}
					leader := w.leads(replicas, w.equal(ctx, c))
					stop := w.writing(ctx, c)
					for _, to := range []protocol.ID{leader, leader%3 + 1, (leader+1)%3 + 1, 0, leader} {
						from, now, err := c.HandOver(ctx, to)
						if err != nil || from != leader || to != 0 && now != to || to == 0 && now == leader {
							w.Fatalf("hand over to %d: replica %d led, %d was told, %d does, %v", to, leader, from, now, err)
						}
						leader = now
					}
					_, _, err := c.HandOver(ctx, 9)
					if refused, ok := errors.AsType[*HandOverError](err); !ok || refused.Reason != "replica 9 is no member" {
						w.Errorf("hand over to a stranger: %v", err)
					}
					if longest := stop(); longest > 100*time.Millisecond {
						w.Errorf("a put took %v while leaders handed over by command", longest)
					}
					w.endsGently(ctx, c, replicas[leader-1])
				})
			})
		})
	}
}

// endsGently ends a leader while a client writes.
func (w *world) endsGently(ctx context.Context, c *Client, leader *ran) {
	stop := w.writing(ctx, c)
	time.Sleep(200 * time.Millisecond)
	if err := leader.end(); err != nil || !strings.Contains(leader.log.String(), "replica: hands over before it ends") {
		w.Errorf("the leader ended with %v\n%s", err, leader.log)
	}
	time.Sleep(200 * time.Millisecond)
	if longest := stop(); longest > 100*time.Millisecond {
		w.Errorf("a put took %v while the leader ended", longest)
	}
}

// TestHandOverBesideASilentMember: a member that says nothing, as one that is stopped, keeps no
// leader from handing over.
func TestHandOverBesideASilentMember(t *testing.T) {
	inWorld(t, "raft", func(w *world) {
		replicas := []*ran{w.start(1), w.start(2), w.start(3)}
		w.client(func(ctx context.Context, c *Client) {
			leader := w.leads(replicas, w.equal(ctx, c))
			silent, to := leader%3+1, (leader+1)%3+1
			w.silence(silent)
			ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
			defer cancel()
			if _, now, err := c.HandOver(ctx, to); err != nil || now != to {
				w.Errorf("hand over to %d while %d is silent: %d leads, %v", to, silent, now, err)
			}
		})
	})
}

// silence has nothing come through from a member.
func (w *world) silence(id protocol.ID) {
	for _, other := range worldSites {
		if other != siteOf(id) {
			w.net.SetDown(siteOf(id), other, true)
		}
	}
}

func siteOf(id protocol.ID) wan.Site { return worldSites[id-1] }

// TestHandOverToOneThatEnds: the leader agrees to hand over to a member that it heard a moment ago,
// and that has just ended. Once that is back, the leader is asked again.
func TestHandOverToOneThatEnds(t *testing.T) {
	for _, p := range []string{"raft", "multipaxos"} {
		inWorld(t, p, func(w *world) {
			replicas := []*ran{w.start(1), w.start(2), w.start(3)}
			w.client(func(ctx context.Context, c *Client) {
				leader := w.leads(replicas, w.equal(ctx, c))
				to := leader%3 + 1
				ctx, cancel := context.WithTimeout(ctx, 15*time.Second)
				defer cancel()
				w.net.Crash(siteOf(to))
				led := make(chan error, 1)
				go func() {
					_, now, err := c.HandOver(ctx, to)
					if err == nil && now != to {
						err = fmt.Errorf("%d leads", now)
					}
					led <- err
				}()
				time.Sleep(2 * time.Second)
				_ = replicas[to-1].end() // that its connections were closed is its error
				w.start(to)
				if err := <-led; err != nil {
					w.Errorf("%s: hand over from %d to %d, which had just ended: %v", p, leader, to, err)
				}
			})
		})
	}
}

// TestHandOverAfterAnEnd: a leader that may choose its successor, and chooses one that has just
// fallen silent, chooses another one.
func TestHandOverAfterAnEnd(t *testing.T) {
	for _, protocol := range []string{"raft", "multipaxos"} {
		inWorld(t, protocol, func(w *world) {
			replicas := []*ran{w.start(1), w.start(2), w.start(3)}
			w.client(func(ctx context.Context, c *Client) {
				leader := w.leads(replicas, w.equal(ctx, c))
				first := min(leader%3+1, (leader+1)%3+1) // it is taken, of two that are as far
				w.silence(first)
				ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
				defer cancel()
				if from, now, err := c.HandOver(ctx, 0); err != nil || from != leader || now != 6-leader-first {
					w.Errorf("%s: hand over from %d while %d is silent: from %d to %d, %v", protocol, leader, first, from, now, err)
				}
			})
		})
	}
}

// TestNoHandOver asks groups without a leader to hand over, and one whose others are gone.
func TestNoHandOver(t *testing.T) {
	inWorld(t, "mencius", func(w *world) {
		w.start(1)
		w.client(func(ctx context.Context, c *Client) {
			if _, _, err := c.HandOver(ctx, 0); !errors.Is(err, ErrNoHandOver) {
				w.Errorf("hand over without a leader: %v", err)
			}
		})
	})
	inWorld(t, "raft", func(w *world) {
		w.start(1)
		w.client(func(ctx context.Context, c *Client) {
			ctx, cancel := context.WithTimeout(ctx, time.Second)
			defer cancel()
			if _, _, err := c.HandOver(ctx, 2); !errors.Is(err, context.DeadlineExceeded) {
				w.Errorf("hand over without a majority: %v", err)
			}
		})
	})
}
