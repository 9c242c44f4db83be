package geostore

import (
	"testing"
	"time"

	"github.com/foresay/foresay/bench"
	"github.com/foresay/foresay/bench/table"
	"github.com/foresay/foresay/store/client"
	"github.com/foresay/foresay/wan"
)

// floorRatios runs the experiment in virtual time and returns each system's ratios, by site and
// class.
func floorRatios(t *testing.T) map[client.Mode]map[string]map[string]float64 {
	t.Helper()
	r, err := floorsExperiment().Run(t.Context(), bench.Options{Quick: true, Seed: 1, Bubble: bubbles(t)})
	if err != nil {
		t.Fatal(err)
	}
	if want := len(systemModes()) * 4 * len(floorClasses()); len(r.Rows) != want {
		t.Fatalf("there are %d rows, want %d", len(r.Rows), want)
	}
	ratios := map[client.Mode]map[string]map[string]float64{}
	for _, row := range r.Rows {
		mode, err := client.ParseMode(row.Text("system"))
		if err != nil {
			t.Fatal(err)
		}
		ratio, ok := row.Number("ratio_to_floor")
		if !ok {
			t.Errorf("%v: no ratio in %v", mode, row)
			continue
		}
		if ratios[mode] == nil {
			ratios[mode] = map[string]map[string]float64{}
		}
		site := row.Text("site")
		if ratios[mode][site] == nil {
			ratios[mode][site] = map[string]float64{}
		}
		ratios[mode][site][row.Text("class")] = ratio
	}
	return ratios
}

// TestFloor: a predicated transaction takes one round trip to the nearest other site and what disks
// take, whatever it reads. One that guesses takes two, and one that waits for each read takes one
// for each, and the commit's. One that only reads one key needs no commit.
func TestFloor(t *testing.T) {
	ratios := floorRatios(t)
	for _, site := range []string{"all", "oregon", "ireland", "seoul"} {
		for _, c := range floorClasses() {
			trips := map[client.Mode]int{client.GRPC: c.reads + 1, client.Off: c.reads + 1, client.Spec: min(c.reads, 1) + 1,
				client.Predicated: 1}
			if c.reads == 1 && !c.update {
				trips = map[client.Mode]int{client.GRPC: 1, client.Off: 1, client.Spec: 1, client.Predicated: 1}
			}
			for mode, n := range trips {
				if got := ratios[mode][site][c.name]; got < float64(n) || got > float64(n)+0.03 {
					t.Errorf("%v, %s at %s: %.3f round trips, want %d to %d.03", mode, c.name, site, got, n, n)
				}
			}
			// It tries the other mode now and then.
			if got := ratios[client.Auto][site][c.name]; got < 1 || got > 1.2 {
				t.Errorf("auto, %s at %s: %.3f round trips, want 1 to 1.2", c.name, site, got)
			}
		}
	}
}

// TestFloorRows: a transaction counts with all its attempts, and all sites together have the floor
// that their transactions have on average.
func TestFloorRows(t *testing.T) {
	txn := func(site wan.Site, class string, ms time.Duration) Txn {
		return Txn{Site: site, Class: class, Took: ms * time.Millisecond,
			Attempts: []Attempt{{Took: time.Millisecond, Committed: true}}}
	}
	rows := floorRows(outcome{system: "spec", params: []table.Cell{table.Is("sync_ms", 1)}, matrix: wan.SpecRPC(),
		played: Played{Txns: []Txn{
			txn("oregon", "read-4", 244), txn("ireland", "read-4", 280), txn("oregon", "write", 183),
			txn("oregon", "read-4", 244), txn("oregon", "read-4", 488),
		}}})
	find := func(site, class string) table.Row {
		for _, row := range rows {
			if row.Text("site") == site && row.Text("class") == class && row.Text("system") == "spec" &&
				row.Text("sync_ms") == "1" {
				return row
			}
		}
		t.Fatalf("no row of %s at %s in %v", class, site, rows)
		return nil
	}
	for _, c := range []struct {
		site, class                       string
		txns, mean, p50, p95, floor, over float64
	}{
		{"all", "read-4", 4, 314, 244, 488, 126.5, 314 / 126.5},
		{"oregon", "read-4", 3, 976.0 / 3, 244, 488, 122, 8.0 / 3},
		{"ireland", "read-4", 1, 280, 280, 280, 140, 2},
		{"oregon", "write", 1, 183, 183, 183, 122, 1.5},
	} {
		row := find(c.site, c.class)
		for name, want := range map[string]float64{"txns": c.txns, "mean_ms": c.mean, "p50_ms": c.p50, "p95_ms": c.p95,
			"floor_ms": c.floor, "ratio_to_floor": c.over} {
			if got, ok := row.Number(name); !ok || got < want-0.001 || got > want+0.001 {
				t.Errorf("%s at %s: %s is %v, want %v", c.class, c.site, name, row.Value(name), want)
			}
		}
	}
	if row := find("seoul", "write"); row.Text("txns") != "0" || row.Value("ratio_to_floor") != nil {
		t.Errorf("without transactions: %v", row)
	}
}
