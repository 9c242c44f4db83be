package storecmd

import (
	"bytes"
	"testing"
	"time"

	"github.com/foresay/foresay/internal/cli/command"
	"github.com/foresay/foresay/store/storeservice"
)

// TestWhatIsCopiedIsShown: who waits for a site that copies is told how much that is and how fast
// it goes, in a line every ten seconds.
func TestWhatIsCopiedIsShown(t *testing.T) {
	status := func(bytes uint64) []storeservice.Status {
		shard := func(state string) storeservice.ShardStatus {
			return storeservice.ShardStatus{State: state, CopiedValues: bytes / 100, CopiedBytes: bytes, CopiedServers: 1,
				NeededServers: 2}
		}
		return []storeservice.Status{
			{Machine: "a", Shards: []storeservice.ShardStatus{shard(storeservice.Admitted)}},
			{Machine: "d", Shards: []storeservice.ShardStatus{shard(storeservice.Syncing), shard(storeservice.Syncing)}},
		}
	}
	var out bytes.Buffer
	shown := copyShown{bar: command.NewProgress(&out)}
	now := time.Now()
	for i := range uint64(24) { // seconds
		shown.show(status(1e6*i), now.Add(time.Duration(i)*time.Second))
	}
	shown.show(nil, now.Add(time.Hour))
	want := `d: copying, 2 of 4 servers done, 0 values, 0.0 MB
d: copying, 2 of 4 servers done, 200000 values, 20.0 MB, 2.0 MB/s
d: copying, 2 of 4 servers done, 400000 values, 40.0 MB, 2.0 MB/s
`
	if out.String() != want {
		t.Errorf("it says\n%swant\n%s", &out, want)
	}
}
