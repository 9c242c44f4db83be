package simcmd

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/foresay/foresay/bft"
	"github.com/foresay/foresay/bft/bfttest"
	"github.com/foresay/foresay/internal/catalog"
	"github.com/foresay/foresay/internal/cli/command"
	"github.com/foresay/foresay/sim"
)

// byzantineVerdict is what came of one seed of a protocol whose replicas may lie.
type byzantineVerdict struct {
	Protocol     string            `json:"protocol"`
	Seed         uint64            `json:"seed"`
	Faults       string            `json:"faults"`
	Traitors     map[string]string `json:"traitors"` // strategies by the IDs of replicas and clients
	Hash         string            `json:"hash"`
	Confirmed    int               `json:"confirmed"`
	Reads        int               `json:"reads"`
	FirstReplies int               `json:"first_replies"`
	Right        int               `json:"right"`
	Aborted      int               `json:"aborted"`
	Retried      int               `json:"retried"`
	View         bft.View          `json:"view"`
	Crashes      int               `json:"crashes"`
	Transfers    int               `json:"transfers"`
	OK           bool              `json:"ok"`
	Error        string            `json:"error,omitempty"`
	Replay       string            `json:"replay"`
	Explained    string            `json:"explained,omitempty"`
}

func (v *byzantineVerdict) write(w io.Writer) error {
	word := "all promises kept"
	if !v.OK {
		word = "BROKEN: " + v.Error
	}
	_, err := fmt.Fprintf(w, "%s: seed %d, hash %s, %s: %d confirmed (%d reads), %d of %d first replies right, "+
		"%d aborted, %d retried, %s, view %d: %s\n%s", v.Protocol, v.Seed, v.Hash, v.Faults, v.Confirmed, v.Reads, v.Right,
		v.FirstReplies, v.Aborted, v.Retried, command.Counted(v.Transfers, "transfer"), v.View, word, v.Explained)
	return err
}

// firstClient is the ID from which on --traitors means clients.
const firstClient = 70_000

// parseTraitors takes --traitors: the strategies of replicas by their IDs, from 1 on, and those of
// clients by theirs.
func parseTraitors(text string, proto bft.Protocol, replicas int) (map[int]string, error) {
	out := map[int]string{}
	if text == "" {
		return out, nil
	}
	for _, one := range strings.Split(text, ",") {
		name, strategy, ok := strings.Cut(one, "=")
		if !ok {
			return nil, command.Usagef("sim run: --traitors: %q is not ID=STRATEGY", one)
		}
		if id, err := strconv.Atoi(name); err == nil && id >= firstClient {
			if !slices.Contains(proto.ClientStrategies, strategy) {
				return nil, command.Usagef("sim run: --traitors: clients have no strategy %q; want one of %s", strategy,
					command.Joined(proto.ClientStrategies))
			}
			out[id] = strategy
			continue
		}
		id, err := command.ReplicaID(name)
		switch {
		case err != nil || int(id) > replicas:
			return nil, command.Usagef("sim run: --traitors: %q is no replica's ID; want 1 to %d, or a client's from %d on",
				name, replicas, firstClient)
		case !slices.Contains(proto.Strategies, strategy):
			return nil, command.Usagef("sim run: --traitors: there is no strategy %q; want one of %s", strategy,
				command.Joined(proto.Strategies))
		}
		out[int(id)] = strategy
	}
	return out, nil
}

// runByzantine plays seeds of a protocol of package bft's family.
func (p *program) runByzantine(ctx context.Context, f simFlags) error {
	proto, err := catalog.Byzantine(f.protocol)
	if err != nil {
		return command.Usagef("sim run: --protocol: %w", err)
	}
	if f.replicas == 0 {
		f.replicas = 4
	}
	switch {
	case f.replicas < 4:
		return command.Usagef("sim run: --replicas is %d; %s wants 4 or more", f.replicas, proto.Name)
	case f.trace != "":
		return command.Usagef("sim run: --trace is not for %s; --explain shows the last messages", proto.Name)
	case f.badClients < 0:
		return command.Usagef("sim run: --bad-clients is %d; want 0 or more", f.badClients)
	}
	traitors, err := parseTraitors(f.traitors, proto, f.replicas)
	if err != nil {
		return err
	}
	broken, all := 0, []byzantineVerdict{}
	for i := range f.seeds {
		if ctx.Err() != nil {
			return fmt.Errorf("sim run: interrupted after %d of %d seeds", i, f.seeds)
		}
		v, err := f.playByzantine(proto, f.seed+uint64(i), traitors)
		if err != nil {
			return err
		}
		if !v.OK {
			broken++
		}
		if all = append(all, v); !f.json {
			if err := v.write(p.Out); err != nil {
				return err
			}
		}
	}
	if f.json {
		if err := p.WriteJSON(all); err != nil {
			return err
		}
	}
	if broken > 0 {
		return fmt.Errorf("sim run: %d of %d seeds broke a promise", broken, f.seeds)
	}
	return nil
}

func (f *simFlags) playByzantine(proto bft.Protocol, seed uint64, traitors map[int]string) (byzantineVerdict, error) {
	faults := sim.Swarm(seed, sim.AllFaults&^sim.LostDisk) // a lost disk is a traitor's: amnesia
	if f.faults != command.SwarmName {
		var err error
		if faults, err = sim.ParseFaults(f.faults); err != nil {
			return byzantineVerdict{}, command.Usagef("sim run: --faults: %w", err)
		}
	}
	var told bytes.Buffer
	sc := bfttest.Scenario{Protocol: proto, Seed: seed, Faults: faults, Replicas: f.replicas, Clients: f.clients,
		For: f.duration, BadClients: f.badClients, Traitors: map[int]bft.Traitor{}, Replay: f.replayByzantine(proto, seed)}
	if f.explain {
		sc.Explain = &told
	}
	named := map[string]string{}
	for _, id := range slices.Sorted(maps.Keys(traitors)) {
		if id >= firstClient {
			sc.Bad = append(sc.Bad, traitors[id])
		} else {
			sc.Traitors[id-1] = proto.Traitor(traitors[id])
		}
		named[fmt.Sprint(id)] = traitors[id]
	}
	r, err := bfttest.Play(sc)
	v := byzantineVerdict{
		Protocol: proto.Name, Seed: seed, Faults: faults.String(), Traitors: named, Hash: fmt.Sprintf("%016x", r.Hash),
		Confirmed: r.Confirmed, Reads: r.Reads, FirstReplies: r.Guesses, Right: r.Right, Aborted: r.Aborted,
		Retried: r.Retried, View: r.View, Crashes: r.Crashes, Transfers: r.Transfers, OK: err == nil, Replay: sc.Replay,
		Explained: told.String(),
	}
	if err != nil {
		v.Error = err.Error()
	}
	return v, nil
}

// replayByzantine returns the command that plays the same again.
func (f *simFlags) replayByzantine(proto bft.Protocol, seed uint64) string {
	s := fmt.Sprintf("go run ./cmd/foresay sim run --protocol %s --seed %d", proto.Name, seed)
	if f.faults != command.SwarmName {
		s += " --faults " + f.faults
	}
	if f.traitors != "" {
		s += " --traitors " + f.traitors
	}
	for _, n := range []struct {
		flag  string
		value int
	}{{"replicas", f.replicas}, {"clients", f.clients}, {"bad-clients", f.badClients}} {
		if n.value != 0 {
			s += fmt.Sprintf(" --%s %d", n.flag, n.value)
		}
	}
	if f.duration != 0 {
		s += fmt.Sprintf(" --for %v", f.duration)
	}
	return s
}
