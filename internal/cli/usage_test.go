package cli

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/foresay/foresay/bench/experiments"
	"github.com/foresay/foresay/internal/catalog"
	"github.com/foresay/foresay/internal/cli/command"
	"github.com/foresay/foresay/internal/cli/smrcmd"
	"github.com/foresay/foresay/internal/cli/smrcmd/plancmd"
	storeplan "github.com/foresay/foresay/internal/cli/storecmd/plancmd"
	"github.com/foresay/foresay/internal/heap"
	"github.com/foresay/foresay/sim"
	"github.com/foresay/foresay/smr/plan"
	"github.com/foresay/foresay/store/client"
	"github.com/foresay/foresay/store/storeconfig"
	"github.com/foresay/foresay/wan"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// say runs a command line.
func say(args ...string) (code int, out, errs string) {
	var o, e bytes.Buffer
	code = Main(context.Background(), args, command.Streams{In: strings.NewReader(""), Out: &o, Err: &e})
	return code, o.String(), e.String()
}

// eachCommand calls f for each command that people see, with its path.
func eachCommand(f func(c *cobra.Command, path []string)) {
	p := &command.Program{Streams: Streams{In: strings.NewReader("")}}
	var walk func(c *cobra.Command, path []string)
	walk = func(c *cobra.Command, path []string) {
		if c.Hidden || c.Name() == "completion" || c.Name() == "help" { // cobra's own
			return
		}
		f(c, path)
		for _, sub := range c.Commands() {
			walk(sub, append(slices.Clone(path), sub.Name()))
		}
	}
	walk(root(p), nil)
}

// TestUsageErrors: each flag of each command says in the same way what is wrong with its value, in
// words for people.
func TestUsageErrors(t *testing.T) {
	inside := regexp.MustCompile(`strconv|parsing|invalid|syntax|Parse|\btime: `)
	n := 0
	complain := func(want string, args ...string) {
		n++
		code, out, errs := say(args...)
		first, rest, _ := strings.Cut(errs, "\n")
		if code != 2 || out != "" || !regexp.MustCompile(want).MatchString(first) || inside.MatchString(first) ||
			!strings.HasPrefix(rest, "Run 'foresay") || !strings.HasSuffix(rest, "--help' for usage.\n") {
			t.Errorf("foresay %s: exit code %d\n%s%swant %s", strings.Join(args, " "), code, out, errs, want)
		}
	}
	eachCommand(func(c *cobra.Command, path []string) {
		about := "^foresay: "
		if len(path) > 0 {
			about += strings.Join(path, " ") + ": "
		}
		with := func(flag ...string) []string { return append(slices.Clone(path), flag...) }
		complain(about+`unknown flag --zzzzzz$`, with("--zzzzzz")...)
		complain(about+`unknown flag --nope$`, with("--nope")...) // nothing like --top, or --node
		complain(about+`unknown flag -z; flags begin with two dashes$`, with("-z")...)
		complain(about+`"--=3" is no flag; want --NAME or --NAME=VALUE$`, with("--=3")...)
		if c.HasSubCommands() && c.Name() != "bench" {
			complain(about+`unknown command "zzzzzz"; 'foresay.* --help' shows all$`, with("zzzzzz")...)
			sub := c.Commands()[0].Name()
			complain(about+`unknown command "`+sub+`e"; did you mean `+sub+`\?$`, with(sub+"e")...)
			complain(`^foresay: help: .*unknown command "`+sub+`e"; did you mean `+sub+`\?$`,
				append([]string{"help"}, with(sub+"e")...)...)
		}
		if code, out, errs := say(append([]string{"help"}, path...)...); code != 0 || !strings.Contains(out, c.UseLine()) ||
			errs != "" {
			t.Errorf("foresay help %s: exit code %d\n%s%s", strings.Join(path, " "), code, out, errs)
		}
		check := func(f *pflag.Flag) {
			kind := f.Value.Type()
			switch name := "--" + f.Name; {
			case f.Name == "help" || f.Name == "version":
			case strings.HasPrefix(kind, "string"):
				complain(about+`unknown flag `+name+`q; did you mean --[a-z-]+\?$`, with(name+"q")...)
			case kind == "bool":
				complain(about+name+` is ""; want true or false$`, with(name+"=")...)
			default:
				complain(about+name+` has no value; want .+$`, with(name)...)
				complain(about+name+` is "zzz"; want .+$`, with(name+"=zzz")...)
			}
		}
		c.LocalFlags().VisitAll(check)
		// What several commands share complains in the name of the one that is run.
		shared := func(args ...string) {
			n++
			got, out, errs := say(with(args...)...)
			if got == 0 || out != "" || !regexp.MustCompile(about).MatchString(errs) {
				t.Errorf("foresay %s %v: exit code %d\n%s%s", strings.Join(path, " "), args, got, out, errs)
			}
		}
		if c.Args == nil || c.Args(c, nil) != nil {
			return
		}
		if c.Flag("timeout") != nil && c.Flag("addr") != nil {
			shared("--timeout=0")
			shared()
		}
		for _, flag := range []string{"config", "client"} {
			if f := c.Flag(flag); f != nil && f.Value.Type() == "string" {
				shared("--" + flag + "=" + t.TempDir() + "/none.json")
			}
		}
	})
	if n < 200 {
		t.Errorf("only %d command lines", n)
	}
}

// TestShardsTwice: the flag that has two names has one value.
func TestShardsTwice(t *testing.T) {
	for _, args := range []string{"store init --dir DIR/s --shards 5 --partitions 6",
		"store dev --script DIR/none --partitions 5 --shards 6"} {
		code, _, errs := say(strings.Fields(strings.ReplaceAll(args, "DIR", t.TempDir()))...)
		if want := `--shards is "6"; want 5, as it is given already; --partitions and --shards are the same`; code != 2 ||
			!strings.Contains(errs, want) {
			t.Errorf("foresay %s: exit code %d\n%swant %s", args, code, errs, want)
		}
	}
	dir := t.TempDir()
	if code, _, errs := say("store", "init", "--dir", dir, "--shards", "2", "--partitions", "2"); code != 0 {
		t.Fatal(errs)
	}
	s, err := storeconfig.ReadStore(filepath.Join(dir, storeconfig.StoreFile))
	if err != nil || s.Shards != 2 {
		t.Errorf("the store is %+v, %v", s, err)
	}
}

// TestHelpFits: no line of help is wider than a screen, and none of its words are lost.
func TestHelpFits(t *testing.T) {
	words := regexp.MustCompile(`\s+`)
	n := 0
	eachCommand(func(c *cobra.Command, path []string) {
		_, help, _ := say(append(slices.Clone(path), "--help")...)
		for line := range strings.Lines(help) {
			if len(line) > command.ScreenWidth+1 {
				t.Errorf("foresay %s --help has a line of %d characters: %s", strings.Join(path, " "), len(line)-1, line)
			}
		}
		for _, said := range append(strings.Split(c.LocalFlags().FlagUsages(), "\n"), c.Long) {
			if !strings.Contains(words.ReplaceAllString(help, " "), strings.TrimSpace(words.ReplaceAllString(said, " "))) {
				t.Errorf("foresay %s --help lacks a part of\n%s", strings.Join(path, " "), said)
			}
		}
		n++
	})
	if n < 20 {
		t.Errorf("%d commands", n)
	}
	const list = "Commands:\n  long-name    does one thing\n  longest-name does it with\n  short        does another, " +
		"and that at great length, so that it takes more than one line to tell what it does on a screen\n"
	if got := command.Wrapped(strings.Replace(list, "with", "with "+strings.Repeat("much ", 20), 1)); strings.Count(got,
		"\n               ") != 2 || strings.Contains(got, "it with m\n") {
		t.Errorf("got\n%s", got)
	}
}

// TestCompletion: shells are offered all values of the flags that have names as values, and each is
// one.
func TestCompletion(t *testing.T) {
	valid := map[string]func(string) error{
		"protocol": func(s string) error { _, err := catalog.Protocol(s); return err },
		"wan":      func(s string) error { _, err := wan.Preset(s); return err },
		"faults":   func(s string) error { _, err := sim.ParseFaults(s); return err },
		"mode":     func(s string) error { _, err := client.ParseMode(s); return err },
		"ack":      func(s string) error { return new(smrcmd.AckFlag).Set(s) },
		"by":       func(s string) error { _, _, err := plancmd.ParseBy(s); return err },
	}
	seen := make(map[string]bool)
	eachCommand(func(c *cobra.Command, path []string) {
		c.LocalFlags().VisitAll(func(f *pflag.Flag) {
			check := valid[f.Name]
			if check == nil {
				return
			}
			seen[f.Name] = true
			if f.Name == "protocol" && path[0] == "store" {
				check = func(s string) error { _, err := catalog.Store(s); return err }
			}
			if f.Name == "protocol" && slices.Equal(path, []string{"store", "plan"}) {
				check = func(s string) error { _, err := storeplan.ParseSystem(s); return err }
			}
			if f.Name == "protocol" && slices.Equal(path, []string{"smr", "plan"}) {
				check = func(s string) error { _, err := plancmd.ParseSystem(s); return err }
			}
			if f.Name == "by" && path[0] == "store" {
				check = func(s string) error { _, err := storeplan.ParseBy(s); return err }
			}
			_, out, _ := say(slices.Concat([]string{"__complete"}, path, []string{"--" + f.Name, ""})...)
			lines := strings.Split(strings.TrimSpace(out), "\n")
			offered := lines[:len(lines)-1]
			if !slices.Equal(offered, command.ChoicesOf(f)) || len(offered) < 2 {
				t.Errorf("%v --%s offers %q", path, f.Name, offered)
			}
			for _, name := range offered {
				if err := check(name); err != nil && name != command.SwarmName {
					t.Errorf("%v --%s offers %q: %v", path, f.Name, name, err)
				}
			}
			if err := check(offered[0] + "q"); f.Name != "ack" &&
				(err == nil || !strings.Contains(err.Error(), "did you mean "+offered[0]+"?")) {
				t.Errorf("--%s %sq: %v, want a hint", f.Name, offered[0], err)
			}
		})
	})
	if len(seen) != len(valid) {
		t.Errorf("only these flags are there: %v", seen)
	}
	for _, s := range plan.Systems() {
		if s != plan.Floor && !slices.Contains(command.Choices("protocol"), string(s)) {
			t.Errorf("smr plan takes %s, which is not offered", s)
		}
	}
	for line, want := range map[string]string{
		"smr plan --protocol raft,e": "raft,epaxos\n:6\n",
		"smr plan --protocol p":      "pbft\n:6\n", "sim run --protocol fast": "fastpaxos\n:4\n",
		"smr dev --dir ":     ":16\n",
		"smr dev --clients ": ":4\n", "analyze --svg ": ":0\n",
		"sim run --faults crash,p": "crash,power\ncrash,pause\ncrash,partition\ncrash,partial\n:6\n",
	} {
		if _, out, _ := say(append([]string{"__complete"}, strings.Split(line, " ")...)...); out != want {
			t.Errorf("%q is completed by %q, want %q", line, out, want)
		}
	}
	_, out, _ := say("__complete", "bench", "")
	for _, e := range experiments.All() {
		if !strings.Contains(out, e.Name+"\t") {
			t.Errorf("bench does not offer %s", e.Name)
		}
	}
}

// TestUsageErrorsAsJSON: who asks a transaction for JSON gets it where the command line makes no
// sense, too, wherever the flag stands.
func TestUsageErrorsAsJSON(t *testing.T) {
	for _, line := range []string{"--json --timeout xyz get a", "--bad --json get a", "--json --mode",
		"--json --attempts -1 get a"} {
		code, out, errs := say(append([]string{"store", "txn"}, strings.Fields(line)...)...)
		if code != 2 || !strings.HasPrefix(out, `{"outcome":"failed","error":"`) || strings.Count(out, "\n") != 1 ||
			!strings.HasPrefix(errs, "foresay: store txn: ") {
			t.Errorf("store txn %s: exit code %d, output\n%sand\n%s", line, code, out, errs)
		}
	}
	if _, out, _ := say("store", "txn", "--bad", "get", "a"); out != "" {
		t.Errorf("without --json the output is %s", out)
	}
}

func TestMain(m *testing.M) { os.Exit(heap.RunTests(m)) }
