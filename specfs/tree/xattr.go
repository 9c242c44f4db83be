package tree

import (
	"strings"

	"github.com/foresay/foresay/specfs"
)

// userXattrs is what the names of the extended attributes begin with that can be set.
const userXattrs = "user."

// withXattr returns an object whose extended attribute of a name the caller may use.
func (t *tree) withXattr(id specfs.ID, name string, want specfs.Access) (*object, specfs.Errno) {
	o, errno := t.known(id)
	plain := errno == specfs.OK && (o.Kind == specfs.File || o.Kind == specfs.Directory)
	switch {
	case errno != specfs.OK:
		return nil, errno
	case len(name) > specfs.MaxNameBytes:
		return nil, specfs.ERANGE
	case !strings.HasPrefix(name, userXattrs) || strings.ContainsRune(name, 0):
		return nil, specfs.EOPNOTSUPP
	case name == userXattrs:
		return nil, specfs.EINVAL
	case !plain && want == specfs.Write:
		return nil, specfs.EPERM
	case !plain:
		return nil, specfs.ENODATA
	case want == specfs.Write && o.Kind == specfs.Directory && o.Mode&specfs.Sticky != 0 && !t.owns(o):
		return nil, specfs.EPERM
	case !t.may(o, want):
		return nil, specfs.EACCES
	}
	return o, specfs.OK
}

func (t *tree) getXattr(op specfs.GetXattr) specfs.Result {
	o, errno := t.withXattr(op.ID, op.Name, specfs.Read)
	if errno != specfs.OK {
		return failed(errno)
	}
	t.saw(o, specfs.Xattrs)
	value, ok := t.space.Get(namedKey(recordXattr, o.ID, op.Name))
	if !ok {
		return failed(specfs.ENODATA)
	}
	return specfs.Result{Data: append([]byte(nil), value...), N: len(value)}
}

func (t *tree) listXattrs(op specfs.ListXattrs) specfs.Result {
	o, errno := t.known(op.ID)
	if errno != specfs.OK {
		return failed(errno)
	}
	t.saw(o, specfs.Xattrs)
	var result specfs.Result
	prefix := key(recordXattr, o.ID)
	for k := range t.space.Scan(prefix, end(prefix)) {
		result.Xattrs = append(result.Xattrs, string(k[len(prefix):]))
	}
	return result
}

func (t *tree) setXattr(op specfs.SetXattr) specfs.Result {
	o, errno := t.withXattr(op.ID, op.Name, specfs.Write)
	switch {
	case errno != specfs.OK:
		return failed(errno)
	case len(op.Value) > specfs.MaxXattrBytes:
		return failed(specfs.E2BIG)
	case op.Create && op.Replace:
		return failed(specfs.EINVAL)
	}
	at := namedKey(recordXattr, o.ID, op.Name)
	if op.Create || op.Replace {
		t.saw(o, specfs.Xattrs)
		switch _, ok := t.space.Get(at); {
		case ok && op.Create:
			return failed(specfs.EEXIST)
		case !ok && op.Replace:
			return failed(specfs.ENODATA)
		}
	}
	t.space.Put(at, append([]byte(nil), op.Value...))
	t.change(o, specfs.Xattrs)
	return specfs.Result{}
}

func (t *tree) removeXattr(op specfs.RemoveXattr) specfs.Result {
	o, errno := t.withXattr(op.ID, op.Name, specfs.Write)
	if errno != specfs.OK {
		return failed(errno)
	}
	t.saw(o, specfs.Xattrs)
	at := namedKey(recordXattr, o.ID, op.Name)
	if _, ok := t.space.Get(at); !ok {
		return failed(specfs.ENODATA)
	}
	t.space.Delete(at)
	t.change(o, specfs.Xattrs)
	return specfs.Result{}
}
