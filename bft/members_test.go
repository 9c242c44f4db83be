package bft

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/foresay/foresay/internal/plant"
	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/quorum"
)

func directory(n int) *Directory {
	d := &Directory{}
	for i := range n {
		d.Members = append(d.Members, Party{ID: protocol.ID(i + 1), Key: Key{byte(i + 1)}, Address: "a"})
	}
	return d
}

// TestAfter makes changes, one after the other, as far as they are lawful.
func TestAfter(t *testing.T) {
	d := directory(4)
	for _, c := range []struct {
		change Change
		want   string // the error
		ids    string
	}{
		{Change{Remove, Party{ID: 1}}, "fewer than 4", ""},
		{Change{Remove, Party{ID: 9}}, "no member", ""},
		{Change{RotateKeys, Party{ID: 1, Key: Key{2}}}, "is, or was, a member's", ""},
		{Change{RotateKeys, Party{ID: 1, Key: Key{11}}}, "", "1 2 3 4"},
		{Change{RotateKeys, Party{ID: 1, Key: Key{1}}}, "is, or was, a member's", ""},
		{Change{Replace, Party{ID: 2, Key: Key{11}}}, "is, or was, a member's", ""},
		{Change{Replace, Party{ID: 2, Key: Key{12}, Address: "b"}}, "", "1 2 3 4"},
		{Change{Add, Party{ID: 2, Key: Key{13}}}, "a member already", ""},
		{Change{Add, Party{ID: 5, Key: Key{2}}}, "is, or was, a member's", ""},
		{Change{Add, Party{ID: 5, Key: Key{5}}}, "", "1 2 3 4 5"},
		{Change{Remove, Party{ID: 1}}, "", "2 3 4 5"},
		{Change{Add, Party{ID: 0, Key: Key{20}}}, "cannot be a member", ""},
		{Change{Add, Party{ID: 1, Key: Key{11}}}, "is, or was, a member's", ""},
	} {
		next, err := d.After(c.change)
		if c.want != "" {
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v: %v, want %q", c.change, err, c.want)
			}
			continue
		}
		if err != nil || next.Epoch != d.Epoch+1 || len(next.Members) != len(strings.Fields(c.ids)) {
			t.Fatalf("%v: %+v: %v", c.change, next, err)
		}
		back, err := d.Decode(next.Encode())
		if diff := cmp.Diff(next, back); err != nil || diff != "" {
			t.Errorf("%v: %v: %s", c.change, err, diff)
		}
		d = next
	}
	if !slices.Equal(d.Gone, []Key{{1}, {2}, {11}}) || d.Members[0].Address != "b" {
		t.Errorf("after all: %+v", d)
	}
}

// TestConsecutiveEpochs: each quorum of an epoch shares an honest replica with each of the next
// one, though as many may be faulty as ever: among them is who is removed or replaced.
func TestConsecutiveEpochs(t *testing.T) {
	for n := MinMembers; n <= MaxMembers; n++ {
		d := directory(n)
		for _, c := range []Change{{Add, Party{ID: 99, Key: Key{99}}}, {Remove, Party{ID: 1}},
			{Replace, Party{ID: 1, Key: Key{99}}}, {RotateKeys, Party{ID: 1, Key: Key{99}}}} {
			next, err := d.After(c)
			if err != nil {
				if n > MinMembers && n < MaxMembers {
					t.Errorf("%d members, %v: %v", n, c.Kind, err)
				}
				continue
			}
			common, faulty := 0, quorum.Traitors(n)
			for _, m := range d.Members {
				if next.Member(m.ID) && (c.Kind == RotateKeys || next.IsMember(m.Key)) {
					common++
				}
			}
			if c.Kind == Remove || c.Kind == Replace {
				faulty--
			}
			of := d.Quorum() - (n - common)
			ofNext := next.Quorum() - (len(next.Members) - common)
			if shared := of + ofNext - common; shared <= faulty {
				t.Errorf("%d members, %v: quorums share %d, of which %d may be faulty", n, c.Kind, shared, faulty)
			}
		}
	}
}

// TestViews: a view belongs to an epoch, whose members lead in turn.
func TestViews(t *testing.T) {
	d := directory(4)
	for _, e := range []Epoch{0, 1, 7} {
		if v := e.First() + 6; v.Epoch() != e || v.Turn() != 6 || d.Primary(v).ID != 3 || v-6 != e.First() {
			t.Errorf("view %d is the turn %d of epoch %d, and %d leads", v, v.Turn(), v.Epoch(), d.Primary(v).ID)
		}
	}
}

// TestPlants leaves out one rule at a time, in the source: the test that is named must notice.
func TestPlants(t *testing.T) {
	bugs := []plant.Bug{
		{
			Name: "a key comes back", Test: "TestAfter",
			Old: "slices.Contains(d.Gone, key)):", New: "slices.Contains(d.Gone, key) && !MUTANT):",
		},
		{
			Name: "so few are left that none may be faulty", Test: "TestAfter",
			Old: "len(d.Members) <= MinMembers:", New: "len(d.Members) <= MinMembers && !MUTANT:",
		},
		{
			Name: "views of all epochs are the same", Test: "TestViews",
			Old: "func (e Epoch) First() View { return View(e) << epochBits }",
			New: "func (e Epoch) First() View {\n\tif MUTANT {\n\t\treturn 0\n\t}\n\treturn View(e) << epochBits\n}",
		},
	}
	for i := range bugs {
		bugs[i].Dir = "bft"
	}
	plant.Catch(t, bugs)
}
