package epoch_test

import (
	"fmt"

	"github.com/foresay/foresay/store/epoch"
)

// Two of three sites agree on what the next epoch is, while the third one is away.
func Example() {
	machines := map[string]*epoch.State{"oregon-1": {}, "ireland-1": {}}
	p := epoch.Propose(epoch.Sites{{"oregon-1"}, {"ireland-1"}, {"seoul-1"}}, epoch.Ballot{Round: 1, Proposer: 7},
		[]byte("without seoul"))
	for name, s := range machines {
		if s.Prepare(p.Ballot) {
			p.Promised(name, *s)
		}
	}
	value, ok := p.Value()
	fmt.Println(string(value), ok)
	for name, s := range machines {
		if s.Accept(p.Ballot, value) {
			p.Accepted(name, *s)
		}
	}
	fmt.Println(p.Chosen())
	// Output:
	// without seoul true
	// true
}
