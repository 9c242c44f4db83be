package wan_test

import (
	"fmt"
	"time"

	"github.com/foresay/foresay/wan"
)

func Example() {
	m := wan.SpecRPC()
	fmt.Println("Oregon to Ireland and back:", m.RTT("oregon", "ireland"))

	// A bad day between Oregon and Seoul, in one direction.
	p := wan.Path{From: "oregon", To: "seoul"}
	link, _ := m.Link(p)
	link.Jitter = 20 * time.Millisecond
	link.Loss = 0.01
	m = m.WithLink(p, link)

	// How long does a message take that leaves after a second? The same whenever one asks.
	link, _ = m.Link(p)
	d := wan.Departure{Path: p, At: time.Second, SizeBytes: 64}
	took, again := link.Transit(1, d), link.Transit(1, d)
	fmt.Println("between 61 and 81 ms:", took >= 61*time.Millisecond && took < 81*time.Millisecond)
	fmt.Println("repeatable:", took == again)
	// Output:
	// Oregon to Ireland and back: 140ms
	// between 61 and 81 ms: true
	// repeatable: true
}

func ExampleParse() {
	_, err := wan.Parse("sites.json", []byte(`{
		"sites": ["oregon", "seoul"],
		"links": [{"from": "oregon", "to": "soul", "delay_ms": 61}]
	}`))
	fmt.Println(err)
	// Output:
	// wan: sites.json: links[0].to: unknown site "soul" (the sites are ["oregon" "seoul"])
}
