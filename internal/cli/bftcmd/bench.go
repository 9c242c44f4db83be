package bftcmd

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/spf13/cobra"

	"github.com/foresay/foresay/bft/service"
	"github.com/foresay/foresay/internal/cli/command"
)

// The kinds of what a measurement shows.
const (
	firstReply = iota
	confirmedWrite
	confirmedRead
)

var errWrong = errors.New("a first reply was wrong")

func (p *program) benchCommand() *cobra.Command {
	var f clientFlags
	l := command.ClosedLoop{Name: "bft bench", ValueBytes: 16, Keys: 1000,
		Kinds: []string{"write, first reply", "write, confirmed", "read, confirmed"}}
	c := &cobra.Command{
		Use:   "bench",
		Short: "Measure a group: throughput and latency of a closed loop",
		Long: `Measure a group: each client makes one call after the other, writes and, with --reads, reads. They
share one client of the group, with its key and its session, so that its requests carry many calls.
A write is counted twice: when its first reply came, which is a failure if the result was another
one, and when the group had confirmed it.`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if err := l.ValidateValues(maxValueBytes()); err != nil {
				return err
			}
			if err := l.Validate(); err != nil {
				return err
			}
			return p.withLastingClient(c.Context(), &f, func(ctx context.Context, client *service.Client) error {
				return p.bench(ctx, client, &l, &f)
			})
		},
	}
	f.add(c.Flags())
	l.Add(c.Flags(), "how many percent of the calls are reads")
	return c
}

func (p *program) bench(ctx context.Context, c *service.Client, l *command.ClosedLoop, f *clientFlags) error {
	served := services()[c.Service()]
	// The first call tells early if nobody answers.
	first, cancel := context.WithTimeout(ctx, f.timeout)
	_, err := c.Do(first, served.write(l, rand.New(rand.NewPCG(1, 1))), nil)
	cancel()
	if err != nil {
		return fmt.Errorf("bft bench: %w", err)
	}
	l.Timeout = f.timeout
	l.Call = func(ctx context.Context, _ int, random *rand.Rand) (int, time.Time, error) {
		if random.IntN(100) < l.Reads {
			call, began := served.read(l, random), time.Now()
			r, err := c.Do(ctx, call, nil)
			if err == nil {
				err = served.failed(r)
			}
			return confirmedRead, began, err
		}
		call, began := served.write(l, random), time.Now()
		t, err := measured(ctx, c, call)
		if err != nil {
			return confirmedWrite, began, err
		}
		if t.guess != nil {
			var wrong error
			if !t.right() {
				wrong = errWrong
			}
			l.Observe(firstReply, t.first, wrong)
		}
		return confirmedWrite, began, served.failed(t.result)
	}
	return p.LoadTest(ctx, l, f.json)
}
