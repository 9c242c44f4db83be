package planning

import "testing"

// TestVerdict: a command fails if something is off, and names the first five.
func TestVerdict(t *testing.T) {
	if err := verdict("smr plan", nil); err != nil {
		t.Errorf("nothing is off: %v", err)
	}
	const said = "smr plan: --check: what was measured is not what the model says: "
	for _, c := range []struct {
		off  []string
		want string
	}{
		{[]string{"a"}, "a"},
		{[]string{"a", "b", "c", "d", "e"}, "a; b; c; d; e"},
		{[]string{"a", "b", "c", "d", "e", "f", "g"}, "a; b; c; d; e; and 2 more"},
	} {
		if err := verdict("smr plan", c.off); err == nil || err.Error() != said+c.want {
			t.Errorf("%v: %v, want %s", c.off, err, said+c.want)
		}
	}
}
