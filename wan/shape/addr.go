package shape

import (
	"strconv"

	"github.com/foresay/foresay/wan"
)

// An addr is the address of a listener or of an end of a connection in memory, such as "oregon:1".
type addr struct {
	site wan.Site
	port int
}

func (addr) Network() string  { return "wan" }
func (a addr) String() string { return string(a.site) + ":" + strconv.Itoa(a.port) }
