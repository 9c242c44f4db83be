package main

import (
	"errors"
	"flag"
	"net"
	"os/exec"
	"strconv"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

func TestMain(m *testing.M) {
	testscript.Main(waiting{m}, map[string]func(){"foresay": main})
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
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"exits": exits, "leader": leader, "serve": serve, "crash": crash, "stop": stop, "watching": watching,
			"losenewest": loseNewest,
			"machine":    machine, "halt": halt,
		},
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
