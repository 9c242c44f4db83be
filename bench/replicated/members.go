package replicated

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/foresay/foresay/bench"
	"github.com/foresay/foresay/bench/figure"
	"github.com/foresay/foresay/bench/table"
	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/smr"
	"github.com/foresay/foresay/smr/service"
)

// membersClients are few: with processors that are busy all of the time a gap says how busy.
const membersClients = 8

func smrMembers() bench.Experiment {
	return bench.Experiment{
		Name: "smr-members",
		Summary: "8 clients of a service of three processes with 250 MB of state: the longest gap between answers while a " +
			"replica is added, and while another one is removed",
		Modes:       []bench.Mode{bench.Real},
		PerProtocol: true,
		Measure:     bench.Points(perProtocol(membersRow)),
		Figures: []figure.Spec{{
			Suffix: "gap", Title: "The longest gap between answers while a replica is added", Y: "add_gap_ms",
			YLabel: "milliseconds",
			Across: []string{"system"},
		}},
	}
}

func membersRow(ctx context.Context, o bench.Options, p smr.Protocol) (rows []table.Row, err error) {
	err = bench.WithTempDir(func(dir string) error {
		g, err := startSnapshots(ctx, o.Program, dir, p, bench.Pick(o, 500, 20_000))
		if err != nil {
			return err
		}
		defer g.close()
		if err := g.load(ctx, bench.Pick(o, 200, 60_000)); err != nil {
			return fmt.Errorf("load: %w", err)
		}
		st, err := g.status(ctx)
		if err != nil {
			return err
		}
		m := &membersStep{g: g, lasting: bench.Pick(o, 300*time.Millisecond, 4*time.Second)}
		if err := m.run(ctx); err != nil {
			return err
		}
		rows = []table.Row{{
			table.Is("system", p.Name), table.Is("clients", membersClients), table.Is("value_bytes", snapshotsValueBytes),
			table.Measure("data_mb", float64(st.Bytes)/1e6),
			table.Measure("before_gap_ms", table.Ms(m.gaps[0])), table.Measure("add_gap_ms", table.Ms(m.gaps[1])),
			table.Measure("remove_gap_ms", table.Ms(m.gaps[2])),
		}}
		return nil
	})
	return rows, err
}

// A membersStep adds a replica and removes another one while clients write.
type membersStep struct {
	g       *snapshotsGroup
	lasting time.Duration    // that it waits behind each of the two
	gaps    [3]time.Duration // the longest before, while one is added, and while one is removed
}

func (m *membersStep) run(ctx context.Context) error {
	began := time.Now()
	answers := &gapMeter{last: began}
	done := make(chan struct{})
	changed := make(chan error, 1)
	go func() {
		defer close(done)
		changed <- m.change(ctx, answers)
	}()
	value := make([]byte, snapshotsValueBytes)
	err := m.g.all(ctx, func(ctx context.Context, client int) error {
		for n := 0; client < membersClients; n++ {
			if _, err := m.g.client.Put(ctx, fmt.Sprintf("hot/%d/%d", client, n%16), value); err != nil {
				return err
			}
			answers.note(time.Now())
			select {
			case <-done:
				return nil
			default:
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	return <-changed
}

func (m *membersStep) change(ctx context.Context, answers *gapMeter) error {
	wait := func() error {
		select {
		case <-time.After(m.lasting):
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	if err := wait(); err != nil {
		return err
	}
	added, err := m.g.join(ctx)
	if err != nil {
		return err
	}
	// Where there are learners the state is on its way to the replica before it is added.
	if _, err := m.g.client.AwaitLearner(ctx, added.ID, nil); err != nil && !errors.Is(err, service.ErrNoLearners) {
		return err
	}
	m.gaps[0] = answers.next()
	if err := m.g.client.Change(ctx, smr.Change{Add: added}); err != nil {
		return fmt.Errorf("add replica %d: %w", added.ID, err)
	}
	if err := wait(); err != nil {
		return err
	}
	m.gaps[1] = answers.next()
	m.g.servers.MayEnd(0)
	if err := m.g.client.Change(ctx, smr.Change{Remove: 1}); err != nil {
		return fmt.Errorf("remove replica 1: %w", err)
	}
	if err := wait(); err != nil {
		return err
	}
	m.gaps[2] = answers.next()
	return nil
}

// join starts one more replica, which is to be added.
func (s *served) join(ctx context.Context) (smr.Member, error) {
	address, err := FreeAddress()
	if err != nil {
		return smr.Member{}, err
	}
	cfg := s.cfg
	cfg.ID, cfg.Join = protocol.ID(len(cfg.Members)+1), true
	cfg.Listen, cfg.Data = address, fmt.Sprint("replica-", cfg.ID)
	encoded, err := json.Marshal(cfg)
	if err != nil {
		return smr.Member{}, err
	}
	file := filepath.Join(s.dir, fmt.Sprintf("replica-%d.json", cfg.ID))
	if err := os.WriteFile(file, encoded, 0o600); err != nil {
		return smr.Member{}, err
	}
	return smr.Member{ID: cfg.ID, Address: address}, s.servers.serve(s.program, "smr", file)
}
