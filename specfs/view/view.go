package view

import (
	"errors"
	"fmt"
	"time"

	"github.com/foresay/foresay/keyspace"
	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/specfs"
)

// A System says what a view does for consistency [Speculator §7].
type System struct {
	// Leases: what is held under a lease is believed. Otherwise each operation is verified by the
	// server.
	Leases bool
	// Behind: programs go on with predicted results. Whoever runs them holds back what they show
	// until the epoch is settled, and takes them back if it is refused. Otherwise each operation is an
	// epoch of its own, and its result is told when that is settled.
	Behind bool
}

// Callback believes what it holds under a lease; changes are synchronous, as with Coda and AFS.
func Callback() System { return System{Leases: true} }

// BlueFSSync verifies each operation, and waits.
func BlueFSSync() System { return System{} }

// BlueFS verifies each operation, behind the program.
func BlueFS() System { return System{Behind: true} }

// Config is what a view is made from. The zero value of an optional field is its default.
type Config struct {
	Server protocol.ID
	System System
	Token  uint64 // of this process, by chance
	// MaxOpen is how many epochs are not settled at most; then programs wait. 0 is 64.
	MaxOpen int
	// MaxSteps is after how many operations an epoch ends by itself. 0 is 1,000.
	MaxSteps int
	// Retry is how long the view waits for the server before it asks again. 0 is 2 s.
	Retry time.Duration
}

func (c Config) validate() error {
	switch {
	case c.Server == protocol.App:
		return errors.New("specfs: Config.Server is not set")
	case c.System.Leases && c.System.Behind:
		return errors.New("specfs: Config.System: changes behind a lease need an exclusive one, which is not there yet")
	}
	if c.MaxOpen < 0 || c.MaxSteps < 0 || c.MaxSteps > specfs.MaxSteps || c.Retry < 0 {
		return fmt.Errorf("specfs: Config.MaxOpen is %d, MaxSteps %d (at most %d), Retry %v",
			c.MaxOpen, c.MaxSteps, specfs.MaxSteps, c.Retry)
	}
	return nil
}

// What programs ask a view for, as messages from protocol.App.
type (
	// Do asks for an operation. The view chooses the ID of what a Make makes. The answer is a Done.
	Do struct {
		Tag uint64
		// Era is that of the last Refused that the program knows. If it does not know all the operation
		// is dropped.
		Era  specfs.Era
		Op   specfs.Op
		Cred specfs.Cred
	}
	// Cut ends the open epoch, if there is one.
	Cut struct{}
)

// What a view tells, as messages to protocol.App.
type (
	// Done answers a Do.
	Done struct {
		Tag    uint64
		Result specfs.Result
		// Epoch is what the result depends on: it is true when that is settled. It is settled already
		// unless the System is Behind.
		Epoch specfs.Number
		// Serial is that of the state in which it is true, if it is settled.
		Serial specfs.Version
	}
	// Settled says that an epoch is on the server's disk, or that it changed nothing and was right.
	Settled struct {
		Epoch  specfs.Number
		Serial specfs.Version
	}
	// Refused says that an epoch was refused: neither it nor any later one has happened. Numbers of
	// later epochs go on above.
	Refused struct {
		Epoch  specfs.Number
		Era    specfs.Era // from now on
		Reason specfs.Refusal
	}
)

// Env is the world of a view during a call.
type Env = protocol.Env[specfs.Message]

// View is the client of a file system: a protocol.Node. It keeps nothing on disk.
type View struct {
	config Config
	cache  *cache
	layers *keyspace.Layers

	session specfs.SessionID // 0: the server has not answered yet
	welcome specfs.Welcome   // the last one
	// generation is that of what is in the cache: see specfs.Renewed.
	generation uint64
	made       uint32        // how many objects
	offset     time.Duration // of the server's clock to this one
	lease      lease
	// epochs are those that are not settled, the oldest first. Those but the last are on their way.
	epochs []*epoch
	last   specfs.Number // the last epoch that was begun
	acked  specfs.Number // the last epoch of which an answer came, and so all before it
	era    specfs.Era
	// serials are those of settled epochs, as long as a layer may name one by its provisional version.
	// For those parts that an epoch has moved, which it changed without knowing what was there, the
	// provisional version never becomes a right one.
	serials map[specfs.Number]specfs.Version
	moved   map[movedPart]bool
	// asked are the operations that wait for something, in the order in which they came.
	asked   []*pending
	fetches uint64 // the tag of the last Fetch
	news    uint64 // the last that the server has told
	hello   bool   // a Welcome is due
	heard   bool   // from the server, since that was looked at last
	counts  Counts
}

// Counts says what a view has done.
type Counts struct {
	Ops, Fetches, Epochs, Refused uint64
}

// movedPart is a part that an epoch has changed on top of something else than the client believed.
type movedPart struct {
	epoch specfs.Number
	part  specfs.Part
}

// lease is until when what is held may be believed.
type lease struct {
	until  time.Duration // by Env.Now
	length time.Duration
	// tag is that of the last Renew, which was sent at a time and is due until it is answered.
	tag uint64
	at  time.Duration
	due bool
}

// A pending operation waits for records, or to be settled.
type pending struct {
	Do
	fetch  *specfs.Fetch // of the records that it waits for, nil: none
	epoch  specfs.Number // where it is, 0: nowhere
	result specfs.Result
}

// Timers of a view.
type retry struct{}

// New returns a view.
func New(c Config) (*View, error) {
	if err := c.validate(); err != nil {
		return nil, err
	}
	if c.MaxOpen == 0 {
		c.MaxOpen = 64
	}
	if c.MaxSteps == 0 {
		c.MaxSteps = 1000
	}
	if c.Retry == 0 {
		c.Retry = 2 * time.Second
	}
	v := &View{config: c, cache: &cache{}, serials: map[specfs.Number]specfs.Version{}, moved: map[movedPart]bool{}}
	v.layers = keyspace.NewLayers(v.cache)
	return v, nil
}

// Counts returns what the view has done.
func (v *View) Counts() Counts { return v.counts }

// Start is part of protocol.Node.
func (v *View) Start(env *Env, _ []protocol.Record[specfs.Message]) {
	v.sayHello(env)
	env.After(v.config.Retry, retry{})
}

// Receive is part of protocol.Node.
func (v *View) Receive(env *Env, from protocol.ID, msg specfs.Message) {
	if from == protocol.App {
		switch msg := msg.(type) {
		case Do:
			v.onDo(msg)
		case Cut:
			v.cut(env)
		}
		v.run(env)
		return
	}
	if from != v.config.Server {
		return
	}
	if _, ok := msg.(specfs.Unknown); ok {
		if !v.hello { // one of these may come for each message that the server could not use
			v.sayHello(env)
		}
		return
	}
	v.heard = true
	switch msg := msg.(type) {
	case specfs.Welcome:
		v.onWelcome(env, msg)
	case specfs.Fetched:
		v.onFetched(env, msg)
	case specfs.Answer:
		v.onAnswer(env, msg)
	case specfs.Notice:
		v.onNotice(env, msg)
	case specfs.Renewed:
		v.onRenewed(msg)
	}
	v.run(env)
}

// Broken is part of protocol.Linked.
func (v *View) Broken(env *Env, from protocol.ID) {
	if from == v.config.Server {
		v.sayHello(env)
	}
}

// Expire is part of protocol.Node.
func (v *View) Expire(env *Env, t protocol.Timer) {
	if _, ok := t.(retry); ok {
		v.onRetry(env)
	}
	v.run(env)
}
