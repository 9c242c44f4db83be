package bench

import (
	"context"
	"fmt"
	"slices"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"
	"sync"

	benchv1 "github.com/foresay/foresay/api/foresay/bench/v1"
)

func envInt(n string, d int) int {
	if v, err := strconv.Atoi(os.Getenv(n)); err == nil {
		return v
	}
	return d
}

var _ = benchv1.File_foresay_bench_v1_bench_proto

// parallel issues all calls at once (the floor of 100 % right).
func parallelChain(ctx context.Context, c caller, a ask, r request) ([]byte, error) {
	payloads := make([][]byte, len(r.guesses)+1)
	payloads[0] = firstPayload(r.seed)
	for i := range r.guesses {
		payloads[i+1] = answer(payloads[i])
	}
	var wg sync.WaitGroup
	var fail error
	var mu sync.Mutex
	for i := range r.guesses {
		f := func() {
			_, err := c[i%len(c)].Work(ctx, a.request(payloads[i]))
			if err != nil {
				mu.Lock()
				fail = err
				mu.Unlock()
			}
		}
		if i == len(r.guesses)-1 {
			f()
		} else {
			wg.Go(f)
		}
	}
	wg.Wait()
	return payloads[len(payloads)-1], fail
}

func parallelStack() stack {
	s := grpcStack()
	s.name = "grpc-par"
	s.chain = parallelChain
	return s
}

func TestPerf(t *testing.T) {
	which := os.Getenv("PERF")
	if which == "" {
		t.Skip()
	}
	sys := strings.Split(os.Getenv("SYS"), ",")
	if os.Getenv("SYS") == "" {
		sys = []string{"grpc", "do", "then"}
	}
	percent := envInt("PCT", 100)
	sc := scale{mode: Real}
	var st study
	var l load
	switch which {
	case "chain":
		st = study{top: topology{servers: chainServers}, rounds: envInt("ROUNDS", 5), ratios: []ratio{cpuRatio}}
		l = chainLoad(sc)
		l.perCaller = envInt("PER", 10)
	case "rtt":
		st = study{top: topology{servers: chainServers, rtt: 10 * time.Millisecond}, rounds: envInt("ROUNDS", 5), ratios: []ratio{cpuRatio}}
		l = chainLoad(sc)
		l.ask.work = 0
		l.perCaller = envInt("PER", 10)
	case "overhead":
		st = study{top: topology{servers: 1, shared: true}, rounds: envInt("ROUNDS", 15), ratios: []ratio{opsRatio, cpuRatio}}
		l = load{callers: envInt("CALLERS", 16), calls: envInt("CALLS", 1), perCaller: 64, span: time.Duration(envInt("SPAN", 100)) * time.Millisecond}
	}
	l.percent, l.guessing = percent, percent >= 0
	var group []trial
	for _, s := range sys {
		own := l
		var k stack
		switch s {
		case "grpc":
			k = grpcStack()
		case "par":
			k = parallelStack()
		case "one":
			k = grpcStack()
			k.name = "grpc-one"
			own.calls = 1
		case "off":
			k = foresayOff(variant{})
		case "dooff":
			k = foresayDo(variant{off: true})
			own.guessing = false
		case "do":
			k = foresayDo(variant{})
		case "don":
			k = foresayDo(variant{})
			own.guessing = false
		case "then":
			k = foresayThen(variant{})
		case "dospec":
			k = foresayDo(variant{asking: true})
		}
		group = append(group, trial{stack: k, load: own, params: []Cell{{"sys", s}}})
	}
	st.groups = [][]trial{group}
	s := newSession("perf", st, Real, uint64(envInt("SEED", 1)), nil)
	if err := s.real(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, r := range s.rows() {
		var sb strings.Builder
		for _, c := range r {
			if c.Name == "system" || c.Name == "bytes_per_op" {
				continue
			}
			if f, ok := c.Value.(float64); ok {
				fmt.Fprintf(&sb, "%s=%.4g ", c.Name, f)
			} else {
				fmt.Fprintf(&sb, "%-8v ", c.Value)
			}
		}
		fmt.Println(sb.String())
	}
}


type stamp struct{ begin, end time.Time }

var stamps, invokes, runs sync.Map

func stamped(f chainFunc, name string, out *sync.Map) chainFunc {
	return func(ctx context.Context, c caller, a ask, r request) ([]byte, error) {
		rr := new([8]time.Time)
		runs.Store(r.seed, rr)
		start := time.Now()
		res, err := f(ctx, c, a, r)
		end := time.Now()
		row := map[string]time.Duration{}
		for i, x := range rr {
			if !x.IsZero() {
				row[fmt.Sprintf("a run%d", i)] = x.Sub(start)
			}
		}
		p := firstPayload(r.seed)
		for i := range r.guesses {
			if v, ok := stamps.Load(string(p)); ok {
				st := v.(stamp)
				row[fmt.Sprintf("c srv-begin%d", i)] = st.begin.Sub(start)
				row[fmt.Sprintf("d srv-end%d", i)] = st.end.Sub(start)
				row["c srv-begin max"] = max(row["c srv-begin max"], st.begin.Sub(start))
				row["d srv-end max"] = max(row["d srv-end max"], st.end.Sub(start))
			}
			if v, ok := invokes.Load(string(p)); ok {
				st := v.(stamp)
				row[fmt.Sprintf("b inv-begin%d", i)] = st.begin.Sub(start)
				row[fmt.Sprintf("e inv-end%d", i)] = st.end.Sub(start)
				row["b inv-begin max"] = max(row["b inv-begin max"], st.begin.Sub(start))
				row["e inv-end max"] = max(row["e inv-end max"], st.end.Sub(start))
			}
			p = answer(p)
		}
		row["f end"] = end.Sub(start)
		l, _ := out.LoadOrStore(name, new(sync.Map))
		l.(*sync.Map).Store(r.seed, row)
		return res, err
	}
}

func TestStamps(t *testing.T) {
	if os.Getenv("STAMPS") == "" {
		t.Skip()
	}
	perfHook = func(req *benchv1.WorkRequest, b, e time.Time) { stamps.Store(string(req.GetPayload()), stamp{b, e}) }
	perfInvoke = func(req *benchv1.WorkRequest, b, e time.Time) { invokes.Store(string(req.GetPayload()), stamp{b, e}) }
	perfRun = func(seed uint64, n int) {
		if v, ok := runs.Load(seed); ok {
			x := v.(*[8]time.Time)
			if x[n].IsZero() {
				x[n] = time.Now()
			}
		}
	}
	var out sync.Map
	l := chainLoad(scale{mode: Real})
	l.percent = envInt("PCT", 100)
	st := study{top: topology{servers: chainServers}, rounds: envInt("ROUNDS", 8)}
	var group []trial
	seqs, par, do, then := grpcStack(), parallelStack(), foresayDo(variant{}), foresayThen(variant{})
	for _, k := range []stack{seqs, par, do, then} {
		k.chain = stamped(k.chain, k.name, &out)
		group = append(group, trial{stack: k, load: l})
	}
	st.groups = [][]trial{group}
	s := newSession("perf", st, Real, 1, nil)
	if err := s.real(t.Context()); err != nil {
		t.Fatal(err)
	}
	names := []string{"grpc", "grpc-par", "foresay-do", "foresay-then"}
	all := map[string]map[string]time.Duration{}
	keys := map[string]bool{}
	for _, n := range names {
		v, _ := out.Load(n)
		cnt := map[string]int{}
		sum := map[string]time.Duration{}
		v.(*sync.Map).Range(func(_, x any) bool {
			for k, d := range x.(map[string]time.Duration) {
				cnt[k]++
				sum[k] += d
				keys[k] = true
			}
			return true
		})
		for k := range sum {
			sum[k] /= time.Duration(cnt[k])
		}
		all[n] = sum
	}
	var ks []string
	for k := range keys {
		ks = append(ks, k)
	}
	slices.Sort(ks)
	for _, k := range ks {
		fmt.Printf("%-18s", k)
		for _, n := range names {
			fmt.Printf(" %12.1f", float64(all[n][k])/1000)
		}
		fmt.Println()
	}
}
