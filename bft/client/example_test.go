package client_test

import (
	"context"
	"fmt"
	"strconv"

	"github.com/foresay/foresay"
	"github.com/foresay/foresay/bft"
	"github.com/foresay/foresay/bft/client"
	smrclient "github.com/foresay/foresay/smr/client"
)

// An account takes numbers: a deposit is one above 0, and the result is the balance.
func ExampleTyped() {
	deposit := func(n int) int { return n }
	withdraw := func(n int) int { return -n }
	encode := func(n int) ([]byte, error) { return []byte(strconv.Itoa(n)), nil }
	balance := 0
	bank := client.Typed[int, int, int]{Guess: encode, Coding: smrclient.Coding[int, int, int]{
		Command: encode, Query: encode, Result: func(b []byte) (int, error) { return strconv.Atoi(string(b)) }}}
	// A node that executes everything at once.
	bank.Client = over(func(call bft.Call) []bft.Message {
		n, _ := strconv.Atoi(string(call.Command))
		balance += n
		return []bft.Message{bft.Done{ID: call.ID,
			Result: bft.Result{Outcome: bft.Executed, Value: []byte(strconv.Itoa(balance))}}}
	})
	ctx := context.Background()
	total, err := foresay.Do(ctx, func(ctx context.Context) (int, error) {
		balance, err := bank.Execute(ctx, deposit(100)) // the first reply
		if err != nil {
			return 0, err
		}
		return bank.Execute(foresay.Predicting(ctx, balance-30), withdraw(30)) // a guess
	})
	fmt.Println(total, err)
	// Output: 70 <nil>
}
