package tree

import "github.com/foresay/foresay/specfs"

func (t *tree) getAttr(op specfs.GetAttr) specfs.Result {
	o := t.object(op.ID)
	if o == nil {
		t.sawPart(specfs.Part{ID: op.ID, Aspect: specfs.Stat}, 0)
		return failed(specfs.ESTALE)
	}
	t.saw(o, specfs.Stat)
	return specfs.Result{ID: o.ID, Attr: o.Attr}
}

func (t *tree) check(op specfs.Check) specfs.Result {
	o, errno := t.known(op.ID)
	if errno == specfs.OK && !t.may(o, op.Access) {
		errno = specfs.EACCES
	}
	return failed(errno)
}

func (t *tree) readLink(op specfs.ReadLink) specfs.Result {
	o, errno := t.known(op.ID)
	switch {
	case errno != specfs.OK:
		return failed(errno)
	case o.Kind != specfs.Symlink:
		return failed(specfs.EINVAL)
	}
	return specfs.Result{Data: []byte(o.Target)}
}

func (t *tree) setAttr(op specfs.SetAttr) specfs.Result {
	o, errno := t.known(op.ID)
	if errno == specfs.OK {
		errno = t.maySet(o, op)
	}
	if errno != specfs.OK {
		return failed(errno)
	}
	aspects := t.setModeAndOwner(o, op)
	if op.Set&specfs.SetSize != 0 {
		aspects = append(aspects, specfs.Data)
		t.resize(o, op.Size)
		o.Modified = max(o.Modified, t.Now)
	}
	// A time that was set may be behind the one before; the time of a change never is.
	if op.Set&specfs.SetAccessed != 0 {
		o.Accessed = op.Times.Accessed
		if op.Set&specfs.SetAccessedNow != 0 {
			o.Accessed = t.Now
		}
	}
	if op.Set&specfs.SetModified != 0 {
		o.Modified = op.Times.Modified
		if op.Set&specfs.SetModifiedNow != 0 {
			o.Modified = t.Now
		}
	}
	t.change(o, aspects...)
	return specfs.Result{}
}

// maySet tells whether the caller may set these attributes.
func (t *tree) maySet(o *object, op specfs.SetAttr) specfs.Errno {
	const times = specfs.SetAccessed | specfs.SetModified
	const touch = times | specfs.SetAccessedNow | specfs.SetModifiedNow
	switch {
	case op.Set&specfs.SetSize != 0 && o.Kind == specfs.Directory:
		return specfs.EISDIR
	case op.Set&specfs.SetSize != 0 && o.Kind != specfs.File:
		return specfs.EINVAL
	case op.Set&specfs.SetSize != 0 && !t.mayUse(o, specfs.Write, op.Opened):
		return specfs.EACCES
	case op.Set&specfs.SetSize != 0 && op.Size > specfs.MaxFileBytes:
		return specfs.EFBIG
	case op.Set&specfs.SetOwner != 0 && !t.Cred.Super() && !(t.owns(o) && op.UID == o.UID):
		return specfs.EPERM
	case op.Set&specfs.SetGroup != 0 && !t.Cred.Super() && !(t.owns(o) && (op.GID == o.GID || t.Cred.In(op.GID))):
		return specfs.EPERM
	case op.Set&specfs.SetMode != 0 && o.Kind == specfs.Symlink:
		return specfs.EOPNOTSUPP
	case op.Set&specfs.SetMode != 0 && !t.owns(o):
		return specfs.EPERM
	case op.Set&times != 0 && !t.owns(o) && op.Set&touch != touch:
		return specfs.EPERM
	case op.Set&times != 0 && !t.owns(o) && !t.may(o, specfs.Write):
		return specfs.EACCES
	}
	return specfs.OK
}

// setModeAndOwner sets what permissions depend on, and returns which aspect that is, if any.
func (t *tree) setModeAndOwner(o *object, op specfs.SetAttr) []specfs.Aspect {
	before := o.Attr
	if op.Set&(specfs.SetOwner|specfs.SetGroup) != 0 && o.Kind != specfs.Directory ||
		op.Set&specfs.SetSize != 0 && !t.Cred.Super() {
		o.Mode = t.unprivileged(o)
	}
	if op.Set&specfs.SetOwner != 0 {
		o.UID = op.UID
	}
	if op.Set&specfs.SetGroup != 0 {
		o.GID = op.GID
	}
	if op.Set&specfs.SetMode != 0 {
		o.Mode = op.Mode & specfs.AllModes
		if !t.Cred.Super() && !t.Cred.In(o.GID) {
			o.Mode &^= specfs.SetGID
		}
	}
	if o.Mode == before.Mode && o.UID == before.UID && o.GID == before.GID {
		return nil
	}
	return []specfs.Aspect{specfs.Meta}
}

// unprivileged returns a file's mode after somebody has changed its data or owner.
func (t *tree) unprivileged(o *object) specfs.Mode {
	m := withoutPrivileges(o.Mode)
	if !t.Cred.Super() && !t.Cred.In(o.GID) {
		m &^= specfs.SetGID
	}
	return m
}
