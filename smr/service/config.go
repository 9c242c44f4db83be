package service

import (
	"cmp"
	"fmt"
	"net"
	"regexp"
	"slices"
	"time"

	"github.com/foresay/foresay/internal/catalog"
	"github.com/foresay/foresay/internal/cli/configfile"
	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/smr"
	"github.com/foresay/foresay/transport"
)

// A Config is the file of one replica. Names of files in it are relative to its own directory.
type Config struct {
	Cluster  string `json:"cluster"`
	Protocol string `json:"protocol"`
	// Recovery is "" but in a group that Recover made. Hosts of different recoveries do not
	// talk.
	Recovery string `json:"recovery,omitempty"`
	Routing
	ID        protocol.ID `json:"id"`
	Listen    string      `json:"listen,omitempty"`
	Advertise string      `json:"advertise,omitempty"`
	Members   []Member    `json:"members"`
	Join      bool        `json:"join,omitempty"`
	Data      string      `json:"data"`
	TLS       *TLSFiles   `json:"tls,omitempty"`
	Insecure  bool        `json:"insecure,omitempty"`
	Metrics   string      `json:"metrics,omitempty"`
	Log       Log         `json:"log,omitzero"`

	RoundTrip     string      `json:"round_trip,omitempty"`
	Leader        protocol.ID `json:"leader,omitempty"`
	MaxBatch      int         `json:"max_batch,omitempty"`
	MaxPending    int         `json:"max_pending,omitempty"`
	SnapshotEvery int         `json:"snapshot_every,omitempty"`
	MaxSessions   int         `json:"max_sessions,omitempty"`

	MaxPendingBytes int `json:"max_pending_bytes,omitempty"`
	LogBytes        int `json:"log_bytes,omitempty"`
	MaxAnswerBytes  int `json:"max_answer_bytes,omitempty"`

	MaxUnderwayBytes int `json:"max_underway_bytes,omitempty"`

	// What waits to be sent to one member, and what was received by one group's replica and waits
	// for it. What comes to a full queue is lost, and sent again.
	SendQueueBytes    int `json:"send_queue_bytes,omitempty"`
	ReceiveQueueBytes int `json:"receive_queue_bytes,omitempty"`

	proto     smr.Protocol
	roundTrip time.Duration
}

// A Member is a replica of the group, and where it is.
type Member struct {
	ID      protocol.ID `json:"id"`
	Address string      `json:"address"`
}

// TLSFiles are the files of certificates that a Config or ClientConfig names.
type TLSFiles = configfile.TLSFiles

// Log is what a Config says about the log.
type Log = configfile.Log

// firstClient is the lowest ID of a client, as package transport has it.
const firstClient = protocol.ID(1 << 16)

// ReadConfig reads a replica's file. Its errors name the file, the line and the field.
func ReadConfig(name string) (*Config, error) {
	c := &Config{}
	if err := configfile.Read(name, c, c.check); err != nil {
		return nil, fmt.Errorf("config: %w", err)
	}
	c.beside(name)
	return c, nil
}

// beside makes names of files relative to the directory of the file that they stand in.
func (c *Config) beside(file string) {
	c.Data = configfile.Beside(file, c.Data)
	c.TLS = c.TLS.Beside(file)
}

// check validates the configuration and fills in what follows from it.
func (c *Config) check() error {
	group := group{Cluster: c.Cluster, Protocol: c.Protocol, Recovery: c.Recovery, Routing: c.Routing,
		Members: c.Members, TLS: c.TLS, Insecure: c.Insecure, RoundTrip: c.RoundTrip}
	if err := group.check(); err != nil {
		return err
	}
	c.proto, c.roundTrip = group.proto, group.roundTrip
	if err := checkID("id", c.ID); err != nil {
		return err
	}
	if c.Data == "" {
		return configfile.Fieldf("data", "it is missing: the directory that keeps the replica's log")
	}
	i := slices.IndexFunc(c.Members, func(m Member) bool { return m.ID == c.ID })
	if c.Listen == "" && i >= 0 {
		c.Listen = c.Members[i].Address
	}
	if err := configfile.CheckAddress("listen", c.Listen, true); err != nil {
		return err
	}
	if c.Advertise != "" {
		if err := configfile.CheckAddress("advertise", c.Advertise, false); err != nil {
			return err
		}
	}
	if host, _, err := net.SplitHostPort(c.Listen); c.Join && c.Advertise == "" &&
		(err != nil || host == "" || net.ParseIP(host).IsUnspecified()) {
		return configfile.Fieldf("advertise", "it is missing: others cannot reach a replica that is to be added at %q",
			c.Listen)
	}
	if c.Metrics != "" {
		if err := configfile.CheckAddress("metrics", c.Metrics, true); err != nil {
			return err
		}
	}
	switch {
	case !c.Join && i < 0:
		return configfile.Fieldf("members", "replica %d, which this file is for, is not among them; set \"join\" for one "+
			"that is to be added to a group", c.ID)
	case c.Leader != 0 && !slices.ContainsFunc(c.Members, func(m Member) bool { return m.ID == c.Leader }):
		return configfile.Fieldf("leader", "%d is no member", c.Leader)
	}
	if err := c.Log.Check(); err != nil {
		return err
	}
	for name, n := range map[string]int{
		"max_batch": c.MaxBatch, "max_pending": c.MaxPending, "snapshot_every": c.SnapshotEvery,
		"max_sessions":      c.MaxSessions,
		"max_pending_bytes": c.MaxPendingBytes, "log_bytes": c.LogBytes, "max_answer_bytes": c.MaxAnswerBytes,
		"max_underway_bytes": c.MaxUnderwayBytes, "send_queue_bytes": c.SendQueueBytes,
		"receive_queue_bytes": c.ReceiveQueueBytes,
	} {
		if n < 0 {
			return configfile.Fieldf(name, "%d is less than 0", n)
		}
	}
	underway := cmp.Or(c.MaxUnderwayBytes, smr.DefaultUnderwayBytes)
	queue := cmp.Or(c.SendQueueBytes, transport.DefaultQueueBytes)
	if underway > queue {
		return configfile.Fieldf("send_queue_bytes", "%d is less than max_underway_bytes, %d: a member that was away would "+
			"be sent more than the queue holds, over and over", queue, underway)
	}
	return nil
}

// A group is what replicas and clients must know of a service.
type group struct {
	Cluster   string
	Protocol  string
	Recovery  string
	Routing   Routing
	Members   []Member
	TLS       *TLSFiles
	Insecure  bool
	RoundTrip string

	proto     smr.Protocol
	roundTrip time.Duration
}

func (g *group) check() error {
	if g.Cluster == "" {
		return configfile.Fieldf("cluster", "it is missing: the name that all hosts of the cluster have in their files")
	}
	var err error
	if g.proto, err = catalog.Protocol(g.Protocol); err != nil {
		return configfile.Field("protocol", err)
	}
	if g.Recovery != "" && !recoveryForm.MatchString(g.Recovery) {
		return configfile.Fieldf("recovery", "%q is none that 'foresay smr recover' wrote, such as 2-5f3a09c1",
			g.Recovery)
	}
	if err := g.Routing.check(); err != nil {
		return err
	}
	if len(g.Members) == 0 {
		return configfile.Fieldf("members", "there are none")
	}
	seen, used := map[protocol.ID]bool{}, map[string]bool{}
	for i, m := range g.Members {
		at := fmt.Sprintf("members[%d]", i)
		if err := cmp.Or(checkID(at+".id", m.ID), configfile.CheckAddress(at+".address", m.Address, false)); err != nil {
			return err
		}
		if seen[m.ID] {
			return configfile.Fieldf(at+".id", "%d is there twice", m.ID)
		}
		if used[m.Address] {
			return configfile.Fieldf(at+".address", "%q is there twice", m.Address)
		}
		seen[m.ID], used[m.Address] = true, true
	}
	if g.RoundTrip != "" {
		if g.roundTrip, err = time.ParseDuration(g.RoundTrip); err != nil || g.roundTrip <= 0 {
			return configfile.Fieldf("round_trip", "%q is no duration such as 100ms", g.RoundTrip)
		}
	}
	return configfile.CheckTLS(g.TLS, g.Insecure)
}

// clusterName is what hosts compare when they connect. Those of different protocols would take each
// other's messages for their own, and those of a group that was recovered must not hear members
// that were declared dead.
func clusterName(cluster, protocolName, recovery string, routing Routing) string {
	what := protocolName
	if routing.count() > 1 {
		what += ", " + routing.String()
	}
	if recovery != "" {
		what += ", recovery " + recovery
	}
	return fmt.Sprintf("%s (%s)", cluster, what)
}

// recoveryForm is a number, from 2 on, and what tells apart two recoveries of the same group.
var recoveryForm = regexp.MustCompile(`^([1-9][0-9]{0,8})-[0-9a-f]{8}$`)

func checkID(field string, id protocol.ID) error {
	if id == 0 || id >= firstClient {
		return configfile.Fieldf(field, "%d is no replica's; want 1 to %d", id, firstClient-1)
	}
	return nil
}

// replica returns the configuration of the replica's node of a group.
func (c *Config) replica(group int, machine smr.StateMachine) smr.ReplicaConfig {
	cfg := smr.ReplicaConfig{
		ID: c.ID, Join: c.Join, Machine: machine, RoundTrip: c.roundTrip, Leader: c.leader(group), MaxBatch: c.MaxBatch,
		MaxPending:    c.MaxPending,
		SnapshotEvery: c.SnapshotEvery, MaxSessions: c.MaxSessions,
		MaxPendingBytes: c.MaxPendingBytes, LogBytes: c.LogBytes, MaxAnswerBytes: c.MaxAnswerBytes,
		MaxUnderwayBytes: c.MaxUnderwayBytes,
	}
	cfg.Members = smrMembers(c.Members)
	return cfg
}

// leader returns who should lead a group first. Several groups have their leaders spread over the
// members.
func (c *Config) leader(group int) protocol.ID {
	if c.count() == 1 || c.Join {
		return c.Leader
	}
	first := max(0, slices.IndexFunc(c.Members, func(m Member) bool { return m.ID == c.Leader }))
	return c.Members[(first+group)%len(c.Members)].ID
}

func smrMembers(members []Member) []smr.Member {
	out := make([]smr.Member, len(members))
	for i, m := range members {
		out[i] = smr.Member{ID: m.ID, Address: m.Address}
	}
	return out
}
