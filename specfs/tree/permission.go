package tree

import "github.com/foresay/foresay/specfs"

// may reports whether the caller may access an object, by its mode.
func (t *tree) may(o *object, want specfs.Access) bool {
	if t.Cred.Super() {
		// Everything, but for executing what nobody may execute.
		return want&specfs.Execute == 0 || o.Kind == specfs.Directory || o.Mode&0o111 != 0
	}
	bits := o.Mode
	switch {
	case o.UID == t.Cred.UID:
		bits >>= 6
	case t.Cred.In(o.GID):
		bits >>= 3
	}
	return specfs.Access(bits)&want == want
}

// mayUse is may for data of a file. Its owner keeps what an open file allows.
func (t *tree) mayUse(o *object, want specfs.Access, opened bool) bool {
	return opened && o.UID == t.Cred.UID || t.may(o, want)
}

// owns reports whether the caller may do what only an owner may.
func (t *tree) owns(o *object) bool { return t.Cred.Super() || o.UID == t.Cred.UID }

// directory returns a directory in which the caller may look up names.
func (t *tree) directory(id specfs.ID) (*object, specfs.Errno) {
	d, errno := t.known(id)
	switch {
	case errno != specfs.OK:
		return nil, errno
	case d.Kind != specfs.Directory:
		return nil, specfs.ENOTDIR
	case !t.may(d, specfs.Execute):
		return nil, specfs.EACCES
	}
	return d, specfs.OK
}

// mayAdd tells whether the caller may add a name to a directory.
func (t *tree) mayAdd(d *object) specfs.Errno {
	if !t.may(d, specfs.Write|specfs.Execute) {
		return specfs.EACCES
	}
	return specfs.OK
}

// mayRemove tells whether the caller may take away the name of a victim, which must be a directory,
// or must not be one.
func (t *tree) mayRemove(d *object, victim entry, directory bool) specfs.Errno {
	if !t.may(d, specfs.Write|specfs.Execute) {
		return specfs.EACCES
	}
	if d.Mode&specfs.Sticky != 0 && !t.owns(d) {
		if o, errno := t.known(victim.ID); errno != specfs.OK || !t.owns(o) {
			return specfs.EPERM
		}
	}
	switch is := victim.Kind == specfs.Directory; {
	case directory && !is:
		return specfs.ENOTDIR
	case !directory && is:
		return specfs.EISDIR
	}
	return specfs.OK
}

// withoutPrivileges returns what is left of a mode when somebody changes a file's data or owner:
// nobody shall run it as another user because of what it was before.
func withoutPrivileges(m specfs.Mode) specfs.Mode {
	m &^= specfs.SetUID
	if m&0o010 != 0 {
		m &^= specfs.SetGID
	}
	return m
}
