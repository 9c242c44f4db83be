package bft

import "testing"

// counting counts what is checked, of which one signature is right.
type counting struct{ checked int }

func (c *counting) Verify(_ Key, message, signature []byte) bool {
	c.checked++
	return string(message)+"!" == string(signature)
}

// TestProvenOnce: what was right is not checked again for a while, and what differs in anything, or
// was wrong, is.
func TestProvenOnce(t *testing.T) {
	var c counting
	p := &proven{&c, newMemory()}
	verify := func(key Key, message, signature string, right bool, checked int) {
		t.Helper()
		if got := p.Verify(key, []byte(message), []byte(signature)); got != right || c.checked != checked {
			t.Errorf("%q, %q: %v after %d checks, want %v after %d", message, signature, got, c.checked, right, checked)
		}
	}
	verify(Key{1}, "m", "m!", true, 1)
	verify(Key{1}, "m", "m!", true, 1)
	verify(Key{2}, "m", "m!", true, 2)
	verify(Key{1}, "m", "m?", false, 3)
	verify(Key{1}, "m", "m?", false, 4)
	verify(Key{1}, "m!", "m", false, 5)
	verify(Key{1}, "", "!", true, 6)
	verify(Key{1}, "!", "", false, 7) // the same bytes, divided otherwise
	for i := range 2 * remembered {
		m := string([]byte{byte(i), byte(i >> 8), byte(i >> 16)})
		p.Verify(Key{3}, []byte(m), []byte(m+"!"))
	}
	if n := len(p.young) + len(p.old); n > 2*remembered {
		t.Errorf("%d are remembered", n)
	}
	before := c.checked
	verify(Key{1}, "m", "m!", true, before+1) // it was forgotten
}
