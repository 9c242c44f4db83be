package observe_test

import (
	"fmt"
	"os"
	"time"

	"github.com/foresay/foresay/control"
	"github.com/foresay/foresay/observe"
)

// A page needs a user, and then the user's prices. Both would mostly have been known in advance.
func Example() {
	collector, err := observe.NewCollector(observe.Config{})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return
	}
	// control.New(control.Config{OnRequest:
	// []func(*control.RequestRecord){collector.Record}}) has it told of all requests. Here is what
	// it is told.
	for i := range 1000 {
		collector.Record(&control.RequestRecord{
			Name: "GET /page", Duration: 31 * time.Millisecond,
			Calls: []control.CallRecord{
				{CallSite: "/shop.Users/Get", Effect: control.EffectNone, End: 10 * time.Millisecond, Guessed: true, Digest: true,
					Right: i%50 > 0},
				{CallSite: "/shop.Prices/List", Effect: control.EffectNone, Start: 11 * time.Millisecond,
					End:     31 * time.Millisecond,
					Guessed: true, Digest: true, Right: i%2 > 0},
			},
		})
	}
	r := collector.Report(nil)
	page := r.Requests[0]
	fmt.Println(page.Summary)
	for _, m := range page.Methods {
		fmt.Printf("%s is %s: %s\n", m.Name, m.Verdict, m.Why)
	}
	// Output:
	// you could save 9.92 ms p50 of 31.0 ms with specgrpc on the servers; extra load 1 %
	// /shop.Users/Get is worth it: the last response to the same request would have been right 98 % of 1,000; needs 66.7 %: a right guess saves 10.0 ms, a wrong one wastes 20.0 ms of calls
	// /shop.Prices/List is not worth it: the request's end hardly waits for it: a right guess saves 0 ms
}
