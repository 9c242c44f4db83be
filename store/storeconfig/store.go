package storeconfig

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/foresay/foresay/internal/catalog"
	"github.com/foresay/foresay/internal/cli/configfile"
	"github.com/foresay/foresay/store"
)

// A Store is the file that all machines and clients of a store have in common: what it consists of,
// and where that is.
type Store struct {
	Cluster string `json:"cluster"`
	// ID is random, and stays in all epochs: names of clusters are often the same. Files of earlier
	// versions have none. See Identity.
	ID     string `json:"id,omitempty"`
	Epoch  uint64 `json:"epoch"`
	Shards int    `json:"shards"`
	Sites  []Site `json:"sites"`
	// Placement are the sites that have a copy of each shard, the one that leads it first in front;
	// left out: all sites have all. 'foresay store move' changes it while the store runs.
	Placement [][]string `json:"placement,omitempty"`
	// Coordinating are likewise the sites of groups that only coordinate transactions, of protocols
	// that have any: one that is led at each site in the beginning.
	Coordinating [][]string `json:"coordinating,omitempty"`
	// Moves are the copies of shards that were moved to other sites, or are being moved.
	Moves []Move `json:"moves,omitempty"`
	// Protocol is how the sites agree: one of package catalog's, empty for the first of them. It
	// cannot be changed later.
	Protocol string `json:"protocol,omitempty"`
	// Mode is which of the protocol's variants it is, empty for the first of them. It cannot be
	// changed later.
	Mode string `json:"mode,omitempty"`
	// Order is in which order servers handle requests: ByArrival, for protocols that can, or empty: as
	// they come. Machines that disagree work together.
	Order string `json:"order,omitempty"`
	// Speculate is how far transactions build on what is not final, of protocols that let them: one of
	// their degrees, empty for the first of them. Machines that disagree work together.
	Speculate string `json:"speculate,omitempty"`
	// Readers is how many copies of each shard serve reads, of protocols that can have fewer than all;
	// 0 is all. Machines that disagree work together.
	Readers   int    `json:"readers,omitempty"`
	RoundTrip string `json:"round_trip,omitempty"`
	Retain    string `json:"retain,omitempty"`
	MaxAhead  string `json:"max_ahead,omitempty"`
	// MaxOffset is how far clocks of machines may be apart, for protocols that rely on it.
	MaxOffset string `json:"max_offset,omitempty"`
	MaxTxns   int    `json:"max_txns,omitempty"`
	// Left are the names of machines whose sites were replaced. None is used again: what is on the
	// disk of an old one would be taken for the new one's.
	Left []string `json:"left,omitempty"`

	times times
	proto store.Protocol
}

// times are a store's durations; 0 is the default of package store.
type times struct{ roundTrip, retain, maxAhead, maxOffset time.Duration }

// A Move is as in package store.
type Move struct {
	Shard  int    `json:"shard"`
	From   string `json:"from"`
	To     string `json:"to"`
	Server int    `json:"server"` // the number of the server at To
	Back   bool   `json:"back,omitempty"`
	Done   bool   `json:"done,omitempty"`
}

// A Site is a datacentre.
type Site struct {
	Name     string    `json:"name"`
	Number   int       `json:"number"`
	Fenced   bool      `json:"fenced,omitempty"`
	Since    uint64    `json:"since,omitempty"` // the epoch in which it took a lost one's place
	Machines []Machine `json:"machines"`
}

// A Machine is a process that runs some of a site's shards, and where it is.
type Machine struct {
	Name   string `json:"name"`
	Peers  string `json:"peers"`
	Client string `json:"client"`
	Shards []int  `json:"shards,omitempty"`
}

// namePattern is what names of sites and machines look like: they become parts of names of files.
var namePattern = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$`)

// ReadStore reads a store's file. Its errors name the file, the line and the field.
func ReadStore(name string) (*Store, error) {
	s := &Store{}
	if err := configfile.Read(name, s, s.check); err != nil {
		return nil, err
	}
	return s, nil
}

// Identity tells the store from all others, also those of the same name: its ID or, if it has none,
// what a file of earlier versions says that another store's hardly does. That changes when a site
// is replaced; the ID does not.
func (s *Store) Identity() string {
	if s.ID != "" {
		return s.ID
	}
	h := sha256.New()
	fmt.Fprintf(h, "%q %q %q %d", s.Cluster, s.proto.Name, s.Mode, s.Shards)
	for _, site := range s.Sites {
		fmt.Fprintf(h, " %q %d", site.Name, site.Number)
		for _, m := range site.Machines { // clients' addresses differ from view to view
			fmt.Fprintf(h, " %q %q", m.Name, m.Peers)
		}
	}
	return hex.EncodeToString(h.Sum(nil)[:16])
}

// StoreProtocol returns the protocol that the file names.
func (s *Store) StoreProtocol() store.Protocol { return s.proto }

// Topology returns the sites as the protocol's packages want them.
func (s *Store) Topology() store.Topology {
	t := store.Topology{Epoch: s.Epoch, Shards: s.Shards, Placement: s.Placement, Coordinating: s.Coordinating}
	for _, m := range s.Moves {
		t.Moves = append(t.Moves, store.Move(m))
	}
	for _, site := range s.Sites {
		out := store.TopologySite{Name: site.Name, Number: site.Number, Fenced: site.Fenced, Since: site.Since}
		for _, m := range site.Machines {
			out.Machines = append(out.Machines, store.Machine{Name: m.Name, Peers: m.Peers, Client: m.Client, Shards: m.Shards})
		}
		t.Sites = append(t.Sites, out)
	}
	return t
}

// ByArrival is an Order: that in which requests should have arrived at all servers that they are
// sent to.
const ByArrival = "arrival"

// CheckOrder returns an error that says why a protocol cannot handle requests in an order, or nil.
func CheckOrder(p store.Protocol, order string) error {
	switch {
	case order != "" && order != ByArrival:
		return fmt.Errorf("unknown order %q (want %s, or none)", order, ByArrival)
	case order != "" && !p.Orders:
		return fmt.Errorf("the protocol %s handles requests as they come", p.Name)
	}
	return nil
}

// CheckSpeculate returns an error that says why a protocol's transactions cannot build on what is
// not final as far as that.
func CheckSpeculate(p store.Protocol, degree string) error {
	switch {
	case degree == "" || slices.Contains(p.Degrees, degree):
		return nil
	case p.Degrees == nil:
		return fmt.Errorf("transactions of %s build on nothing that is not final", p.Title())
	}
	return fmt.Errorf("unknown degree %q (want %s)", degree, strings.Join(p.Degrees, ", "))
}

// CheckReaders returns an error that says why not so many copies of each shard can serve reads: 0
// is all. Shards are placed at sites as Placement says.
func CheckReaders(p store.Protocol, readers int, placement [][]string, sites int) error {
	copies := sites
	for _, at := range placement {
		copies = min(copies, len(at))
	}
	switch {
	case readers == 0:
		return nil
	case !p.Readers:
		return fmt.Errorf("in a store of the protocol %s copies that serve reads are not told from others", p.Name)
	case readers < 2: // one may be where nobody looks for it yet, while copies move
		return fmt.Errorf("it is %d; want at least 2 (or 0 for all copies)", readers)
	case readers > copies:
		return fmt.Errorf("it is %d, and a shard has no more than %d copies", readers, copies)
	}
	return nil
}

// RoundTripTime returns round_trip, 0 for the default.
func (s *Store) RoundTripTime() time.Duration { return s.times.roundTrip }

// RetainTime returns retain, 0 for the default.
func (s *Store) RetainTime() time.Duration { return s.times.retain }

// MaxAheadTime returns max_ahead, 0 for the default.
func (s *Store) MaxAheadTime() time.Duration { return s.times.maxAhead }

// MaxOffsetTime returns max_offset, 0 for the default.
func (s *Store) MaxOffsetTime() time.Duration { return s.times.maxOffset }

// Site returns the site of a name, nil if there is none.
func (s *Store) Site(name string) *Site {
	i := slices.IndexFunc(s.Sites, func(site Site) bool { return site.Name == name })
	if i < 0 {
		return nil
	}
	return &s.Sites[i]
}

// SiteNames returns the sites' names, in their order.
func (s *Store) SiteNames() []string {
	var out []string
	for _, site := range s.Sites {
		out = append(out, site.Name)
	}
	return out
}

// check validates the file and fills in what follows from it.
func (s *Store) check() error {
	switch {
	case s.Cluster == "":
		return configfile.Fieldf("cluster", "it is missing: the name that all machines and clients of the store have in "+
			"their files")
	case s.ID != "" && !namePattern.MatchString(s.ID):
		return configfile.Fieldf("id", "%q is none: letters, digits, and after the first one dots, dashes and underscores",
			s.ID)
	case s.Epoch == 0:
		return configfile.Fieldf("epoch", "it is missing: 1, and one more with each change of the sites")
	case s.Shards == 0:
		return configfile.Fieldf("shards", "it is missing: how many parts each site's copy has")
	case s.MaxTxns < 0:
		return configfile.Fieldf("max_txns", "%d is less than 0", s.MaxTxns)
	}
	var err error
	if s.proto, err = catalog.Store(s.Protocol); err != nil {
		return configfile.Field("protocol", err)
	}
	if s.proto, err = s.proto.In(s.Mode); err != nil {
		return configfile.Field("mode", err)
	}
	if err := CheckOrder(s.proto, s.Order); err != nil {
		return configfile.Field("order", err)
	}
	if err := CheckSpeculate(s.proto, s.Speculate); err != nil {
		return configfile.Field("speculate", err)
	}
	if err := s.checkTimes(); err != nil {
		return err
	}
	if len(s.Sites) == 0 {
		return configfile.Fieldf("sites", "there are none")
	}
	used := map[string]string{} // addresses, and whose they are
	for i, site := range s.Sites {
		at := fmt.Sprintf("sites[%d]", i)
		if err := site.check(at, used); err != nil {
			return err
		}
		for j, m := range site.Machines {
			if slices.Contains(s.Left, m.Name) {
				return configfile.Fieldf(fmt.Sprintf("%s.machines[%d].name", at, j),
					"there was a machine %s before, as \"left\" says; a new one needs a name of its own", m.Name)
			}
		}
		if site.Since > s.Epoch {
			return configfile.Fieldf(at+".since", "it is %d, and the epoch is %d", site.Since, s.Epoch)
		}
	}
	if s.proto.FixedSites && slices.ContainsFunc(s.Sites, func(site Site) bool { return site.Fenced || site.Since > 0 }) {
		return configfile.Fieldf("sites", "a store of the protocol %s has the sites that it began with: none can be fenced "+
			"or replaced", s.proto.Name) // rather than that a placement has one of them
	}
	if s.Placement != nil && !s.proto.Partial {
		return configfile.Fieldf("placement", "in a store of the protocol %s all sites have all shards", s.proto.Name)
	}
	if err := s.Topology().ValidPlacement(); err != nil {
		return configfile.Field("placement", err)
	}
	if err := CheckReaders(s.proto, s.Readers, s.Placement, len(s.Sites)); err != nil {
		return configfile.Field("readers", err)
	}
	if err := s.checkCoordinating(); err != nil {
		return err
	}
	if s.Moves != nil && !s.proto.Leads {
		return configfile.Fieldf("moves", "a store of the protocol %s keeps its copies where they are", s.proto.Name)
	}
	if err := s.Topology().ValidMoves(); err != nil {
		return configfile.Field("moves", err)
	}
	if err := s.Topology().Validate(); err != nil {
		return configfile.Field("sites", err)
	}
	return nil
}

// What round_trip may be. Timeouts are multiples of it: with less, computers that do other things
// too run into them all the time; with more, nobody would see the end of one.
const (
	leastRoundTrip = time.Millisecond
	mostRoundTrip  = time.Minute
)

// offsetTrips is how many round trips max_offset may be. A commit may wait for twice that until its
// time has passed on all clocks, and transactions that wait behind another one for more than eight
// round trips are refused.
const offsetTrips = 4

// checkTimes reads the durations.
func (s *Store) checkTimes() error {
	for _, f := range [...]struct {
		field, text string
		to          *time.Duration
	}{{"round_trip", s.RoundTrip, &s.times.roundTrip}, {"retain", s.Retain, &s.times.retain},
		{"max_ahead", s.MaxAhead, &s.times.maxAhead}, {"max_offset", s.MaxOffset, &s.times.maxOffset}} {
		if f.text == "" {
			continue
		}
		d, err := time.ParseDuration(f.text)
		if err != nil || d <= 0 {
			return configfile.Fieldf(f.field, "%q is no duration such as 250ms", f.text)
		}
		*f.to = d
	}
	if d := s.times.roundTrip; s.RoundTrip != "" && (d < leastRoundTrip || d > mostRoundTrip) {
		return configfile.Fieldf("round_trip", "it is %s; want %v to %v: timeouts are multiples of it", s.RoundTrip,
			leastRoundTrip, mostRoundTrip)
	}
	if s.MaxOffset == "" {
		return nil
	}
	if !s.proto.Clocked {
		return configfile.Fieldf("max_offset", "the protocol %s does not rely on clocks", s.proto.Name)
	}
	trip := cmp.Or(s.times.roundTrip, store.DefaultRoundTrip)
	if most := max(offsetTrips*trip, store.DefaultMaxOffset); s.times.maxOffset > most {
		return configfile.Fieldf("max_offset", "it is %s; want at most %v, which with a round_trip of %v is %d of those: "+
			"commits wait for up to twice max_offset, and what waits behind one for long is refused", s.MaxOffset, most,
			trip, offsetTrips)
	}
	return nil
}

// checkCoordinating validates the groups that only coordinate.
func (s *Store) checkCoordinating() error {
	switch {
	case s.Coordinating != nil && !s.proto.Coordinating:
		return configfile.Fieldf("coordinating", "the protocol %s has no groups that only coordinate%s", s.proto.Name,
			inMode(s.Mode))
	case s.Coordinating == nil && s.proto.Coordinating:
		return configfile.Fieldf("coordinating", "it is missing: the sites of each of the groups that coordinate the "+
			"transactions of the protocol %s%s", s.proto.Name, inMode(s.Mode))
	}
	if err := s.Topology().ValidCoordinating(); err != nil {
		return configfile.Field("coordinating", err)
	}
	return nil
}

func inMode(mode string) string {
	if mode == "" {
		return ""
	}
	return " in mode " + mode
}

func (s Site) check(at string, used map[string]string) error {
	if !namePattern.MatchString(s.Name) {
		return configfile.Fieldf(at+".name", "%q is no name: letters, digits, and after the first one dots, dashes and "+
			"underscores", s.Name)
	}
	if s.Number < 1 || s.Number > store.MaxSiteNumber {
		return configfile.Fieldf(at+".number", "it is %d; want 1 to %d, which no other site has or had", s.Number,
			store.MaxSiteNumber)
	}
	if len(s.Machines) == 0 {
		return configfile.Fieldf(at+".machines", "there are none")
	}
	for j, m := range s.Machines {
		at := fmt.Sprintf("%s.machines[%d]", at, j)
		if !namePattern.MatchString(m.Name) {
			return configfile.Fieldf(at+".name", "%q is no name: letters, digits, and after the first one dots, dashes and "+
				"underscores", m.Name)
		}
		for _, a := range [...]struct{ field, address string }{{at + ".peers", m.Peers}, {at + ".client", m.Client}} {
			if err := configfile.CheckAddress(a.field, a.address, false); err != nil {
				return err
			}
			if other, ok := used[a.address]; ok && !s.Fenced {
				return configfile.Fieldf(a.field, "%q is %s as well", a.address, other)
			}
			if !s.Fenced {
				used[a.address] = a.field
			}
		}
	}
	return nil
}

// enoughCopies is how many copies a shard, or a group that coordinates, has at the least if one of
// its sites may be away.
const enoughCopies = 3

// Fragile says what is away while one site is; "" if nothing is.
func (s *Store) Fragile() string {
	switch {
	case len(s.Sites) == 1:
		return fmt.Sprintf("nothing is replicated: all is at the site %s, and lost with it; with %d sites one may be lost",
			s.Sites[0].Name, enoughCopies)
	case len(s.Sites) < enoughCopies && s.Placement == nil:
		return fmt.Sprintf("all is away while one of the sites %s is: a majority of two is both; with %d sites it is not",
			strings.Join(s.SiteNames(), " and "), enoughCopies)
	}
	for _, all := range []struct {
		what  string
		sites [][]string
	}{{"shard", s.Placement}, {"the coordinating group", s.Coordinating}} {
		for k, at := range all.sites {
			if len(at) < enoughCopies {
				return fmt.Sprintf("%s %d is away while one of its sites is: it has copies at %s only; with %d it is not", all.what,
					k, strings.Join(at, ", "), enoughCopies)
			}
		}
	}
	return ""
}
