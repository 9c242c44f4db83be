package main

import (
	"bytes"
	"errors"
	"flag"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

func TestMain(m *testing.M) {
	testscript.Main(waiting{m}, map[string]func(){"foresay": main, "bft-traitor": traitor})
}

// waiting runs the tests, four scripts at a time unless -parallel says otherwise: they mostly wait.
type waiting struct{ *testing.M }

func (w waiting) Run() int {
	flag.Parse()
	said := false
	flag.Visit(func(f *flag.Flag) { said = said || f.Name == "test.parallel" })
	if !said {
		if err := flag.Set("test.parallel", "4"); err != nil {
			panic(err)
		}
	}
	return w.M.Run()
}

func TestScripts(t *testing.T) {
	ports := newPorts(t)
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata",
		RequireExplicitExec: true,
		Cmds:                commands(),
		Setup: func(env *testscript.Env) error {
			env.Values[replicasKey{}] = map[string]*replica{}
			port := ports.take()
			env.Setenv("PORT", strconv.Itoa(port)) // of a script's first replica
			env.Setenv("SPARE", strconv.Itoa(port+portsPerScript-2))
			env.Setenv("JOIN", net.JoinHostPort("127.0.0.1", strconv.Itoa(port+portsPerScript-1)))
			return nil
		},
	})
}

// commands are those of scripts, beside testscript's own.
func commands() map[string]func(*testscript.TestScript, bool, []string) {
	return map[string]func(*testscript.TestScript, bool, []string){
		"exits": exits, "leader": leader, "serve": serve, "crash": crash, "terminate": terminate, "watching": watching,
		"losenewest": loseNewest, "machine": machine, "halt": halt, "fill": fill, "run": run,
	}
}

// TestCommands: scripts get the commands that this package has. Those of testscript itself go
// before others of the same name, and one of them ends the script as if all was well.
func TestCommands(t *testing.T) {
	for name := range commands() {
		script := filepath.Join(t.TempDir(), name+".txtar")
		if err := os.WriteFile(script, []byte(name+"\n"), 0o666); err != nil {
			t.Fatal(err)
		}
		called := false
		t.Run(name, func(t *testing.T) {
			testscript.Run(t, testscript.Params{Files: []string{script},
				Cmds: map[string]func(*testscript.TestScript, bool, []string){
					name: func(*testscript.TestScript, bool, []string) { called = true },
				}})
		})
		if !called {
			t.Errorf("%s is a command of testscript", name)
		}
	}
}

// exits runs a command that must end with the exit code given first.
func exits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits code command [args...]")
	}
	err := ts.Exec(args[1], args[2:]...)
	code := 0
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
		code = exit.ExitCode()
	} else {
		ts.Check(err)
	}
	if strconv.Itoa(code) != args[0] {
		ts.Fatalf("exit code %d, want %s", code, args[0])
	}
}

// run runs the last command that a file has, which another command has shown.
func run(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: run file")
	}
	lines := strings.Split(strings.TrimSpace(ts.ReadFile(args[0])), "\n")
	words := strings.Fields(lines[len(lines)-1])
	ts.Check(ts.Exec(words[0], words[1:]...))
}

// fill writes a file of so many bytes.
func fill(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: fill file bytes")
	}
	n, err := strconv.Atoi(args[1])
	ts.Check(err)
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), bytes.Repeat([]byte("x"), n), 0o666))
}
