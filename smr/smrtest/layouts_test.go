package smrtest

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/foresay/foresay/history"
	"github.com/foresay/foresay/internal/wirefmt/wiretest"
)

// TestLayouts tests what the machine of the tests says.
func TestLayouts(t *testing.T) {
	there := history.KVState{Value: "v", Found: true}
	wiretest.Layouts(t,
		wiretest.Sample("command", commandLayout, command{id: 300, KVInput: history.KVInput{
			Kind: history.KVCAS, Key: "k", Value: "w", Expect: there,
		}}, cmp.AllowUnexported(command{})),
		wiretest.Sample("output", outputLayout, history.KVOutput{State: there, Swapped: true}),
		wiretest.Sample("contents", contentsLayout, contents{300, map[string]string{"a": "1", "b": ""}},
			cmp.AllowUnexported(contents{})),
		wiretest.Sample("changes", changesLayout, changes{300, map[string]history.KVState{"a": there, "b": {}}},
			cmp.AllowUnexported(changes{})))
}
