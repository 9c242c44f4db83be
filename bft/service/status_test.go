package service

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/foresay/foresay/bft"
	"github.com/foresay/foresay/internal/wirefmt/wiretest"
)

func statusMessages() []statusMessage { return []statusMessage{ask{7}, answer{8, []byte("{}")}} }

func TestStatusCodec(t *testing.T) {
	codec := statusCodec()
	wiretest.Codec(t, codec, 0, statusMessages(), cmp.AllowUnexported(ask{}, answer{}))
	if _, err := codec.Append(nil, askAll{}); err == nil {
		t.Error("what is for the application only was encoded")
	}
}

func FuzzStatusCodec(f *testing.F) { wiretest.Fuzz(f, statusCodec(), statusMessages()) }

// TestCatchup: nobody is waited for that lies about how far it is.
func TestCatchup(t *testing.T) {
	at := func(role string, committed ...int) []Status {
		var out []Status
		for _, n := range committed {
			out = append(out, Status{Role: role, Committed: bft.Seq(n)})
		}
		return out
	}
	var c Catchup
	if c.Over(at(Unreachable, 0, 0, 0, 0)) || c.begun {
		t.Error("it is over though nobody answers")
	}
	if c.Over(at(Backup, 900, 7, 6, 5)) || c.goal != 7 {
		t.Errorf("the goal is %d, want 7", c.goal)
	}
	if c.Over(at(ViewChange, 900, 9, 9, 9)) {
		t.Error("it is over during a view change")
	}
	if !c.Over(at(Backup, 900, 9, 8, 7)) {
		t.Error("it is not over when all are there")
	}
}
