package tpcc

import "fmt"

// Layout says which server has which warehouses: all have as many, one server's after the other's.
type Layout struct {
	Servers   int
	PerServer int // 5 if it is zero, as in the experiments with STR
}

// NewLayout returns a layout, or an error that names the field.
func NewLayout(l Layout) (Layout, error) {
	const perServer, most = 5, 1 << 20
	if l.PerServer == 0 {
		l.PerServer = perServer
	}
	switch {
	case l.Servers < 1 || l.Servers > most:
		return l, fmt.Errorf("tpcc: Layout.Servers is %d (want 1 to %d)", l.Servers, most)
	case l.PerServer < 1 || l.PerServer > most:
		return l, fmt.Errorf("tpcc: Layout.PerServer is %d (want 1 to %d)", l.PerServer, most)
	}
	return l, nil
}

// Warehouses returns how many there are, for Scale.
func (l Layout) Warehouses() int { return l.Servers * l.PerServer }

// Server returns the server of a warehouse, such as Home returns for a key. Servers count from 0,
// warehouses from 1. It is false if there is no such warehouse.
func (l Layout) Server(warehouse int) (server int, ok bool) {
	return (warehouse - 1) / l.PerServer, warehouse >= 1 && warehouse <= l.Warehouses()
}

// First returns the first of the warehouses of a server. Its other ones follow; clients are shared
// out among them.
func (l Layout) First(server int) (warehouse int) { return 1 + server*l.PerServer }
