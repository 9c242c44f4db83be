package command

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"strings"
)

// A Prompt carries out commands, one a line.
type Prompt struct {
	Out io.Writer
	// Person says that somebody types the commands, who is shown a sign before each, and its error.
	// Otherwise each command is shown, and the first error ends it.
	Person bool
	Sign   func() string
	Do     func(ctx context.Context, line string) (more bool, err error)
}

// longestLine is how many bytes a command may have.
const longestLine = 32 << 20

// Run carries out the commands that it reads, until ctx is done or there are no more.
func (q Prompt) Run(ctx context.Context, in io.Reader) error {
	lines := make(chan string)
	ended := make(chan error, 1)
	go func() { // which may stay in a read until the process ends
		s := bufio.NewScanner(in)
		s.Buffer(nil, longestLine)
		for s.Scan() {
			select {
			case lines <- s.Text():
			case <-ctx.Done():
				return
			}
		}
		ended <- s.Err()
	}()
	for n := 1; ; n++ {
		if q.Person {
			fmt.Fprint(q.Out, q.Sign())
		}
		select {
		case <-ctx.Done():
			return nil
		case err := <-ended:
			return err
		case line := <-lines:
			if !q.Person && strings.TrimSpace(line) != "" {
				fmt.Fprintln(q.Out, ">", line)
			}
			more, err := q.Do(ctx, line)
			if err != nil && !q.Person {
				return fmt.Errorf("line %d: %s: %w", n, line, err)
			}
			if err != nil {
				fmt.Fprintln(q.Out, err)
			}
			if !more {
				return nil
			}
		}
	}
}
