package storecmd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"time"

	"github.com/foresay/foresay/internal/cli/command"
	"github.com/foresay/foresay/store/client"
	"github.com/foresay/foresay/store/storeservice"
)

const storePromptHelp = `get KEY, put KEY VALUE, delete KEY: each a transaction of its own, unless it stands after begin
begin             begin a transaction; its commands are answered at once, and it is tried once
commit, abort     end it
mode MODE         how reads are waited for: spec, predicated, auto, off, grpc
explain           show, or do not show any more, what each transaction waits for
status            how each machine and shard is`

const storePromptQuit = `help, quit`

// A storePrompt carries out commands, one a line.
type storePrompt struct {
	*storeTxns
	live *liveTxn
	// more are commands that others add, with their help.
	more     func(ctx context.Context, words []string) (known bool, err error)
	moreHelp string
}

// prompt asks for commands until there are no more.
func (t *storeTxns) prompt(ctx context.Context) error {
	fmt.Fprintln(t.p.Out, "help shows what there is")
	t.measure(ctx)
	s := &storePrompt{storeTxns: t}
	return s.commands(ctx, t.p.In, true)
}

// commands carries out the commands that it reads.
func (s *storePrompt) commands(ctx context.Context, in io.Reader, person bool) error {
	defer func() {
		if s.live != nil {
			s.live.abort()
		}
	}()
	return command.Prompt{Out: s.p.Out, Person: person, Sign: s.sign, Do: s.line}.Run(ctx, in)
}

// line carries out one command, and tells whether there can be more.
func (s *storePrompt) line(ctx context.Context, text string) (more bool, err error) {
	words, err := splitWords(text)
	if err != nil || len(words) == 0 {
		return true, err
	}
	if words[0] == "quit" || words[0] == "exit" {
		return false, nil
	}
	return true, s.command(ctx, words)
}

func (s *storePrompt) sign() string {
	if s.live != nil {
		return "txn> "
	}
	return "> "
}

// command carries out one command.
func (s *storePrompt) command(ctx context.Context, words []string) error {
	if arity(words[0]) >= 0 {
		op, err := parseOp(words)
		if err != nil {
			return err
		}
		return s.op(ctx, op)
	}
	switch args := words[1:]; {
	case words[0] == "mode" && len(args) == 1:
		return s.setMode(args[0])
	case len(args) > 0:
	case words[0] == "begin":
		return s.begin(ctx)
	case words[0] == "commit" || words[0] == "abort":
		return s.end(words[0])
	case words[0] == "explain":
		s.explain = !s.explain
		return nil
	case words[0] == "status":
		look, cancel := context.WithTimeout(ctx, storeStatusWithin)
		defer cancel()
		return writeStoreStatus(s.p.Out, s.conn.Status(look), filepath.Dir(s.flags.client))
	case words[0] == "help":
		for _, text := range []string{storePromptHelp, s.moreHelp, storePromptQuit} {
			if text != "" {
				fmt.Fprintln(s.p.Out, text)
			}
		}
		return nil
	}
	if s.more != nil {
		if known, err := s.more(ctx, words); known || err != nil {
			return err
		}
	}
	return fmt.Errorf("there is no command %q with %d arguments; help shows all", words[0], len(words)-1)
}

// op carries out a command of the transaction that is under way, or of one of its own.
func (s *storePrompt) op(ctx context.Context, op storeOp) error {
	if s.live == nil {
		start := time.Now()
		if err := s.one(ctx, []storeOp{op}); err != nil {
			return plainly(err)
		}
		if !s.explain {
			fmt.Fprintf(s.p.Out, "(%.1f ms)\n", ms(time.Since(start)))
		}
		return nil
	}
	read, err := s.live.do(op)
	if err != nil {
		s.live = nil
		return fmt.Errorf("the transaction has ended: %s", plain(err))
	}
	if read != nil {
		fmt.Fprintln(s.p.Out, read)
	}
	return nil
}

// plainly leaves out what a prompt need not say.
func plainly(err error) error {
	if exit, ok := errors.AsType[command.ExitError](err); ok {
		return exit.Err
	}
	return err
}

func (s *storePrompt) begin(ctx context.Context) error {
	if s.live != nil {
		return errors.New("begin within a transaction")
	}
	c, err := s.conn.Transactions(client.GRPC, 1)
	if err != nil {
		return err
	}
	s.live = beginLive(ctx, c, s.flags.timeout)
	return nil
}

func (s *storePrompt) end(how string) error {
	if s.live == nil {
		return fmt.Errorf("%s without begin", how)
	}
	l := s.live
	s.live = nil
	if how == "abort" {
		l.abort()
		return nil
	}
	if err := l.commit(); err != nil {
		return errors.New(plain(err))
	}
	fmt.Fprintln(s.p.Out, plain(nil))
	return nil
}

func (s *storePrompt) setMode(name string) error {
	mode, err := client.ParseMode(name)
	if err != nil {
		return err
	}
	s.txns, err = s.conn.Transactions(mode, 0)
	return err
}

// use goes over to another client.
func (s *storePrompt) use(c *storeservice.Client, mode client.Mode) (err error) {
	if s.live != nil {
		s.live.abort()
		s.live = nil
	}
	s.conn, s.near = c, nil
	s.txns, err = c.Transactions(mode, 0)
	return err
}
