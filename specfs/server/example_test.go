package server_test

import (
	"fmt"

	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/specfs/server"
)

func Example() {
	_, err := server.New(server.Config{Lease: -1, Principal: func(protocol.ID) (server.Principal, bool) {
		return server.Principal{Name: "somebody", ReadOnly: true}, true
	}})
	fmt.Println(err)
	// Output: specfs: Config.Lease is -1ns, Gone 10m0s, Ahead 10ms
}
