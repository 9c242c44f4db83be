package simulated

import (
	"github.com/foresay/foresay/bench"
	"github.com/foresay/foresay/bench/figure"
	"github.com/foresay/foresay/bench/table"
	"github.com/foresay/foresay/store/plan"
	"github.com/foresay/foresay/wan"
)

// strFailover is what the paper leaves to a toolkit that detects failures perfectly [STR §6.6].
func strFailover() bench.Experiment {
	return bench.Experiment{
		Name: "str-failover",
		Summary: "one of nine sites of STR, with six copies of each partition, is killed while clients make Retwis " +
			"transactions, for good or until its processes come back: how long clients elsewhere wait, and what is lost",
		Modes: []bench.Mode{bench.Virtual},
		Intervals: []string{"gap_ms", "client_gap_ms", "attempt_mean_ms", "gone_mean_ms", "gone_ratio_to_all",
			"back_mean_ms", "back_ratio_to_all"},
		Measure: bench.PointsAtOnce(lostSitePoints),
		Figures: []figure.Spec{{
			Suffix: "gap", Title: "STR: longest time without a commit after the kill, of the client that waits longest",
			Y: "client_gap_ms", YLabel: "gap (ms)", Across: []string{"victim"}, Series: []string{"system"},
			Where: table.Is("figure", "victims"),
		}},
	}
}

func lostSitePoints(o bench.Options) (points []bench.Point) {
	for _, s := range []plan.System{plan.ClockSIRep, plan.STR} {
		for _, v := range []victim{wholeSite, returning} {
			points = append(points, failoverOf(o, s, v, nineSites()))
		}
	}
	return points
}

// nineSites are STR's.
func nineSites() arena {
	placement, err := ringOf(ringOfNine(), len(ringOfNine()), paperCopies)
	if err != nil {
		panic(err) // there are more sites than copies
	}
	return arena{"ec2", wan.EC2(), placement}
}
