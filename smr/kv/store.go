package kv

// Store is a key-value store in memory, an smr.StateMachine. Make one with New.
type Store struct {
	machine
	memory *memory // the machine's tables
}

// New returns an empty store.
func New() *Store {
	m := &memory{leases: map[LeaseID]*tied{}}
	return &Store{machine{items: m, leases: m, newest: &m.changes}, m}
}

// Apply executes a command, or a query.
func (s *Store) Apply(command []byte) []byte { return s.run(command, true) }

// Read answers a query. A command that would change something is Malformed here.
func (s *Store) Read(query []byte) []byte { return s.run(query, false) }
