package service

import (
	"fmt"
	"time"

	"github.com/foresay/foresay/internal/catalog"
	"github.com/foresay/foresay/internal/cli/configfile"
	"github.com/foresay/foresay/smr"
)

// A ClientConfig is the file of clients. Names of files in it are relative to its own directory.
type ClientConfig struct {
	Cluster  string `json:"cluster"`
	Protocol string `json:"protocol"`
	Recovery string `json:"recovery,omitempty"` // as in Config
	Routing
	Members   []Member  `json:"members"`
	TLS       *TLSFiles `json:"tls,omitempty"`
	Insecure  bool      `json:"insecure,omitempty"`
	RoundTrip string    `json:"round_trip,omitempty"`

	proto     smr.Protocol
	roundTrip time.Duration
}

// ReadClientConfig reads a client's file. Its errors name the file, the line and the field.
func ReadClientConfig(name string) (*ClientConfig, error) {
	c := &ClientConfig{}
	if err := configfile.Read(name, c, c.Check); err != nil {
		return nil, fmt.Errorf("config: %w", err)
	}
	c.TLS = c.TLS.Beside(name)
	return c, nil
}

// Check validates a configuration that was not read from a file. Dial does so too.
func (c *ClientConfig) Check() error {
	group := group{Cluster: c.Cluster, Protocol: c.Protocol, Recovery: c.Recovery, Routing: c.Routing,
		Members: c.Members, TLS: c.TLS, Insecure: c.Insecure, RoundTrip: c.RoundTrip}
	err := group.check()
	c.proto, c.roundTrip = group.proto, group.roundTrip
	return err
}

// Example returns a replica's file, with comments.
func Example() string {
	return fmt.Sprintf(example, catalog.Names())
}

const example = `// A replica's file, for 'foresay smr serve --config FILE'. It is JSON; lines that begin with // are comments.
// Names of files and directories are relative to this file. 'foresay smr init' writes such files, with certificates.
{
  // The same in the files of all replicas and clients. Hosts of different clusters do not talk.
  "cluster": "shop",
  // One of %v.
  // The same everywhere, else hosts do not talk.
  "protocol": "raft",
  // Only in a group that 'foresay smr recover' made, which writes it; the same everywhere.
  // "recovery": "2-5f3a09c1",
  // Groups, among which the keys are divided; the same everywhere, and for good. Left out: one. With "groups" alone a hash of the key chooses.
  // With "splits" each has a range: here keys before "h", those from "h" on, and those from "q" on.
  // "groups": 3,
  // "splits": ["h", "q"],
  // Who this replica is. No two have the same ID, and one that lost its disk comes back with another.
  "id": 1,
  // Where it listens, for other replicas and for clients. Left out: its address in members.
  "listen": "0.0.0.0:7400",
  // Where others reach it, if that is not where it listens: for a replica that is to be added. The others' is in members.
  "advertise": "10.0.0.1:7400",
  // The replicas that the group begins with, and where others reach them. Once the group has begun, it knows better who
  // belongs to it; addresses that stand here go before those that it knows.
  "members": [
    {"id": 1, "address": "10.0.0.1:7400"},
    {"id": 2, "address": "10.0.0.2:7400"},
    {"id": 3, "address": "10.0.0.3:7400"}
  ],
  // True for a replica that is to be added to a group that exists; members are then those to ask.
  "join": false,
  // The directory of its log. What it promised is there: never copy it, never start it twice.
  "data": "replica-1",
  // Certificates of one authority, which is this cluster's alone. That of replica 1 has the DNS name replica-1, that of clients
  // the name client. Without tls, "insecure": true is needed, and whoever reaches a host is whoever it says.
  "tls": {"ca": "ca.pem", "cert": "replica-1.pem", "key": "replica-1-key.pem"},
  // Where /metrics (Prometheus' text) and /ready are served by HTTP. Left out: nowhere.
  "metrics": "127.0.0.1:7480",
  "log": {"level": "info", "format": "text"},

  // About the longest round-trip time between two replicas: timeouts follow from it. Left out: 100ms.
  "round_trip": "100ms",
  // Who should lead first. Left out: whoever comes first.
  "leader": 1,
  // Commands that are agreed on at once, at most; commands that are taken and not answered; commands between two
  // snapshots; sessions of clients. 0 or left out: 1024, 65536, 100000, 10000.
  // In bytes: commands that are taken and not answered; commands between two snapshots; results that are kept until
  // their clients acknowledge them; what is sent to a replica that has not acknowledged it; what waits to be sent to
  // one replica; what was received for one group and waits. 0 or left out: 64, 32, 64, 6, 16 and 64 MiB.
  "max_batch": 0,
  "max_pending": 0,
  "snapshot_every": 0,
  "max_sessions": 0,
  "max_pending_bytes": 0,
  "log_bytes": 0,
  "max_answer_bytes": 0,
  "max_underway_bytes": 0,
  "send_queue_bytes": 0,
  "receive_queue_bytes": 0
}
`
