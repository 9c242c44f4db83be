package bft_test

import (
	"fmt"

	"github.com/foresay/foresay/bft"
)

func Example() {
	var secrets bft.Secrets
	scheme, client := bft.NewScheme("example", &secrets), secrets.Signer(1)
	limits := bft.DefaultLimits()
	r := bft.Requests().Sign(scheme, client, bft.Request{Client: 7, First: 1, Operations: []bft.Operation{{}}})
	fmt.Println(r.By(client.Key()), r.By(secrets.Signer(2).Key()), r.Body().Lawful(limits))
	// Output: true false true
}
