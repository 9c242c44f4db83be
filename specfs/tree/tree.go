package tree

import (
	"fmt"

	"github.com/foresay/foresay/keyspace"
	"github.com/foresay/foresay/specfs"
)

// A Call is what an operation needs to know beside itself.
type Call struct {
	// Serial becomes the version of all that the operation changes. It is higher than those of all
	// earlier changes.
	Serial specfs.Version
	// Now is the time that objects are given. It may be behind an object's last one, which it does not
	// replace then.
	Now     specfs.Time
	Cred    specfs.Cred
	Witness Witness // nil: nobody
}

// A Witness is told what an operation has to do with.
type Witness interface {
	// Saw is told of each part on which the result depends, with its version. On another state in
	// which these parts have the same versions the operation has the same result. A part may be
	// named again.
	Saw(specfs.Assumption)
	// Changed is told of each part that the operation changes, with the version before. Not all of
	// these parts were seen: two clients may add names to a directory, which changes its
	// attributes, though neither has looked at them.
	Changed(specfs.Assumption)
}

// Format makes an empty file system in a space that has none: a root, with an owner and a mode.
func Format(space keyspace.Space, call Call, mode specfs.Mode) {
	t := &tree{space: space, Call: call}
	root := &object{ID: specfs.Root, Attr: t.newAttr(specfs.Directory, mode), Parent: specfs.Root}
	root.Links = 2
	t.create(root)
}

// Do executes an operation. The space has a file system; it may lie below others, as a
// keyspace.Layer does. What it returns holds no part of the space.
func Do(space keyspace.Space, call Call, op specfs.Op) specfs.Result {
	t := &tree{space: space, Call: call}
	result := t.do(op)
	if result.Errno != specfs.OK {
		return specfs.Result{Errno: result.Errno}
	}
	return result
}

// tree is a file system during one operation.
type tree struct {
	space keyspace.Space
	Call
}

func (t *tree) do(op specfs.Op) specfs.Result {
	switch op := op.(type) {
	case specfs.GetAttr:
		return t.getAttr(op)
	case specfs.Lookup:
		return t.lookup(op)
	case specfs.Check:
		return t.check(op)
	case specfs.List:
		return t.list(op)
	case specfs.ParentOf:
		return t.parentOf(op)
	case specfs.ReadAt:
		return t.readAt(op)
	case specfs.ReadLink:
		return t.readLink(op)
	case specfs.GetXattr:
		return t.getXattr(op)
	case specfs.ListXattrs:
		return t.listXattrs(op)
	case specfs.Make:
		return t.make(op)
	case specfs.Link:
		return t.link(op)
	case specfs.Unlink:
		return t.unlink(op)
	case specfs.RemoveDir:
		return t.removeDir(op)
	case specfs.Rename:
		return t.rename(op)
	case specfs.SetAttr:
		return t.setAttr(op)
	case specfs.WriteAt:
		return t.writeAt(op)
	case specfs.Allocate:
		return t.allocate(op)
	case specfs.SetXattr:
		return t.setXattr(op)
	case specfs.RemoveXattr:
		return t.removeXattr(op)
	case specfs.Reap:
		return t.reap(op)
	}
	panic(fmt.Sprintf("tree: %T is no operation", op))
}

func failed(e specfs.Errno) specfs.Result { return specfs.Result{Errno: e} }
