package specfs

import "fmt"

// Aspect is a part of what is known of an object that changes by itself, and has a version.
type Aspect uint8

// The aspects of objects.
const (
	// Everything is all aspects of an object, where it is said what has changed.
	Everything Aspect = iota
	// Meta is that the object exists, its kind, mode and owners: all that permissions depend on. Of a
	// symlink, its target too, which never changes.
	Meta
	// Stat is all attributes. Every change of an object changes it, but a change of Stat alone (a
	// directory's time of modification, say) refuses nobody who has not asked for attributes.
	Stat
	// Data is the content and size of a file.
	Data
	// Names is the names in a directory as a whole: what a listing depends on.
	Names
	// Name is one name in a directory: which object it is, or that there is none.
	Name
	// Place is which directory a directory is in.
	Place
	// Xattrs is all extended attributes.
	Xattrs
)

func (a Aspect) String() string {
	switch a {
	case Everything:
		return "everything"
	case Meta:
		return "meta"
	case Stat:
		return "stat"
	case Data:
		return "data"
	case Names:
		return "names"
	case Name:
		return "name"
	case Place:
		return "place"
	case Xattrs:
		return "xattrs"
	}
	return fmt.Sprintf("aspect %d", uint8(a))
}

// A Part is an aspect of an object.
type Part struct {
	ID     ID
	Aspect Aspect
	Name   string // if Aspect is Name
}

func (p Part) String() string {
	if p.Aspect == Name {
		return fmt.Sprintf("%d/%q", p.ID, p.Name)
	}
	return fmt.Sprintf("%d.%v", p.ID, p.Aspect)
}

// An Assumption is that a part has a version.
type Assumption struct {
	Part    Part
	Version Version
}

func (a Assumption) String() string { return fmt.Sprintf("%v@%d", a.Part, a.Version) }
