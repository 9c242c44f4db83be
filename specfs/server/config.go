package server

import (
	"errors"
	"fmt"
	"time"

	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/specfs"
)

// Config is what a server is made from. The zero value of an optional field is its default.
type Config struct {
	// Principal says whose a client is, false if it may not come in. It depends on nothing else.
	Principal func(client protocol.ID) (Principal, bool)
	// Lease is for how long a client may rely on what it holds without a word from the server. A
	// change waits that much for a client that does not answer. 0 is 10 s.
	Lease time.Duration
	// Gone is after what time without a word, or without a lease, a session ends. 0 is 10 min.
	Gone time.Duration
	// Ahead is how far a client's clock may be ahead of the server's. 0 is 10 ms.
	Ahead time.Duration
	// Root is the mode of the root, in a file system that is made anew. 0 is 0755. It belongs to
	// Owner.
	Root  specfs.Mode
	Owner specfs.Cred

	MaxSessions int // 0 is 1,024
	MaxHeld     int // objects that a session holds; 0 is a million
	MaxWaiting  int // requests of a session that wait, and answers that are kept for it; 0 is 256
	FetchBytes  int // that a Fetched has, more or less; 0 is 256 KiB
}

// A Principal is somebody whose clients may use the file system.
type Principal struct {
	Name string
	// Cred is who all operations of its clients are made by, unless Trusted says that they may tell
	// themselves who asks for each.
	Cred     specfs.Cred
	Trusted  bool
	ReadOnly bool
}

func (c Config) withDefaults() Config {
	set := func(v *int, usual int) {
		if *v == 0 {
			*v = usual
		}
	}
	set(&c.MaxSessions, 1024)
	set(&c.MaxHeld, 1_000_000)
	set(&c.MaxWaiting, 256)
	set(&c.FetchBytes, 256<<10)
	if c.Lease == 0 {
		c.Lease = 10 * time.Second
	}
	if c.Gone == 0 {
		c.Gone = 10 * time.Minute
	}
	if c.Ahead == 0 {
		c.Ahead = 10 * time.Millisecond
	}
	if c.Root == 0 {
		c.Root = 0o755
	}
	return c
}

func (c Config) validate() error {
	if c.Principal == nil {
		return errors.New("specfs: Config.Principal is not set")
	}
	for _, n := range []struct {
		name  string
		value int
	}{
		{"MaxSessions", c.MaxSessions}, {"MaxHeld", c.MaxHeld}, {"MaxWaiting", c.MaxWaiting}, {"FetchBytes", c.FetchBytes},
	} {
		if n.value < 0 {
			return fmt.Errorf("specfs: Config.%s is %d", n.name, n.value)
		}
	}
	if c.Lease < 0 || c.Gone < 0 || c.Ahead < 0 {
		return fmt.Errorf("specfs: Config.Lease is %v, Gone %v, Ahead %v", c.Lease, c.Gone, c.Ahead)
	}
	return nil
}
