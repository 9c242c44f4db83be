package epaxos

import (
	"testing"

	"github.com/foresay/foresay/smr/smrtest"
)

// TestWhatOthersRelyOnIsOnDisk looks at the messages of replicas that must not be forgotten.
func TestWhatOthersRelyOnIsOnDisk(t *testing.T) {
	smrtest.FromDisk(t, Protocol(), preAccept{}, preAccepted{}, accepted{}, recovered{}, validated{}, settled{})
}
