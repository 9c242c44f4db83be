package main

import "os"

func Example() {
	if err := run(os.Stdout); err != nil {
		panic(err)
	}
	// Output:
	// plain caller: tea is purchase 1, of 5 users
	// speculating caller: cake is purchase 2, of 6 users; it had a right first reply: true
	// the primary lies from now on
	// plain caller: milk is purchase 3, of 6 users
	// speculating caller: honey is purchase 4, of 7 users; it had a right first reply: false
	// purchases: 4
}
