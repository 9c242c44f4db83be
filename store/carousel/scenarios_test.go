package carousel

import (
	"fmt"
	"strings"
	"testing"

	"github.com/foresay/foresay/internal/msgtext"
	"github.com/foresay/foresay/sim/transcript"
	"github.com/foresay/foresay/store"
	"github.com/foresay/foresay/store/kit"
	"github.com/foresay/foresay/store/storetest/talk"
)

// TestScenarios has each mode talk: testdata/scenarios, which is there to be read.
func TestScenarios(t *testing.T) {
	for _, mode := range []variant{basicMode, fastMode, directMode} {
		t.Run(string(mode), func(t *testing.T) {
			family := func() transcript.Family[store.Message] { return talk.New(in(mode), written) }
			transcript.Play(t, "testdata/scenarios/"+string(mode), family)
		})
	}
}

// written writes what is the protocol's own.
func written(all msgtext.Format, v any) (string, bool) {
	switch v := v.(type) {
	case kit.Grouped: // what the group says is a message like any other
		return all.Of(v.Msg), true
	case partID:
		return fmt.Sprintf("%s.%d", all.Of(v.ID), v.Step), true
	case partRef:
		return fmt.Sprintf("%d.%d", v.Shard, v.Step), true
	case ballot:
		if !v.Yes {
			return "no: " + v.Reason.String(), true
		}
		return "yes" + strings.TrimPrefix(all.Of(v.footprint), "Footprint"), true
	case []byte: // an entry of the group's log
		if m, err := codec().Decode(v); err == nil {
			return all.Of(m), true
		}
	}
	return "", false
}
