package storecmd

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/foresay/foresay/history"
	"github.com/foresay/foresay/internal/cli/command"
	"github.com/foresay/foresay/store"
	"github.com/foresay/foresay/store/client"
)

// onePlace is a store at one place.
type onePlace struct {
	mu     sync.Mutex
	values map[store.Key]store.Value
	last   uint64
	deaf   bool // nothing is answered
}

func (m *onePlace) Begin(client.Beginning) client.Attempt { return m }

func (m *onePlace) End() {}

func (m *onePlace) Promises() history.Level { return history.StrictSerializable }

func (m *onePlace) Stales() bool { return false }

func (m *onePlace) Read(ctx context.Context, key store.Key, _ func(client.Answer)) (client.Answer, error) {
	m.mu.Lock()
	v, deaf := m.values[key], m.deaf
	m.mu.Unlock()
	if deaf {
		<-ctx.Done()
		return client.Answer{}, context.Cause(ctx)
	}
	return client.Answer{Value: v, Site: "here"}, nil
}

func (m *onePlace) ReadNearest(ctx context.Context, key store.Key) (client.Answer, error) {
	return m.Read(ctx, key, nil)
}

func (m *onePlace) Commit(ctx context.Context, s client.Submission) client.Decision {
	m.mu.Lock()
	deaf := m.deaf
	m.mu.Unlock()
	if deaf {
		<-ctx.Done()
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.last++
	d := client.Decision{Txn: store.Txn{ID: store.TxnID{Time: m.last, Client: 1}, Reads: s.Reads,
		Writes: s.Writes}, Site: "here"}
	if deaf {
		return d // unknown
	}
	for _, r := range s.Reads {
		if m.values[r.Key].Version != r.Version {
			d.Outcome = store.Outcome{Verdict: store.Aborted, Reason: store.StaleRead}
			return d
		}
	}
	for _, w := range s.Writes {
		m.values[w.Key] = store.Value{Version: d.Txn.ID, Present: !w.Delete, Bytes: w.Bytes}
	}
	d.Outcome.Verdict = store.Committed
	return d
}

func (m *onePlace) Resolve(_ context.Context, txn store.Txn) client.Decision {
	return client.Decision{Txn: txn}
}

func (m *onePlace) Stale(context.Context, []store.Read) bool { return false }

func (m *onePlace) Reserve([]store.Key, store.Priority) {}

func inPlace(t *testing.T, f func(*testing.T, *onePlace, *client.Client)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		m := &onePlace{values: map[store.Key]store.Value{}}
		c, err := client.New(client.Config{Backend: m, Mode: client.GRPC, MaxAttempts: 1})
		if err != nil {
			t.Fatal(err)
		}
		f(t, m, c)
	})
}

func TestLiveTransactions(t *testing.T) {
	inPlace(t, func(t *testing.T, m *onePlace, c *client.Client) {
		do := func(l *liveTxn, line, want string) {
			t.Helper()
			words, err := command.SplitWords(line)
			if err != nil {
				t.Fatal(err)
			}
			o, err := parseOp(words)
			if err != nil {
				t.Fatal(err)
			}
			read, err := l.do(o)
			if err != nil || read != nil && read.String() != want || read == nil && want != "" {
				t.Errorf("%s gives %v, %v, want %s", line, read, err, want)
			}
		}
		one := beginLive(t.Context(), c, time.Second)
		do(one, "get a", "a is not there")
		do(one, "put a 1", "")
		do(one, "get a", "a = 1")
		other := beginLive(t.Context(), c, time.Second)
		do(other, "get a", "a is not there")
		do(other, "put a 2", "")
		if err := one.commit(); err != nil {
			t.Error(err)
		}
		err := other.commit()
		if aborted, ok := errors.AsType[*client.AbortedError](err); !ok || aborted.Reason != store.StaleRead ||
			aborted.Attempts != 1 {
			t.Errorf("the second one that read a was not there ended with %v", err)
		}
		dropped := beginLive(t.Context(), c, time.Second)
		do(dropped, "put a 3", "")
		dropped.abort()
		last := beginLive(t.Context(), c, time.Second)
		do(last, "get a", "a = 1")
		time.Sleep(time.Hour) // who thinks is not interrupted
		do(last, "delete a", "")
		if err := last.commit(); err != nil {
			t.Error(err)
		}

		m.mu.Lock()
		m.deaf = true
		m.mu.Unlock()
		start := time.Now()
		silent := beginLive(t.Context(), c, time.Second)
		if _, err := silent.do(op{Name: "get", Key: "a"}); !errors.Is(err, context.DeadlineExceeded) ||
			time.Since(start) != time.Second {
			t.Errorf("a read that is not answered ended with %v after %v", err, time.Since(start))
		}
		silent = beginLive(t.Context(), c, time.Second)
		do(silent, "put a 4", "")
		if err := silent.commit(); !errors.As(err, new(*client.UnknownError)) {
			t.Errorf("a commit that is not answered ended with %v", err)
		}
	})
}

// TestPrompt types at a prompt, to which the store is one place.
func TestPrompt(t *testing.T) {
	inPlace(t, func(t *testing.T, _ *onePlace, c *client.Client) {
		var out strings.Builder
		p := &program{&command.Program{Streams: command.Streams{Out: &out, Err: &out}}}
		s := &prompt{txns: &txns{p: p, client: c, flags: &clientFlags{timeout: time.Second}}}
		in := strings.NewReader("put a \"two words\"\nget a\n\njump\nget\ncommit\nread-mode fast\nhelp\nquit\nput a 3\n")
		if err := s.commands(t.Context(), in, true); err != nil {
			t.Fatal(err)
		}
		want := `> committed
(0.0 ms)
> a = two words
committed
(0.0 ms)
> > there is no command "jump"; 'help' shows all
> get with 0 arguments; want get KEY
> commit without begin
> client: no mode "fast" (there are spec, off, grpc, predicated, auto)
> ` + s.shell().Help() + "> "
		if got := out.String(); got != want {
			t.Errorf("got\n%s\nwant\n%s", got, want)
		}
		if got := s.commands(t.Context(), strings.NewReader("get a\njump\nget a\n"), false); got == nil ||
			got.Error() != `line 2: jump: there is no command "jump"; 'help' shows all` {
			t.Errorf("a script with a mistake ended with %v", got)
		}
	})
}

func TestOutcomes(t *testing.T) {
	txn := store.Txn{ID: store.TxnID{Time: 7, Client: 15}}
	for _, tc := range []struct {
		err  error
		code int
		json outcome
	}{
		{nil, 0, outcome{Outcome: "committed"}},
		{
			&client.AbortedError{Reason: store.Locked, Attempts: 2}, codeAborted,
			outcome{Outcome: "aborted", Reason: "locked", Error: "aborted: locked, after 2 attempts; it took no effect"},
		},
		{
			&client.UnknownError{Txn: txn, Sites: []string{"b"}}, command.CodeUnknown,
			outcome{
				Outcome: "unknown", Transaction: "7/f", MayCommit: true, Sites: []string{"b"},
				Error: "unknown: transaction 7/f may have taken effect, or may yet, once; no vote of b",
			},
		},
		{
			&client.AbortedError{Reason: store.Ahead, Attempts: 2}, codeAborted,
			outcome{Outcome: "aborted", Reason: "version ahead of time", Error: "aborted: version ahead of time, after 2 " +
				"attempts: the clock here is ahead, or that of a machine is behind, which 'foresay store status' then names; it " +
				"took no effect"},
		},
		{
			&client.BlockedError{Txn: txn, Sites: []string{"b", "c"}}, codeBlocked,
			outcome{
				Outcome: "blocked", Transaction: "7/f", MayCommit: true, Sites: []string{"b", "c"},
				Error: "blocked: transaction 7/f waits until one of these sites is back or fenced: b, c",
			},
		},
		{
			&client.UnavailableError{Key: "k", Sites: []string{"b", "c"}, Err: context.DeadlineExceeded}, 1,
			outcome{
				Outcome: "failed", Sites: []string{"b", "c"}, keyText: keyText{Key: "k"},
				Error: `client: read "k": too few sites answer, not b, c: context deadline exceeded; it took no effect`,
			},
		},
		{
			&client.RejectedError{Detail: "nothing was sent: b: no answer", Sites: []string{"b"}}, 1,
			outcome{Outcome: "failed", Sites: []string{"b"},
				Error: "client: the transaction was rejected: nothing was sent: b: no answer; it took no effect"},
		},
		{fmt.Errorf("read: %w", context.DeadlineExceeded), 1,
			outcome{Outcome: "failed", Error: "read: context deadline exceeded"}},
	} {
		got := newOutcome(nil, tc.err)
		tc.json.Reads = []read{}
		if fmt.Sprintf("%+v", got) != fmt.Sprintf("%+v", tc.json) {
			t.Errorf("%v is %+v, want %+v", tc.err, got, tc.json)
		}
		err := failure(tc.err)
		exit, ok := errors.AsType[command.ExitError](err)
		if ok != (tc.code != 0) || ok && exit.Code != tc.code {
			t.Errorf("%v ends with the code %d, want %d", tc.err, exit.Code, tc.code)
		}
	}
}

// TestKeysThatAreNoText: who reads JSON gets keys and values as they are, whatever bytes they have.
func TestKeysThatAreNoText(t *testing.T) {
	for _, tc := range []struct {
		v    any
		want string
	}{
		{newRead("\xff\x00", []byte("\xfe"), true), `{"key_base64":"/wA=","present":true,"value_base64":"/g=="}`},
		{newRead("ä", []byte("ö"), true), `{"key":"ä","present":true,"value":"ö"}`},
		{newOutcome(nil, &client.UnavailableError{Key: "\xff"}).keyText, `{"key_base64":"/w=="}`},
		{readExplained{keyText: newKeyText("\xff")}.keyText, `{"key_base64":"/w=="}`},
	} {
		b, err := json.Marshal(tc.v)
		if err != nil || string(b) != tc.want {
			t.Errorf("%s, %v; want %s", b, err, tc.want)
		}
	}
	if got, want := newRead("\xff", []byte("v"), true).String(), `"\xff" = v`; got != want {
		t.Errorf("for people it is %s, want %s", got, want)
	}
	b, err := json.Marshal(newOutcome([]read{newRead("\xff", nil, false)}, nil))
	if want := `{"outcome":"committed","reads":[{"key_base64":"/w==","present":false}]}`; err != nil || string(b) != want {
		t.Errorf("%s, %v; want %s", b, err, want)
	}
}

// TestStoreFailures: what 'store bench' counts is told as what it is, and what is alike is counted
// together.
func TestStoreFailures(t *testing.T) {
	txn := func(n uint64) store.Txn { return store.Txn{ID: store.TxnID{Time: n, Client: 1}} }
	for _, tc := range []struct {
		err  error
		want string
	}{
		{&client.BlockedError{Txn: txn(1), Sites: []string{"b"}}, "blocked until b is back"},
		{&client.UnknownError{Txn: txn(2), Sites: []string{"b", "c"}}, "unknown: no answer from b, c"},
		{&client.UnavailableError{Key: "k", Sites: []string{"b", "c"}, Detail: "b-1: connection refused"},
			"failed: no answer from b, c"},
		{&client.AbortedError{Reason: store.Locked}, "aborted: locked"},
	} {
		if got := outcomeError(tc.err); got == nil || got.Error() != tc.want {
			t.Errorf("%v is told as %q, want %q", tc.err, got, tc.want)
		}
	}
}
