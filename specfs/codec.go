package specfs

import (
	"github.com/foresay/foresay/internal/wirefmt"
	"github.com/foresay/foresay/protocol"
)

// codecVersion is the version of all messages.
const codecVersion = 1

// Bounds of messages. What is more cannot be decoded.
const (
	MaxWants       = 1024    // of a Fetch
	MaxSteps       = 4096    // of an Epoch
	MaxAssumptions = 1 << 16 // of an Epoch, blind ones apart
	MaxGroups      = 64      // of a Cred
)

// Codec returns the codec of all messages.
func Codec() protocol.Codec[Message] {
	ops := opFormat()
	return wirefmt.NewFormat("specfs", codecVersion,
		wirefmt.NewKind[Message](1, helloFields),
		wirefmt.NewKind[Message](2, fetchFields),
		wirefmt.NewKind[Message](3, func(c *wirefmt.Coder, m *Epoch) { epochFields(c, ops, m) }),
		wirefmt.NewKind[Message](4, func(c *wirefmt.Coder, m *Heard) {
			wirefmt.Uint(c, &m.Notice)
			idList(c, &m.Open)
		}),
		wirefmt.NewKind[Message](5, func(c *wirefmt.Coder, m *Renew) { wirefmt.Uint(c, &m.Tag) }),
		wirefmt.NewKind[Message](6, func(c *wirefmt.Coder, m *Forget) { idList(c, &m.IDs) }),
		wirefmt.NewKind[Message](7, func(*wirefmt.Coder, *Bye) {}),
		wirefmt.NewKind[Message](16, welcomeFields),
		wirefmt.NewKind[Message](17, fetchedFields),
		wirefmt.NewKind[Message](18, AnswerFields),
		wirefmt.NewKind[Message](19, func(c *wirefmt.Coder, m *Notice) {
			wirefmt.Uint(c, &m.Notice)
			partList(c, &m.Parts)
		}),
		wirefmt.NewKind[Message](20, func(c *wirefmt.Coder, m *Renewed) {
			wirefmt.Uint(c, &m.Tag)
			wirefmt.Uint(c, &m.Generation)
		}),
		wirefmt.NewKind[Message](21, func(*wirefmt.Coder, *Unknown) {}),
	)
}

func helloFields(c *wirefmt.Coder, m *Hello) {
	wirefmt.Uint(c, &m.Token)
	wirefmt.Uint(c, &m.At)
	wirefmt.Uint(c, &m.First)
	wirefmt.Uint(c, &m.Era)
	wirefmt.Uint(c, &m.News)
	wirefmt.Bool(c, &m.Leases)
	idList(c, &m.Open)
}

func fetchFields(c *wirefmt.Coder, m *Fetch) {
	wirefmt.Uint(c, &m.Tag)
	wirefmt.Uint(c, &m.News)
	bounded(c, &m.Wants, 2, MaxWants, "wants", func(c *wirefmt.Coder, w *Want) {
		wirefmt.Bytes(c, &w.Lo)
		wirefmt.Bytes(c, &w.Hi)
	})
	credFields(c, &m.Cred)
}

func epochFields(c *wirefmt.Coder, ops *wirefmt.Format[Op], m *Epoch) {
	wirefmt.Uint(c, &m.Number)
	wirefmt.Uint(c, &m.Era)
	wirefmt.Uint(c, &m.Acked)
	wirefmt.Uint(c, &m.News)
	bounded(c, &m.Assumes, 3, MaxAssumptions, "assumptions", assumptionFields)
	bounded(c, &m.Blind, 3, MaxAssumptions, "assumptions", assumptionFields)
	bounded(c, &m.Steps, 7, MaxSteps, "steps", func(c *wirefmt.Coder, s *Step) {
		ops.Inner(c, 0, &s.Op)
		credFields(c, &s.Cred)
		wirefmt.Int(c, &s.Now)
		errnoField(c, &s.Errno)
	})
}

func welcomeFields(c *wirefmt.Coder, m *Welcome) {
	wirefmt.Uint(c, &m.Token)
	wirefmt.Uint(c, &m.At)
	wirefmt.Uint32(c, &m.Session)
	wirefmt.Uint(c, &m.Lease)
	wirefmt.Int(c, &m.Now)
	wirefmt.Uint(c, &m.Generation)
	credFields(c, &m.Cred)
	wirefmt.Bool(c, &m.Trusted)
	wirefmt.Bool(c, &m.ReadOnly)
}

func fetchedFields(c *wirefmt.Coder, m *Fetched) {
	wirefmt.Uint(c, &m.Tag)
	partList(c, &m.Changed)
	wirefmt.Uint(c, &m.News)
	wirefmt.List(c, &m.Facts, 3, func(c *wirefmt.Coder, f *Fact) {
		wirefmt.Bytes(c, &f.Lo)
		wirefmt.Bytes(c, &f.Hi)
		wirefmt.List(c, &f.Records, 2, func(c *wirefmt.Coder, r *Record) {
			wirefmt.Bytes(c, &r.Key)
			wirefmt.Shared(c, &r.Value)
		})
	})
	errnoField(c, &m.Refused)
}

// AnswerFields takes the fields of an Answer. A server keeps those that its client may not have
// got.
func AnswerFields(c *wirefmt.Coder, m *Answer) {
	wirefmt.Uint(c, &m.Number)
	wirefmt.Enum(c, &m.Refused, Accepted, Unlawful, "refusal")
	wirefmt.Uint(c, &m.Era)
	wirefmt.Uint(c, &m.Serial)
	partList(c, &m.Moved)
	partList(c, &m.Changed)
	wirefmt.Uint(c, &m.News)
	wirefmt.Int(c, &m.Now)
}

// bounded takes a list of at most so many elements.
func bounded[T any](c *wirefmt.Coder, list *[]T, sizeBytes, most int, what string, fields func(*wirefmt.Coder, *T)) {
	wirefmt.List(c, list, sizeBytes, fields)
	if len(*list) > most {
		c.Failf("%d %s (want at most %d)", len(*list), what, most)
	}
}

func idList(c *wirefmt.Coder, ids *[]ID) {
	wirefmt.List(c, ids, 1, func(c *wirefmt.Coder, id *ID) { wirefmt.Uint(c, id) })
}

func partFields(c *wirefmt.Coder, p *Part) {
	wirefmt.Uint(c, &p.ID)
	wirefmt.Enum(c, &p.Aspect, Everything, Xattrs, "aspect")
	if p.Aspect == Name {
		wirefmt.String(c, &p.Name)
	}
}

func partList(c *wirefmt.Coder, parts *[]Part) { wirefmt.List(c, parts, 2, partFields) }

func assumptionFields(c *wirefmt.Coder, a *Assumption) {
	partFields(c, &a.Part)
	wirefmt.Uint(c, &a.Version)
}

func credFields(c *wirefmt.Coder, m *Cred) {
	wirefmt.Uint32(c, &m.UID)
	wirefmt.Uint32(c, &m.GID)
	bounded(c, &m.Groups, 1, MaxGroups, "groups", func(c *wirefmt.Coder, g *uint32) { wirefmt.Uint32(c, g) })
}

func errnoField(c *wirefmt.Coder, e *Errno) {
	n := uint32(*e)
	if wirefmt.Uint32(c, &n); n > 1<<16-1 {
		c.Failf("an error of number %d", n)
	}
	*e = Errno(n)
}

// AttrFields takes the fields of attributes.
func AttrFields(c *wirefmt.Coder, a *Attr) {
	wirefmt.Enum(c, &a.Kind, 0, Socket, "kind of object")
	modeField(c, &a.Mode)
	wirefmt.Uint32(c, &a.UID)
	wirefmt.Uint32(c, &a.GID)
	wirefmt.Uint32(c, &a.Links)
	wirefmt.Uint(c, &a.Size)
	for _, at := range []*Time{&a.Modified, &a.Changed, &a.Accessed, &a.Created} {
		wirefmt.Int(c, at)
	}
}

func modeField(c *wirefmt.Coder, m *Mode) {
	mode := uint32(*m)
	if wirefmt.Uint32(c, &mode); mode > uint32(AllModes) {
		c.Failf("a mode of %o", mode)
	}
	*m = Mode(mode)
}
