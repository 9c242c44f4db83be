package main

import "testing"

func Example() {
	main()
	// Output:
	// 1000 from ann to bob: ann has only 50
	// ann has 50
	// bob has 50
}

func TestBankRefusesWhatItCannotRead(t *testing.T) {
	b := newBank()
	b.Apply([]byte(`{"To": "ann", "Deposit": 3}`))
	for _, command := range []string{"", "{", `{"From": "ann", "Deposit": 4}`, `{"To": "ann", "Deposit": -1}`} {
		r, err := coding().Result(b.Apply([]byte(command)))
		if err != nil || r.Refused == "" || b.balances["ann"] != 3 {
			t.Errorf("%q gave %+v, %v, and ann has %d", command, r, err, b.balances["ann"])
		}
	}
}
