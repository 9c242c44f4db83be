package mvcc

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/foresay/foresay/clock"
	"github.com/foresay/foresay/internal/wirefmt/wiretest"
	"github.com/foresay/foresay/store"
	"github.com/google/go-cmp/cmp"
)

// TestReads plays random reads against a list of all that were answered. Now and then another node
// takes over, which knows the ceiling that is on record and nothing else.
func TestReads(t *testing.T) {
	for seed := range uint64(500) {
		if err := playReads(rand.New(rand.NewPCG(seed, 2))); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
	}
}

func playReads(rnd *rand.Rand) error {
	const maxKeys = 5
	answered := map[store.Key]clock.Stamp{} // the latest read of each key
	record := clock.Stamp(0)                // the ceiling there
	ahead := time.Duration(rnd.IntN(20))
	r, err := NewReads(record, ahead, maxKeys)
	if err != nil {
		return err
	}
	var asked []clock.Stamp // under way
	now := clock.Stamp(0)
	for range 300 {
		now += clock.Stamp(rnd.IntN(4))
		key := store.Key(fmt.Sprint(rnd.IntN(12)))
		switch rnd.IntN(8) {
		case 0: // another node takes over
			if r, err = NewReads(record, ahead, maxKeys); err != nil {
				return err
			}
			asked = nil
		case 1:
			if len(asked) > 0 {
				record = max(record, asked[0])
				r.Recorded(asked[0])
				asked = asked[1:]
			}
		case 2:
			if rnd.IntN(4) == 0 {
				r.Failed()
				asked = nil
			}
		default:
			at := now + clock.Stamp(rnd.IntN(10)) - 5
			above := r.Above(key)
			if r.Serve(key, at) {
				if at > record {
					return fmt.Errorf("a read at %v is answered, the ceiling on record is %v", at, record)
				}
				answered[key] = max(answered[key], at)
				if got := r.Above(key); got < above {
					return fmt.Errorf("writes of %q were above %v, and are above %v", key, above, got)
				}
			} else if at <= r.Ceiling() {
				return fmt.Errorf("a read at %v is not answered, the ceiling is %v", at, r.Ceiling())
			} else if c, ok := r.Raise(at); ok {
				if want := at + clock.Stamp(ahead); c != want {
					return fmt.Errorf("for a read at %v the ceiling %v is asked for, want %v", at, c, want)
				}
				asked = append(asked, c)
			} else if len(asked) == 0 || asked[len(asked)-1] < at {
				return fmt.Errorf("a read at %v waits for nothing: %v", at, asked)
			}
		}
		for key, at := range answered {
			if above := r.Above(key); above < at || above > max(record, r.Ceiling()) {
				return fmt.Errorf("%q was read at %v, and writes are above %v, with the ceiling %v", key, at, above, record)
			}
		}
		if r.Len() > maxKeys {
			return fmt.Errorf("%d keys are remembered", r.Len())
		}
		if err := r.Check(); err != nil {
			return err
		}
	}
	return nil
}

// TestReadsForgetHalf: beyond the limit of keys the older reads are forgotten, so that writes of
// other keys are above them as well; those of the keys that were read last are as before.
func TestReadsForgetHalf(t *testing.T) {
	r, err := NewReads(0, 0, 4)
	if err != nil {
		t.Fatal(err)
	}
	r.Recorded(100)
	for i := range 4 {
		r.Serve(store.Key(fmt.Sprint(i)), clock.Stamp(10*(i+1)))
	}
	if above := r.Above("never read"); above != 0 {
		t.Errorf("before, a key that was never read is written above %v", above)
	}
	r.Serve("4", 50)
	for key, want := range map[store.Key]clock.Stamp{"0": 30, "2": 30, "3": 40, "4": 50, "never read": 30} {
		if got := r.Above(key); got != want {
			t.Errorf("%q is written above %v, want %v", key, got, want)
		}
	}
}

func TestReadsSayWhatIsWrong(t *testing.T) {
	for _, keys := range []int{0, -1} {
		if _, err := NewReads(0, 0, keys); err == nil {
			t.Errorf("there are reads with %d keys", keys)
		}
	}
	_, err := NewReads(0, -time.Second, 1)
	if want := "mvcc: reads with ceilings -1s ahead and 1 keys"; err == nil || err.Error() != want {
		t.Errorf("error %v, want %s", err, want)
	}
}

// TestLayouts tests what a store has on disk.
func TestLayouts(t *testing.T) {
	all := cmp.AllowUnexported(contents{})
	wiretest.Layouts(t,
		wiretest.Sample("value", contentsLayout, contents{true, []byte("value")}, all),
		wiretest.Sample("deletion", contentsLayout, contents{}, all),
		wiretest.Sample("timestamp", stampLayout, 300))
}
