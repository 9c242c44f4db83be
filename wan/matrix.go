package wan

import (
	"fmt"
	"iter"
	"slices"
	"time"
)

// A Matrix holds the links between sites, and within each. It is a value: With methods return
// changed copies. The zero Matrix has no sites.
type Matrix struct {
	sites []Site
	links []Link // Invariant: links[i*len(sites)+j] leads from sites[i] to sites[j]; never changed once returned.
}

// Uniform returns a matrix in which every two sites are rtt apart, half of it in each direction,
// and nothing takes time within a site. It panics if rtt is negative, or a site is given twice or
// has no valid name.
func Uniform(rtt time.Duration, sites ...Site) Matrix {
	m, err := newMatrix(sites)
	if err != nil {
		panic("wan: " + err.Error())
	}
	if rtt < 0 {
		panic(fmt.Sprintf("wan: round trip of %v is negative", rtt))
	}
	for i := range sites {
		for j := range sites {
			if i != j {
				m.links[i*len(sites)+j] = Link{Delay: oneWay(rtt, i < j)}
			}
		}
	}
	return m
}

// SpecRPC returns the data centres of SpecRPC's evaluation: oregon, ireland and seoul [SpecRPC
// Table 1].
func SpecRPC() Matrix {
	const oregon, ireland, seoul = "oregon", "ireland", "seoul"
	return Uniform(0, oregon, ireland, seoul).
		WithRTT(oregon, ireland, 140*time.Millisecond).
		WithRTT(oregon, seoul, 122*time.Millisecond).
		WithRTT(ireland, seoul, 243*time.Millisecond)
}

func newMatrix(sites []Site) (Matrix, error) {
	for i, s := range sites {
		if err := s.Validate(); err != nil {
			return Matrix{}, err
		}
		if slices.Contains(sites[:i], s) {
			return Matrix{}, fmt.Errorf("site %q is named twice", s)
		}
	}
	return Matrix{sites: slices.Clone(sites), links: make([]Link, len(sites)*len(sites))}, nil
}

// oneWay halves a round trip so that the two directions sum up to it, an odd nanosecond included.
func oneWay(rtt time.Duration, forward bool) time.Duration {
	if forward {
		return rtt / 2
	}
	return rtt - rtt/2
}

// Sites returns the sites, in the order in which they were given.
func (m Matrix) Sites() []Site { return slices.Clone(m.sites) }

// Has reports whether s is a site of m.
func (m Matrix) Has(s Site) bool { return slices.Contains(m.sites, s) }

// Link returns the link of a direction; ok is false if one of its sites is not in m.
func (m Matrix) Link(p Path) (l Link, ok bool) {
	i := m.index(p)
	if i < 0 {
		return Link{}, false
	}
	return m.links[i], true
}

// RTT returns the round-trip time between two sites, without jitter: the delays of both directions.
// It is 0 for a site that m does not have.
func (m Matrix) RTT(a, b Site) time.Duration {
	to, _ := m.Link(Path{From: a, To: b})
	back, _ := m.Link(Path{From: b, To: a})
	return to.Delay + back.Delay
}

// Links returns all directions and their links, those within sites included, in the order of Sites.
func (m Matrix) Links() iter.Seq2[Path, Link] {
	return func(yield func(Path, Link) bool) {
		for i, l := range m.links {
			n := len(m.sites)
			if !yield(Path{From: m.sites[i/n], To: m.sites[i%n]}, l) {
				return
			}
		}
	}
}

// WithLink returns m with the link of one direction replaced. It panics if m lacks a site of p or
// if a value of l is out of range.
func (m Matrix) WithLink(p Path, l Link) Matrix {
	i := m.index(p)
	if i < 0 {
		panic(fmt.Sprintf("wan: %v: not among the sites %q", p, m.sites))
	}
	if err := l.Validate(); err != nil {
		panic(fmt.Sprintf("wan: link %v: %v", p, err))
	}
	m.links = slices.Clone(m.links)
	m.links[i] = l
	return m
}

// WithRTT returns m with the delays of both directions between a and b, which may be one site,
// replaced by half of rtt each. It panics if m lacks one of them or rtt is negative.
func (m Matrix) WithRTT(a, b Site, rtt time.Duration) Matrix {
	for _, forward := range [...]bool{true, false} {
		p := Path{From: a, To: b}
		if !forward {
			p = p.Reverse()
		}
		l, _ := m.Link(p)
		l.Delay = oneWay(rtt, forward)
		m = m.WithLink(p, l)
	}
	return m
}

func (m Matrix) index(p Path) int {
	i, j := slices.Index(m.sites, p.From), slices.Index(m.sites, p.To)
	if i < 0 || j < 0 {
		return -1
	}
	return i*len(m.sites) + j
}
