package smrtest

import (
	"fmt"
	"strings"
	"time"

	"github.com/foresay/foresay/history"
	"github.com/foresay/foresay/smr"
	"github.com/foresay/foresay/smr/smrsim"
	"github.com/foresay/foresay/wan"
)

// Waits has a client at each of the sites write a key, alone, some seconds after the group at a
// place of package wan has begun, and tells how long each waits until its command is executed:
// "TX 109ms, WA 67ms". The first replica leads, where one does.
func Waits(p smr.Protocol, place string, sites ...wan.Site) (string, error) {
	at, err := wan.Preset(place)
	if err != nil {
		return "", err
	}
	group, err := smrsim.New(smrsim.Config{
		Protocol: p, Place: at, Clients: sites,
		Replica: func(c *smr.ReplicaConfig) { c.Machine, c.Leader = newMachine(func(int, commandID) {}), 1 },
	})
	if err != nil {
		return "", err
	}
	if err := group.Pass(5 * time.Second); err != nil { // to elect, and to measure
		return "", err
	}
	put := command{id: 1, KVInput: history.KVInput{Kind: history.KVPut, Key: "city", Value: "Oslo"}}
	var waits []string
	for _, client := range group.Clients {
		group.Make(client, smr.Call{Kind: smr.Execute, Command: put.encode()},
			func(a smrsim.Answer) { waits = append(waits, fmt.Sprintf("%s %v", a.Site, a.Took)) })
		if err := group.Pass(5 * time.Second); err != nil {
			return "", err
		}
	}
	return strings.Join(waits, ", "), nil
}
