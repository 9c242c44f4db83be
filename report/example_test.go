package report_test

import (
	"fmt"
	"strings"
	"time"

	"github.com/foresay/foresay/report"
)

// A report tells what became of each guess.
func ExampleReport_WriteTimeline() {
	ms := time.Millisecond
	r := &report.Report{
		Task: "buy", Duration: 40 * ms, Outcome: "confirmed",
		Runs: []report.Run{
			{
				ID: 1, Returned: -1, Ended: 20 * ms, State: "discarded", RefutedBy: 1,
				Steps: []report.Step{{Call: 1}, {Call: 2, Resumed: -1, Prediction: -2}},
			},
			{
				ID: 2, Started: 20 * ms, Returned: 40 * ms, Ended: 40 * ms, State: "confirmed", Cause: 1, ReplayOf: 1,
				Steps: []report.Step{
					{Call: 1, At: 20 * ms, Resumed: 20 * ms, Prediction: -1, Adopted: true},
					{Call: 3, At: 20 * ms, Resumed: 40 * ms, Prediction: -1},
				},
			},
		},
		Calls: []report.Call{
			{
				ID: 1, CallSite: "/shop.Prices/Get", Sent: []report.Send{{}}, Predicted: []time.Duration{0},
				Answered: 20 * ms, Match: -1, Confirmed: 20 * ms, Abandoned: -1,
			},
			{ID: 2, CallSite: "/shop.Orders/Put", Held: []report.Hold{{}}, Answered: -1, Match: -1, Confirmed: -1,
				Abandoned: 20 * ms},
			{
				ID: 3, CallSite: "/shop.Orders/Put", Made: 20 * ms, Sent: []report.Send{{At: 20 * ms}},
				Answered: 40 * ms, Match: -1, Confirmed: 40 * ms, Abandoned: -1,
			},
		},
	}
	var b strings.Builder
	if err := (report.Timeline{Width: 80, NoLegend: true}).Write(&b, r); err != nil {
		fmt.Println(err)
	}
	fmt.Print(b.String())
	// Output:
	// task buy: confirmed after 40 ms, 2 runs, 3 calls
	// ms                 0        10       20       30       40
	//                    ┬────────┬────────┬────────┬────────┬
	// run 1              ──────────────────✗                   20 ms, discarded by 1
	//   1 Prices/Get     ◆█████████████████✗                   20 ms, prediction wrong
	//   2 Orders/Put     ░░░░░░░░░░░░░░░░░░×                   20 ms, abandoned
	// run 2, replay of 1                   ──────────────────✓ 20 ms, confirmed
	//   3 Orders/Put                       ██████████████████│ 20 ms, answered
}
