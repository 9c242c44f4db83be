package service

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/foresay/foresay/internal/cli/configfile"
)

func TestExampleCanBeRead(t *testing.T) {
	c := &Config{}
	if err := configfile.Parse("example", []byte(Example()), c, c.check); err != nil {
		t.Fatal(err)
	}
	if c.ID != 1 || len(c.Members) != 3 || c.roundTrip != 100*time.Millisecond || c.TLS == nil ||
		c.Listen != "0.0.0.0:7400" {
		t.Errorf("the example means %+v", c)
	}
	c.beside("/etc/foresay/one.json")
	if c.Data != "/etc/foresay/replica-1" || c.TLS.CA != "/etc/foresay/ca.pem" {
		t.Errorf("the files of /etc/foresay/one.json are %q and %q", c.Data, c.TLS.CA)
	}
}

// TestBoundsAreTheReplicas: what the file says of bounds is what the replica's node is made from.
func TestBoundsAreTheReplicas(t *testing.T) {
	c := &Config{}
	text := `{"cluster": "c", "protocol": "raft", "id": 1, "data": "d", "insecure": true,
		"members": [{"id": 1, "address": "h:1"}], "max_batch": 1, "max_pending": 2, "snapshot_every": 3, "max_sessions": 4,
		"max_pending_bytes": 5, "log_bytes": 6, "max_answer_bytes": 7, "max_underway_bytes": 8,
		"send_queue_bytes": 9, "receive_queue_bytes": 10}`
	if err := configfile.Parse("f", []byte(text), c, c.check); err != nil {
		t.Fatal(err)
	}
	r := c.replica(0, nil)
	got := []int{r.MaxBatch, r.MaxPending, r.SnapshotEvery, r.MaxSessions, r.MaxPendingBytes, r.LogBytes, r.MaxAnswerBytes,
		r.MaxUnderwayBytes, c.network().QueueBytes, c.ReceiveQueueBytes}
	if want := []int{1, 2, 3, 4, 5, 6, 7, 8, 9, 10}; !slices.Equal(got, want) {
		t.Errorf("the replica has the bounds %v, want %v", got, want)
	}
}

func TestMistakesAreTold(t *testing.T) {
	const start = `{"cluster": "c", "protocol": "raft", "id": 1, "data": "d", "insecure": true, "members": [{"id": 1, "address": "h:1"}]`
	for _, tc := range []struct{ text, want string }{
		{`{"cluster": ""}`, `f:1: cluster: it is missing`},
		{`[]`, `f:1: want an object, not a list`},
		{`{"cluster": "c"}{}`, `f:1: `},
		{``, `f:1: the file ends too early`},
		{`{"cluster"`, `f:1: the file ends too early`},
		{start + `, "id": 2}`, `f:1: id: it is there already, in line 1`},
		{start + ",\n\"max_batch\": -1}", `f:2: max_batch: -1 is less than 0`},
		{start + ",\n\"max_underway_bytes\": -1}", `f:2: max_underway_bytes: -1 is less than 0`},
		{start + ",\n\"send_queue_bytes\": -1}", `f:2: send_queue_bytes: -1 is less than 0`},
		{
			start + ",\n\"send_queue_bytes\": 4194304}",
			`f:2: send_queue_bytes: 4194304 is less than max_underway_bytes, 6291456`,
		},
		{
			start + ",\n\"max_underway_bytes\": 33554432}",
			`f: send_queue_bytes: 16777216 is less than max_underway_bytes, 33554432`,
		},
		{start + ",\n\"receive_queue_bytes\": -1}", `f:2: receive_queue_bytes: -1 is less than 0`},
		{start + ",\n\"round_trip\": \"soon\"}", `f:2: round_trip: "soon" is no duration such as 100ms`},
		{start + ",\n\"leader\": 4}", `f:2: leader: 4 is no member`},
		{start + ",\n\"log\": {\n\"level\": \"loud\"}}", `f:3: log.level: "loud" is not one of`},
		{start + ",\n\"log\": {\n\"colour\": 1}}", `f:3: log.colour: there is no such field`},
		{start + ",\n\"metrics\": \"9090\"}", `f:2: metrics: "9090": missing port in address`},
		{start + ",\n\"tls\": {\"ca\": \"a\"}}", `f:1: insecure: it excludes tls`},
		{`{"cluster": "c", "protocol": "raft", "id": 70000, "data": "d", "insecure": true, "members": [{"id": 1, "address": "h:1"}]}`, `f:1: id: 70000 is no replica's`},
		{`{"cluster": "c", "protocol": "raft", "id": 1, "data": "d", "insecure": true, "members": []}`,
			`f:1: members: there are none`},
		{
			`{"cluster": "c", "protocol": "raft", "id": 2, "join": true, "listen": "0.0.0.0:1", "data": "d", "insecure": true, "members": [{"id": 1, "address": "h:1"}]}`,
			`f: advertise: it is missing: others cannot reach a replica that is to be added at "0.0.0.0:1"`,
		},
		{
			"{\"cluster\": \"c\", \"protocol\": \"raft\", \"id\": 1, \"data\": \"d\", \"insecure\": true, \"members\": " +
				"[\n{\"id\": 1, \"address\": \"h:1\"},\n{\"id\": 1, \"address\": \"h:2\"}]}",
			`f:3: members[1].id: 1 is there twice`,
		},
		{
			"{\"cluster\": \"c\", \"protocol\": \"raft\", \"id\": 1, \"data\": \"d\", \"insecure\": true, \"members\": " +
				"[\n{\"id\": 1, \"address\": \"h:1\"},\n{\"id\": 2, \"address\": \"h:1\"}]}",
			`f:3: members[1].address: "h:1" is there twice`,
		},
	} {
		c := &Config{}
		err := configfile.Parse("f", []byte(tc.text), c, c.check)
		if err == nil || !strings.HasPrefix(err.Error(), tc.want) {
			t.Errorf("%s\ngives the error %v, want one that begins with %q", tc.text, err, tc.want)
		}
	}
}

// FuzzConfig: whatever a file holds, reading it ends, and an error names a line of it.
func FuzzConfig(f *testing.F) {
	f.Add(Example())
	f.Add(`{"members": [{"id": 1}, {"address": ""}], "log": {}}`)
	f.Fuzz(func(t *testing.T, text string) {
		c := &Config{}
		err := configfile.Parse("f", []byte(text), c, c.check)
		if at, ok := errors.AsType[*configfile.FileError](err); err != nil &&
			(!ok || at.Line < 0 || at.Line > 1+strings.Count(text, "\n")) {
			t.Errorf("the error %v of a file of %d lines", err, 1+strings.Count(text, "\n"))
		}
	})
}
