package shape_test

import (
	"net"
	"testing"

	"golang.org/x/net/nettest"

	"github.com/foresay/foresay/wan"
)

func TestConnConformance(t *testing.T) {
	for name, newNetwork := range backEnds() {
		t.Run(name, func(t *testing.T) {
			nettest.TestConn(t, func() (c1, c2 net.Conn, stop func(), err error) {
				n := newNetwork(wan.Uniform(0, "a", "b"), 1)
				l, err := n.Listen("b")
				if err != nil {
					return nil, nil, nil, err
				}
				if c1, err = n.Dial(t.Context(), "a", l.Addr().String()); err != nil {
					return nil, nil, nil, err
				}
				c2, err = l.Accept()
				return c1, c2, func() { n.Close() }, err
			})
		})
	}
}
