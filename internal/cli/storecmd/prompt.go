package storecmd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strconv"
	"time"

	"github.com/foresay/foresay/internal/cli/command"
	"github.com/foresay/foresay/store/client"
	"github.com/foresay/foresay/store/storeservice"
)

// A prompt carries out commands, one a line.
type prompt struct {
	*txns
	live *liveTxn
	more []command.Verb // that others add
}

// ask asks for commands until there are no more.
func (t *txns) ask(ctx context.Context) error {
	fmt.Fprintln(t.p.Out, "help shows what there is")
	t.measure(ctx)
	s := &prompt{txns: t}
	return s.commands(ctx, t.p.In, true)
}

// commands carries out the commands that it reads.
func (s *prompt) commands(ctx context.Context, in io.Reader, person bool) error {
	defer func() {
		if s.live != nil {
			s.live.abort()
		}
	}()
	return s.shell().Run(ctx, in, person)
}

func (s *prompt) shell() *command.Shell {
	return &command.Shell{Out: s.p.Out, Sign: s.sign, Verbs: append(s.verbs(), s.more...)}
}

func (s *prompt) sign() string {
	if s.live != nil {
		return "txn> "
	}
	return "> "
}

// verbs are what can be done with any store.
func (s *prompt) verbs() []command.Verb {
	do := func(name string) func(context.Context, []string) error {
		return func(ctx context.Context, args []string) error {
			o, err := parseOp(append([]string{name}, args...))
			if err != nil {
				return err
			}
			return s.op(ctx, o)
		}
	}
	end := func(how string) func(context.Context, []string) error {
		return func(context.Context, []string) error { return s.end(how) }
	}
	return []command.Verb{
		{Name: "get", Args: "KEY", Do: do("get")},
		{Name: "put", Args: "KEY VALUE", Do: do("put")},
		{Name: "delete", Args: "KEY", Do: do("delete"),
			Help: "each a transaction of its own, unless it stands after begin"},
		{Name: "begin", Help: "begin a transaction; its commands are answered at once, and it is tried once",
			Do: func(ctx context.Context, _ []string) error { return s.begin(ctx) }},
		{Name: "commit", Do: end("commit")},
		{Name: "abort", Help: "end it", Do: end("abort")},
		{Name: "read-mode", Args: "MODE", Help: "how reads are waited for: spec, predicated, auto, off, grpc",
			Do: func(_ context.Context, args []string) error { return s.setMode(args[0]) }},
		{Name: "explain", Help: "show, or do not show any more, what each transaction waits for",
			Do: func(context.Context, []string) error { s.explain = !s.explain; return nil }},
		{Name: "status", Help: "how each machine and shard is", Do: s.status},
		{Name: "move", Args: "PARTITION SITE", Help: "have another site lead a partition, of carousel or layered; 'foresay " +
			"store move' moves copies, too", Do: s.move},
	}
}

// move has another site lead a partition.
func (s *prompt) move(ctx context.Context, args []string) error {
	partition, err := strconv.Atoi(args[0])
	if err != nil || partition < 0 {
		return fmt.Errorf("%q is no partition; they are numbered from 0", args[0])
	}
	ctx, cancel := context.WithTimeout(ctx, moveLeaderWithin)
	defer cancel()
	from, err := s.conn.HandOver(ctx, partition, args[1])
	if err != nil {
		return err
	}
	s.p.writeMoved(partition, from, args[1])
	return nil
}

func (s *prompt) status(ctx context.Context, _ []string) error {
	look, cancel := context.WithTimeout(ctx, statusWithin)
	defer cancel()
	return writeStatus(s.p.Out, s.conn.Status(look), filepath.Dir(s.flags.client))
}

// op carries out a command of the transaction that is under way, or of one of its own.
func (s *prompt) op(ctx context.Context, o op) error {
	if s.live == nil {
		start := time.Now()
		if err := s.one(ctx, []op{o}); err != nil {
			return plainly(err)
		}
		if !s.explain {
			fmt.Fprintf(s.p.Out, "(%.1f ms)\n", ms(time.Since(start)))
		}
		return nil
	}
	got, err := s.live.do(o)
	if err != nil {
		s.live = nil
		return fmt.Errorf("the transaction has ended: %s", plain(err))
	}
	if got != nil {
		fmt.Fprintln(s.p.Out, got)
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

func (s *prompt) begin(ctx context.Context) error {
	if s.live != nil {
		return errors.New("begin within a transaction")
	}
	c, err := s.conn.Transactions(client.GRPC, 1)
	if err != nil {
		return err
	}
	s.live = beginLive(ctx, c, s.flags.timeout, s.opts...)
	return nil
}

func (s *prompt) end(how string) error {
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

func (s *prompt) setMode(name string) error {
	mode, err := client.ParseMode(name)
	if err != nil {
		return err
	}
	s.client, err = s.conn.Transactions(mode, 0)
	return err
}

// use goes over to another client.
func (s *prompt) use(c *storeservice.Client, mode client.Mode) (err error) {
	if s.live != nil {
		s.live.abort()
		s.live = nil
	}
	s.conn, s.at = c, nil
	s.client, err = c.Transactions(mode, 0)
	return err
}
