package main

import (
	"encoding/json"
	"fmt"
	"io"

	"github.com/foresay/foresay/smr/client"
)

// bank is the state machine: balances. What it does depends on the commands only.
type bank struct{ balances map[string]int }

func newBank() *bank { return &bank{balances: map[string]int{}} }

// command moves money; without From it comes from outside.
type command struct {
	From, To string
	Deposit  int
}

// query asks for a balance.
type query struct{ Name string }

// result is what a command or query gives.
type result struct {
	Balance int    // of query.Name, or command.To
	Refused string // why nothing was moved
}

// Apply executes a command. A wrong one has a result too: each replica must give the same.
func (b *bank) Apply(bytes []byte) []byte {
	var c command
	if err := json.Unmarshal(bytes, &c); err != nil {
		return encode(result{Refused: err.Error()})
	}
	if c.Deposit < 0 || c.From != "" && b.balances[c.From] < c.Deposit {
		return encode(result{Balance: b.balances[c.To], Refused: fmt.Sprintf("%s has only %d", c.From, b.balances[c.From])})
	}
	if c.From != "" {
		b.balances[c.From] -= c.Deposit
	}
	b.balances[c.To] += c.Deposit
	return encode(result{Balance: b.balances[c.To]})
}

// Read answers a query and changes nothing.
func (b *bank) Read(bytes []byte) []byte {
	var q query
	if err := json.Unmarshal(bytes, &q); err != nil {
		return encode(result{Refused: err.Error()})
	}
	return encode(result{Balance: b.balances[q.Name]})
}

// Snapshot writes the balances: encoding/json writes maps in the order of their keys.
func (b *bank) Snapshot(w io.Writer) error { return json.NewEncoder(w).Encode(b.balances) }

// Restore reads what Snapshot wrote.
func (b *bank) Restore(r io.Reader) error {
	balances := map[string]int{}
	if err := json.NewDecoder(r).Decode(&balances); err != nil {
		return err
	}
	b.balances = balances
	return nil
}

func encode(r result) []byte {
	b, err := json.Marshal(r)
	if err != nil {
		panic(err) // a result can always be encoded
	}
	return b
}

// coding is how commands, queries and results look as bytes.
func coding() client.Coding[command, query, result] {
	return client.Coding[command, query, result]{
		Command: func(c command) ([]byte, error) { return json.Marshal(c) },
		Query:   func(q query) ([]byte, error) { return json.Marshal(q) },
		Result: func(b []byte) (r result, err error) {
			err = json.Unmarshal(b, &r)
			return r, err
		},
	}
}
