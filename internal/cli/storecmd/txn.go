package storecmd

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/foresay/foresay/internal/cli/command"
	"github.com/foresay/foresay/store"
	"github.com/foresay/foresay/store/client"
	"github.com/foresay/foresay/store/storeservice"
)

type txnFlags struct {
	clientFlags
	mode     string
	explain  bool
	declared bool
	level    string
	attempts int
	began    bool // what was asked for is well formed, and the store is there
}

func (p *program) txnCommand() *cobra.Command {
	var f txnFlags
	c := &cobra.Command{
		Use:   "txn [CMD [, CMD]...]",
		Short: "Make a transaction: get, put, delete",
		Long: `Make one transaction of commands: get KEY, put KEY VALUE, delete KEY, with commas between them,
words of their own. A VALUE of - is what is on standard input.

  foresay store txn get a , put b 1 --client dir/client.json

Without commands it takes them from standard input, one a line: each line is a transaction, and
what stands between lines begin and commit is one (abort drops it). Words with spaces are quoted
as in Go; # begins a comment. A script ends at the first transaction that is not committed. A
terminal gets a prompt, where each command of a transaction is answered at once; such a
transaction is tried once.

Exit codes: 0 committed; 1 failed, without any effect; 3 unknown: nobody could tell whether it
took effect; 4 blocked: it cannot be decided before a site is back or fenced; 5 aborted, without
any effect. Transactions that are refused are tried again, for --timeout, or as often as
--attempts says.`,
		Args: cobra.ArbitraryArgs,
		RunE: func(c *cobra.Command, args []string) error {
			err := p.txn(c.Context(), args, &f)
			if err != nil && f.json && !f.began { // who reads JSON learns that nothing was done
				err = errors.Join(err, p.WriteJSONLine(newOutcome(nil, err)))
			}
			return err
		},
	}
	p.OnMisuse(c, func(err error) error {
		if !slices.Contains(p.Args, "--json") { // a flag before it may have ended the parsing
			return err
		}
		return errors.Join(err, p.WriteJSONLine(newOutcome(nil, err)))
	})
	f.add(c.Flags(), 30*time.Second)
	c.Flags().StringVar(&f.mode, "read-mode", client.Spec.String(),
		"how reads are waited for: spec goes on with the first answer, predicated asks the nearest site only, auto "+
			"chooses between these, off and grpc wait for the quorum")
	c.Flags().BoolVar(&f.explain, "explain", false,
		"show what the transaction waited for, against what is physically possible")
	c.Flags().BoolVar(&f.declared, "declared", false,
		"declare all keys before the first is read, where all commands are given at once:\n"+
			"carousel prepares them meanwhile, others read them at once")
	addLevel(c.Flags(), &f.level)
	c.Flags().IntVar(&f.attempts, "attempts", 0, "how often to try (default: until --timeout)")
	return c
}

func (p *program) txn(ctx context.Context, args []string, f *txnFlags) error {
	m, err := client.ParseMode(f.mode)
	if err != nil {
		return command.Usagef("store txn: --read-mode: %w", err)
	}
	opts, err := levelOption("store txn", f.level)
	if err != nil {
		return err
	}
	if f.attempts < 0 {
		return command.Usagef("store txn: --attempts is %d; want 0 or more", f.attempts)
	}
	var ops []op
	if len(args) > 0 {
		if ops, err = parseOps(args); err != nil {
			return command.Usagef("store txn: %w", err)
		}
		if err := p.fillIn(ops); err != nil {
			return err
		}
	}
	return p.withClient(&f.clientFlags, func(conn *storeservice.Client) error {
		f.began = true
		c, err := conn.Transactions(m, f.attempts)
		if err != nil {
			return err
		}
		t := &txns{p: p, conn: conn, client: c, flags: &f.clientFlags, explain: f.explain,
			declared: f.declared, opts: opts}
		switch {
		case len(args) > 0:
			return t.one(ctx, ops)
		case p.atTerminal():
			return t.ask(ctx)
		}
		return t.script(ctx, p.In)
	})
}

// fillIn reads the value of a put that is a dash.
func (p *program) fillIn(ops []op) error {
	dashes := 0
	for i := range ops {
		if ops[i].Name != "put" || string(ops[i].Value) != "-" {
			continue
		}
		if dashes++; dashes > 1 {
			return command.Usagef("store txn: there are two values -, and standard input is one")
		}
		b, err := io.ReadAll(io.LimitReader(p.In, store.MaxValueBytes+1))
		if err != nil {
			return fmt.Errorf("store txn: %w", err)
		}
		ops[i].Value = b
	}
	return nil
}

// atTerminal reports whether a person types what is read and sees what is written.
func (p *program) atTerminal() bool {
	file, ok := p.In.(*os.File)
	return ok && command.IsTerminal(file) && command.IsTerminal(p.Out)
}

// txns makes transactions and shows what came of them.
type txns struct {
	p       *program
	conn    *storeservice.Client
	client  *client.Client
	flags   *clientFlags
	explain bool
	// declared says that transactions whose commands are all known declare their keys.
	declared bool
	opts     []client.Option // of every transaction
	at       *sight          // measured once, for explain
}

// A keyText is a key in JSON.
type keyText struct {
	Key       string `json:"key,omitempty"`
	KeyBase64 []byte `json:"key_base64,omitempty"` // instead of Key, if that is no text
}

func newKeyText(key string) keyText {
	if utf8.ValidString(key) {
		return keyText{Key: key}
	}
	return keyText{KeyBase64: []byte(key)}
}

// printable returns the key for people.
func (k keyText) printable() string {
	if k.KeyBase64 != nil {
		return command.Printable(strconv.Quote(string(k.KeyBase64)))
	}
	return command.Printable(k.Key)
}

// A read is what a get of a transaction returned.
type read struct {
	keyText
	Present     bool   `json:"present"`
	Value       string `json:"value,omitempty"`
	ValueBase64 []byte `json:"value_base64,omitempty"` // instead of Value, if that is no text
}

func newRead(key string, value []byte, present bool) read {
	r := read{keyText: newKeyText(key), Present: present}
	if utf8.Valid(value) {
		r.Value = string(value)
	} else {
		r.ValueBase64 = value
	}
	return r
}

func (r read) String() string {
	switch {
	case !r.Present:
		return r.printable() + " is not there"
	case r.ValueBase64 != nil:
		return r.printable() + " = " + strconv.Quote(string(r.ValueBase64))
	}
	return r.printable() + " = " + r.Value
}

// An outcome is what a transaction came to, for programs.
type outcome struct {
	Outcome string `json:"outcome"`
	Reason  string `json:"reason,omitempty"` // of an abort
	// whether it may have taken effect, or may yet, for all that is known
	MayCommit   bool         `json:"may_have_committed,omitempty"`
	Sites       []string     `json:"sites,omitempty"` // that were waited for in vain
	keyText                  // that was being read
	Error       string       `json:"error,omitempty"`
	Transaction string       `json:"transaction,omitempty"` // its name, if it is not known what became of it
	Reads       []read       `json:"reads"`
	Explanation *explanation `json:"explanation,omitempty"`
}

// newOutcome returns what --json says of a transaction that ended with err.
func newOutcome(reads []read, err error) outcome {
	word, _ := verdict(err)
	out := outcome{Outcome: word, MayCommit: client.MayHaveCommitted(err), Reads: reads}
	if reads == nil {
		out.Reads = []read{}
	}
	if err != nil {
		out.Error = plain(err)
	}
	if aborted, ok := errors.AsType[*client.AbortedError](err); ok {
		out.Reason = aborted.Reason.String()
	}
	if unknown, ok := errors.AsType[*client.UnknownError](err); ok {
		out.Transaction, out.Sites = unknown.Txn.ID.String(), unknown.Sites
	}
	if rejected, ok := errors.AsType[*client.RejectedError](err); ok {
		out.Sites = rejected.Sites
	}
	if unavailable, ok := errors.AsType[*client.UnavailableError](err); ok {
		out.Sites, out.keyText = unavailable.Sites, newKeyText(string(unavailable.Key))
	}
	if canceled, ok := errors.AsType[*client.CanceledError](err); ok {
		out.Sites, out.keyText = canceled.Sites, newKeyText(string(canceled.Key))
	}
	if blocked, ok := errors.AsType[*client.BlockedError](err); ok {
		out.Transaction, out.Sites = blocked.Txn.ID.String(), blocked.Sites
	}
	return out
}

// one makes one transaction. What became of it, if it is not committed, is the error.
func (t *txns) one(ctx context.Context, ops []op) error {
	ctx, cancel := context.WithTimeout(ctx, t.flags.timeout)
	defer cancel()
	var traces []*client.Trace
	if t.explain {
		t.measure(ctx)
		ctx = client.WithTrace(ctx, func(tr *client.Trace) { traces = append(traces, tr) })
	}
	opts := slices.Clone(t.opts)
	if t.declared {
		opts = append(opts, keysOf(ops))
	}
	reads, err := runOps(ctx, t.client, ops, opts...)
	fail := t.failure(err)
	var x *explanation
	if t.explain {
		x = explain(traces, *t.at, client.LevelOf(t.conn))
	}
	if t.flags.json {
		out := newOutcome(reads, err)
		out.Explanation = x
		if e := t.p.WriteJSONLine(out); e != nil {
			return e
		}
		return fail
	}
	for _, r := range reads {
		fmt.Fprintln(t.p.Out, r)
	}
	if err == nil {
		fmt.Fprintln(t.p.Out, plain(nil))
	}
	if x != nil {
		x.write(t.p.Out)
	}
	return fail
}

// failure is the command's error. Of a transaction whose outcome is unknown it also says which
// machines do not take part.
func (t *txns) failure(err error) error {
	if _, code := verdict(err); code == command.CodeUnknown {
		ctx, cancel := context.WithTimeout(context.Background(), statusWithin)
		defer cancel()
		if why := storeservice.Complaints(t.conn.Status(ctx)); why != "" {
			return command.ExitError{Code: code, Err: fmt.Errorf("%w (%s)", failure(err), why)}
		}
	}
	return failure(err)
}

// runOps runs the commands as a transaction, as often as it takes.
func runOps(ctx context.Context, c *client.Client, ops []op, opts ...client.Option) ([]read, error) {
	return client.Run(ctx, c, func(ctx context.Context, tx *client.Tx) ([]read, error) {
		var reads []read
		for _, o := range ops {
			r, err := o.run(ctx, tx)
			if err != nil {
				return nil, err
			}
			if r != nil {
				reads = append(reads, *r)
			}
		}
		return reads, nil
	}, opts...)
}

// keysOf declares what a transaction's commands read and write.
func keysOf(ops []op) client.Option {
	var reads, writes []string
	for _, o := range ops {
		to := &writes
		if o.Name == "get" {
			to = &reads
		}
		if !slices.Contains(*to, o.Key) {
			*to = append(*to, o.Key)
		}
	}
	return client.Keys(reads, writes)
}

// run carries out one command. It returns what a get read.
func (o op) run(ctx context.Context, tx *client.Tx) (*read, error) {
	switch o.Name {
	case "put":
		return nil, tx.Put(o.Key, o.Value)
	case "delete":
		return nil, tx.Delete(o.Key)
	}
	value, ok, err := tx.Get(ctx, o.Key)
	if err != nil {
		return nil, err
	}
	r := newRead(o.Key, value, ok)
	return &r, nil
}

// measure finds out how far the sites are, once. It also makes the connections, so that what
// follows does not wait for that.
func (t *txns) measure(ctx context.Context) {
	if t.at != nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, statusWithin)
	defer cancel()
	at := sightOf(ctx, t.conn)
	t.at = &at
}

// script makes the transactions of the lines that it reads, up to the first that is not committed.
func (t *txns) script(ctx context.Context, in io.Reader) error {
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, 2*store.MaxTxnBytes)
	var s script
	for n := 1; lines.Scan(); n++ {
		ops, err := s.line(lines.Text())
		if err != nil {
			return t.mistake(fmt.Errorf("line %d: %w", n, err))
		}
		if ops == nil {
			continue
		}
		if err := t.one(ctx, ops); err != nil {
			if exit, ok := errors.AsType[command.ExitError](err); ok {
				return command.ExitError{Code: exit.Code, Err: fmt.Errorf("line %d: %w", n, exit.Err)}
			}
			return err
		}
	}
	if err := cmp.Or(lines.Err(), s.end()); err != nil {
		return t.mistake(err)
	}
	return nil
}

// mistake is the command's error if no transaction can be made of what it reads. With --json there
// is an object for that, too.
func (t *txns) mistake(err error) error {
	if t.flags.json {
		if e := t.p.WriteJSONLine(newOutcome(nil, err)); e != nil {
			return e
		}
	}
	return fmt.Errorf("store txn: %w", err)
}
