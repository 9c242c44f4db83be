package domino

import (
	"testing"
	"time"

	"github.com/foresay/foresay/smr/smrtest"
)

// TestWhatOthersRelyOnIsOnDisk looks at the messages of replicas that must not be forgotten.
func TestWhatOthersRelyOnIsOnDisk(t *testing.T) {
	o := Options{Direct: true, AllLearn: true, Arrival: true, Probe: 50 * time.Millisecond}
	smrtest.FromDisk(t, New("domino-direct", "", o), vote{}, news{}, promise{}, revoked{}, placed{})
}
