package main

import (
	"bytes"
	"os/exec"
	"syscall"

	"github.com/rogpeppe/go-internal/testscript"
)

// startMachine starts the process of a store's machine.
func startMachine(dir, config string) (*replica, error) {
	r := &replica{cmd: exec.Command("foresay", "store", "serve", "--config", config)}
	r.cmd.Dir, r.cmd.Stderr = dir, &r.log
	return r, r.cmd.Start()
}

// machine starts the machine of a file in the background.
func machine(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: machine machinefile")
	}
	r, err := startMachine(ts.MkAbs("."), args[0])
	ts.Check(err)
	keep(ts, args[0], r)
}

// halt ends the machine of a file, gracefully.
func halt(ts *testscript.TestScript, neg bool, args []string) {
	r := taken(ts, neg, args)
	if err := r.end(syscall.SIGTERM); err != nil || !bytes.Contains(r.log.Bytes(), []byte("machine stopped")) {
		ts.Fatalf("%s: %v\n%s", args[0], err, r.log.String())
	}
}
