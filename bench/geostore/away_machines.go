package geostore

import (
	"bufio"
	"context"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/foresay/foresay/bench"
	"github.com/foresay/foresay/bench/replicated"
	"github.com/foresay/foresay/bench/table"
)

// awayUsed is what has been used up to a moment.
type awayUsed struct {
	at           time.Time
	clients, all time.Duration   // processor time of this process, and of everything on this computer
	machines     []time.Duration // that of each; nil if it is not known, as one has just ended
	disks        []awayDisk      // of each
}

// awayDisk is what a machine says of its disk: how many commits have become durable, and how many
// seconds they took together. The zero value is that it said nothing.
type awayDisk struct {
	known            bool
	commits, seconds float64
}

// used returns what has been used so far.
func (m *awayRun) used(ctx context.Context) awayUsed {
	u := awayUsed{at: time.Now(), clients: bench.CPUTime(), all: replicated.MachineCPU(), machines: m.store.servers.CPUs(),
		disks: make([]awayDisk, len(m.store.files.pages))}
	ctx, cancel := context.WithTimeout(ctx, time.Second/2)
	defer cancel()
	var wg sync.WaitGroup
	for i, page := range m.store.files.pages {
		wg.Go(func() { u.disks[i] = readAwayDisk(ctx, page) })
	}
	wg.Wait()
	return u
}

// readAwayDisk reads a machine's page of metrics. It is all zero if the machine does not answer, as
// it is away or begins.
func readAwayDisk(ctx context.Context, page string) (d awayDisk) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, page, nil)
	if err != nil {
		return awayDisk{}
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return awayDisk{}
	}
	defer resp.Body.Close()
	const name = "foresay_store_disk_commit_duration_seconds_"
	for lines := bufio.NewScanner(resp.Body); lines.Scan(); {
		text, is := strings.CutPrefix(lines.Text(), name)
		what, value, _ := strings.Cut(text, " ")
		n, err := strconv.ParseFloat(value, 64)
		switch {
		case !is || err != nil:
		case what == "sum":
			d.seconds = n
		case what == "count":
			d.known, d.commits = true, n
		}
	}
	return d
}

// own is the processor time of machines and clients since another moment, if it is known.
func (u awayUsed) own(since awayUsed) (sum time.Duration, known bool) {
	if len(u.machines) == 0 || len(u.machines) != len(since.machines) {
		return 0, false
	}
	sum = u.clients - since.clients
	for i := range u.machines {
		sum += u.machines[i] - since.machines[i]
	}
	return max(sum, 0), true
}

// cells returns what was used since another moment, per second.
func (u awayUsed) cells(since awayUsed) (row table.Row) {
	lasting := u.at.Sub(since.at)
	share := func(used time.Duration) float64 { return max(used.Seconds(), 0) / lasting.Seconds() }
	own, known := u.own(since)
	if known && u.all > 0 {
		row = append(row, table.Measure("processors_elsewhere", share(u.all-since.all-own)))
	}
	row = append(row, table.Measure("processors_clients", share(u.clients-since.clients)))
	if known {
		for i := range u.machines {
			row = append(row, table.Measure(fmt.Sprintf("processors_%d", i+1), share(u.machines[i]-since.machines[i])))
		}
	}
	for i, d := range u.disks {
		// One that did not answer in time is not known for two seconds; one that has begun again
		// counts from its beginning.
		if i < len(since.disks) && d.known && since.disks[i].known && d.commits >= since.disks[i].commits {
			n := d.commits - since.disks[i].commits
			row = append(row, table.Measure(fmt.Sprintf("disk_commits_%d", i+1), n/lasting.Seconds()),
				table.Measure(fmt.Sprintf("disk_ms_%d", i+1), 1000*(d.seconds-since.disks[i].seconds)/max(n, 1)))
		}
	}
	return row
}
