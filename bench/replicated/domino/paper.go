package domino

import "github.com/foresay/foresay/bench/figure"

// What the thesis says of Domino in its text; its figures are not at hand. What its authors'
// program took elsewhere is from running that program, and those of [EPaxos]' authors that the
// thesis compares it with, on one machine behind proxies that delay what passes by the thesis'
// tables: 9 clients of 100 requests a second, or 6.

// rerun is the source of marks of programs that were run again.
const rerun = "run again"

// reported are a system's median and 95th percentile.
type reported struct {
	system   string
	p50, p95 float64
	by       string
}

// thesisCommits are the commit latencies of Figure 4.9.
func thesisCommits(network string) []figure.Mark {
	numbers := map[string][]reported{
		"na3": { // §4.5.2 gives them for (a) only
			{"domino", 48, 70, ""}, {"epaxos", 64, 87, ""}, {"mencius", 75, 94, ""}, {"multipaxos", 107, 134, ""},
			{"domino", 47.9, 69.6, rerun}, {"epaxos", 67.3, 92.5, rerun}, {"mencius", 67.4, 92.7, rerun},
			{"multipaxos", 111.2, 137.6, rerun},
		},
		"na5": {{"domino", 44.8, 59.7, rerun}, {"epaxos", 52.6, 77.1, rerun}, {"multipaxos", 87, 116, rerun}},
		"globe3": {{"domino", 176, 200, rerun}, {"epaxos", 206, 339, rerun}, {"mencius", 207, 340, rerun},
			{"multipaxos", 279, 350, rerun}},
	}
	var marks []figure.Mark
	for _, n := range numbers[network] {
		marks = append(marks, figure.Mark{Line: n.system, X: n.p50, Y: 50, Source: n.by},
			figure.Mark{Line: n.system, X: n.p95, Y: 95, Source: n.by})
	}
	return marks
}

// thesisFewClients are the medians of Figure 4.8: Fast Paxos with one client has "approximately 65
// ms lower median commit latency" than Multi-Paxos, which takes "about 100 ms" from IA, and with
// two clients more than Multi-Paxos.
func thesisFewClients() []figure.Mark {
	return []figure.Mark{
		{Line: "fastpaxos", Category: "IA", Y: 35, Bound: "about"}, {Line: "multipaxos", Category: "IA", Y: 100,
			Bound: "about"},
	}
}

// thesisExecutions are the executed latencies of the authors' programs with three replicas in North
// America; the thesis' Figure 4.11 has no numbers in its text. Domino's two are between what it
// took in several runs.
func thesisExecutions() []figure.Mark {
	var marks []figure.Mark
	for _, n := range []reported{
		{"epaxos, default", 69.4, 95.7, rerun}, {"mencius, default", 100.6, 150, rerun},
		{"multipaxos, default", 112, 139, rerun},
		{"domino, thesis", 98, 129, rerun}, {"domino, thesis", 106, 143, rerun},
	} {
		marks = append(marks, figure.Mark{Line: n.system, X: n.p50, Y: 50, Source: n.by},
			figure.Mark{Line: n.system, X: n.p95, Y: 95, Source: n.by})
	}
	return marks
}

// thesisAdapts are the latencies that §4.5.3 tells of Figure 4.13, at about the middle of where it
// has them.
func thesisAdapts(part string) []figure.Mark {
	if part != adaptClient {
		return nil
	}
	return []figure.Mark{{Line: "domino", X: 22, Y: 50}, {Line: "mencius", X: 22, Y: 80}, {Line: "domino", X: 37, Y: 60}}
}
