package control

import (
	"testing"
	"time"
)

const ms = time.Millisecond

func mustControl(t testing.TB, cfg Config) *Control {
	t.Helper()
	c, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return c
}
