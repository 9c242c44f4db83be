package epoch

import (
	"bytes"
	"slices"
)

// A Ballot ranks proposals: by round, then by proposer. The zero Ballot is below all others.
type Ballot struct {
	Round    uint64
	Proposer uint64 // no two proposers may have the same one
}

// Less reports whether b is below another ballot.
func (b Ballot) Less(other Ballot) bool {
	return b.Round < other.Round || b.Round == other.Round && b.Proposer < other.Proposer
}

// State is what an acceptor knows of one epoch. It must be on disk before anybody is told of it.
type State struct {
	// Invariant: Accepted is not above Promised.
	Promised Ballot
	Accepted Ballot // zero: nothing was accepted
	Value    []byte // what was accepted
}

// Prepare promises to accept nothing below a ballot. It returns false if the acceptor has promised
// that to a higher one.
func (s *State) Prepare(b Ballot) bool {
	if b == (Ballot{}) || b.Less(s.Promised) {
		return false
	}
	s.Promised = b
	return true
}

// Accept accepts a value, unless a higher ballot was promised.
func (s *State) Accept(b Ballot, value []byte) bool {
	if b == (Ballot{}) || b.Less(s.Promised) {
		return false
	}
	s.Promised, s.Accepted, s.Value = b, b, slices.Clone(value)
	return true
}

// Sites are the names of the machines of each site, fenced sites included, which have none. A
// majority of the sites is a quorum. A site counts when all its machines do.
type Sites [][]string

// Quorum reports whether enough machines are in a set.
func (s Sites) Quorum(in func(machine string) bool) bool {
	n := 0
	for _, machines := range s {
		if len(machines) > 0 && !slices.ContainsFunc(machines, func(m string) bool { return !in(m) }) {
			n++
		}
	}
	return n >= len(s)/2+1
}

// A Proposal is one ballot of a proposer.
type Proposal struct {
	Ballot Ballot
	sites  Sites
	// Invariant: value is the wanted one, or that of the highest ballot in which a machine of
	// promised has accepted one.
	value    []byte
	highest  Ballot
	promised map[string]bool
	accepted map[string]bool
}

// Propose begins a ballot for a value. The ballot must be above those that the proposer knows of.
func Propose(sites Sites, b Ballot, value []byte) *Proposal {
	return &Proposal{Ballot: b, sites: sites, value: slices.Clone(value), promised: map[string]bool{},
		accepted: map[string]bool{}}
}

// Promised notes that a machine has promised the ballot, and what it had accepted before.
func (p *Proposal) Promised(machine string, s State) {
	if p.promised[machine] || s.Promised != p.Ballot {
		return
	}
	p.promised[machine] = true
	if p.highest.Less(s.Accepted) {
		p.highest, p.value = s.Accepted, slices.Clone(s.Value)
	}
}

// Value returns what machines are to accept; ok is false until a quorum has promised the ballot.
func (p *Proposal) Value() (value []byte, ok bool) {
	return p.value, p.sites.Quorum(func(m string) bool { return p.promised[m] })
}

// Accepted notes that a machine has accepted the value in the ballot.
func (p *Proposal) Accepted(machine string, s State) {
	if s.Accepted == p.Ballot && bytes.Equal(s.Value, p.value) {
		p.accepted[machine] = true
	}
}

// Chosen reports whether the value is what the epoch is, for good.
func (p *Proposal) Chosen() bool {
	return p.sites.Quorum(func(m string) bool { return p.accepted[m] })
}
