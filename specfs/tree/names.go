package tree

import "github.com/foresay/foresay/specfs"

func (t *tree) lookup(op specfs.Lookup) specfs.Result {
	_, e, errno := t.named(op.Parent, op.Name)
	if errno != specfs.OK {
		return failed(errno)
	}
	if e.ID == 0 {
		return failed(specfs.ENOENT)
	}
	return specfs.Result{ID: e.ID, Attr: specfs.Attr{Kind: e.Kind}}
}

// named returns a directory and what a name in it stands for.
func (t *tree) named(dir specfs.ID, name string) (*object, entry, specfs.Errno) {
	d, errno := t.directory(dir)
	if errno != specfs.OK {
		return nil, entry{}, errno
	}
	e, errno := t.entryIn(d, name)
	return d, e, errno
}

// entryIn returns what a name in a directory stands for.
func (t *tree) entryIn(d *object, name string) (entry, specfs.Errno) {
	if d.Links == 0 { // once 0, its links stay so, and Meta has changed with them
		return entry{}, specfs.ENOENT
	}
	if errno := specfs.ValidName(name); errno != specfs.OK {
		return entry{}, errno
	}
	return t.entry(d.ID, name), specfs.OK
}

// vacant returns a directory in which a name stands for nothing, and to which the caller may add.
func (t *tree) vacant(dir specfs.ID, name string) (*object, specfs.Errno) {
	d, e, errno := t.named(dir, name)
	switch {
	case errno != specfs.OK:
		return nil, errno
	case e.ID != 0:
		return nil, specfs.EEXIST
	}
	return d, t.mayAdd(d)
}

func (t *tree) list(op specfs.List) specfs.Result {
	d, errno := t.known(op.ID)
	switch {
	case errno != specfs.OK:
		return failed(errno)
	case d.Kind != specfs.Directory:
		return failed(specfs.ENOTDIR)
	case !t.may(d, specfs.Read):
		return failed(specfs.EACCES)
	case d.Links == 0:
		return failed(specfs.ENOENT)
	case op.Most < 1:
		return failed(specfs.EINVAL)
	}
	t.saw(d, specfs.Names)
	var result specfs.Result
	prefix := key(recordName, op.ID)
	from := prefix
	if op.After != "" {
		from = append(namedKey(recordName, op.ID, op.After), 0)
	}
	for k, v := range t.space.Scan(from, end(prefix)) {
		if len(result.Entries) == op.Most {
			result.More = true
			break
		}
		e := mustDecode(entryLayout.Decode(v))
		result.Entries = append(result.Entries, specfs.Entry{Name: string(k[len(prefix):]), ID: e.ID, Kind: e.Kind})
	}
	return result
}

func (t *tree) parentOf(op specfs.ParentOf) specfs.Result {
	d, errno := t.known(op.ID)
	switch {
	case errno != specfs.OK:
		return failed(errno)
	case d.Kind != specfs.Directory:
		return failed(specfs.ENOTDIR)
	}
	t.saw(d, specfs.Place)
	return specfs.Result{ID: d.Parent}
}

// newAttr returns the attributes of a new object of the caller's.
func (t *tree) newAttr(k specfs.Kind, m specfs.Mode) specfs.Attr {
	a := specfs.Attr{
		Kind: k, Mode: m & specfs.AllModes, UID: t.Cred.UID, GID: t.Cred.GID, Links: 1,
		Modified: t.Now, Changed: t.Now, Accessed: t.Now, Created: t.Now,
	}
	if k == specfs.Directory {
		a.Links, a.Size = 2, 4096
	}
	return a
}

func (t *tree) make(op specfs.Make) specfs.Result {
	d, errno := t.vacant(op.Parent, op.Name)
	switch {
	case errno != specfs.OK:
		return failed(errno)
	case op.Kind < specfs.File || op.Kind > specfs.Socket:
		return failed(specfs.EINVAL)
	case (op.Kind == specfs.Symlink) != (op.Target != ""):
		return failed(specfs.EINVAL)
	case len(op.Target) > specfs.MaxTargetBytes:
		return failed(specfs.ENAMETOOLONG)
	case op.New == 0 || t.object(op.New) != nil:
		return failed(specfs.EINVAL)
	}
	o := &object{ID: op.New, Attr: t.newAttr(op.Kind, op.Mode), Target: op.Target}
	switch op.Kind {
	case specfs.Symlink:
		o.Mode, o.Size = 0o777, uint64(len(op.Target))
	case specfs.Directory:
		o.Parent = d.ID
		o.Mode &^= specfs.SetUID | specfs.SetGID
		d.Links++
	}
	if d.Mode&specfs.SetGID != 0 {
		o.GID = d.GID
		switch {
		case op.Kind == specfs.Directory:
			o.Mode |= specfs.SetGID
		case o.Mode&0o010 != 0 && !t.Cred.Super() && !t.Cred.In(d.GID):
			o.Mode &^= specfs.SetGID
		}
	}
	t.create(o)
	t.setEntry(d.ID, op.Name, 0, entry{ID: o.ID, Kind: o.Kind})
	t.changeContent(d, specfs.Names)
	return specfs.Result{ID: o.ID, Attr: o.Attr}
}

func (t *tree) link(op specfs.Link) specfs.Result {
	d, errno := t.vacant(op.Parent, op.Name)
	if errno != specfs.OK {
		return failed(errno)
	}
	o, errno := t.known(op.ID)
	switch {
	case errno != specfs.OK:
		return failed(errno)
	case o.Kind == specfs.Directory:
		return failed(specfs.EPERM)
	case o.Links == 0:
		return failed(specfs.ENOENT)
	case o.Links >= specfs.MaxLinks:
		return failed(specfs.EMLINK)
	}
	o.Links++
	t.setEntry(d.ID, op.Name, 0, entry{ID: o.ID, Kind: o.Kind})
	t.changeContent(d, specfs.Names)
	t.change(o)
	return specfs.Result{}
}

func (t *tree) unlink(op specfs.Unlink) specfs.Result {
	d, e, errno := t.victim(op.Parent, op.Name, false)
	if errno != specfs.OK {
		return failed(errno)
	}
	t.setEntry(d.ID, op.Name, e.Version, entry{})
	t.changeContent(d, specfs.Names)
	t.loseName(e)
	return specfs.Result{ID: e.ID}
}

// victim returns a directory and what a name in it stands for, which the caller may take away.
func (t *tree) victim(dir specfs.ID, name string, directory bool) (*object, entry, specfs.Errno) {
	d, e, errno := t.named(dir, name)
	switch {
	case errno != specfs.OK:
		return nil, entry{}, errno
	case e.ID == 0:
		return nil, entry{}, specfs.ENOENT
	}
	return d, e, t.mayRemove(d, e, directory)
}

// loseName takes a link from an object which is not a directory.
func (t *tree) loseName(e entry) {
	o := t.behind(e)
	o.Links--
	if o.Links > 0 {
		t.change(o)
		return
	}
	t.orphan(o)
}

// orphan notes that an object has no name any more.
func (t *tree) orphan(o *object) {
	o.Links = 0
	t.space.Put(key(recordOrphan, o.ID), nil)
	t.change(o, specfs.Meta)
}

func (t *tree) removeDir(op specfs.RemoveDir) specfs.Result {
	d, e, errno := t.victim(op.Parent, op.Name, true)
	if errno != specfs.OK {
		return failed(errno)
	}
	o := t.behind(e)
	if !t.empty(o) {
		return failed(specfs.ENOTEMPTY)
	}
	t.setEntry(d.ID, op.Name, e.Version, entry{})
	d.Links--
	t.changeContent(d, specfs.Names)
	t.orphan(o)
	return specfs.Result{ID: e.ID}
}

// empty reports whether a directory has no names, on which the result depends.
func (t *tree) empty(d *object) bool {
	t.saw(d, specfs.Names)
	prefix := key(recordName, d.ID)
	for range t.space.Scan(prefix, end(prefix)) {
		return false
	}
	return true
}
