package tree

import "github.com/foresay/foresay/specfs"

// A move is a Rename under way.
type move struct {
	specfs.Rename
	from, to *object // the directories; the same object if they are the same
	old, new entry   // what the names stand for
}

func (t *tree) rename(op specfs.Rename) specfs.Result {
	m, errno := t.begin(op)
	if errno != specfs.OK {
		return failed(errno)
	}
	if m.old.ID == m.new.ID {
		return specfs.Result{} // two names of one object
	}
	if errno := t.mayMove(m); errno != specfs.OK {
		return failed(errno)
	}
	var result specfs.Result
	if m.new.ID != 0 && !op.Exchange {
		result.ID = m.new.ID
		if m.new.Kind == specfs.Directory {
			victim := t.behind(m.new)
			m.to.Links--
			t.orphan(victim)
		} else {
			t.loseName(m.new)
		}
	}
	back := entry{}
	if op.Exchange {
		back = m.new
		t.moved(m, m.new, m.to, m.from)
	}
	t.moved(m, m.old, m.from, m.to)
	t.setEntry(m.from.ID, op.Name, m.old.Version, back)
	t.setEntry(m.to.ID, op.NewName, m.new.Version, m.old)
	t.changeContent(m.from, specfs.Names)
	if m.to != m.from {
		t.changeContent(m.to, specfs.Names)
	}
	return result
}

// begin looks both names up, and rules out what makes no sense.
func (t *tree) begin(op specfs.Rename) (*move, specfs.Errno) {
	if op.Replace && op.Exchange {
		return nil, specfs.EINVAL
	}
	m := &move{Rename: op}
	var errno specfs.Errno
	if m.from, errno = t.directory(op.From); errno != specfs.OK {
		return nil, errno
	}
	if m.to, errno = t.directory(op.To); errno != specfs.OK {
		return nil, errno
	}
	if op.From == op.To {
		m.to = m.from
	}
	if m.old, errno = t.entryIn(m.from, op.Name); errno != specfs.OK {
		return nil, errno
	}
	if m.old.ID == 0 {
		return nil, specfs.ENOENT
	}
	if m.new, errno = t.entryIn(m.to, op.NewName); errno != specfs.OK {
		return nil, errno
	}
	switch {
	case m.new.ID != 0 && !op.Replace && !op.Exchange:
		return nil, specfs.EEXIST
	case m.new.ID == 0 && op.Exchange:
		return nil, specfs.ENOENT
	case t.within(m.to, m.old):
		return nil, specfs.EINVAL
	case t.within(m.from, m.new):
		if op.Exchange {
			return nil, specfs.EINVAL
		}
		return nil, specfs.ENOTEMPTY
	}
	return m, specfs.OK
}

// within reports whether a directory is what an entry stands for, or somewhere in it.
func (t *tree) within(d *object, e entry) bool {
	if e.Kind != specfs.Directory {
		return false
	}
	above := map[specfs.ID]bool{}
	for d.ID != e.ID {
		if d.ID == specfs.Root || above[d.ID] {
			return false // what a client knows, at different times, may go round in a circle
		}
		above[d.ID] = true
		t.saw(d, specfs.Place)
		if d = t.object(d.Parent); d == nil {
			return false // its path was cut by a removal
		}
	}
	return true
}

// mayMove tells whether the caller may do it.
func (t *tree) mayMove(m *move) specfs.Errno {
	directory := m.old.Kind == specfs.Directory
	if errno := t.mayRemove(m.from, m.old, directory); errno != specfs.OK {
		return errno
	}
	if m.new.ID == 0 {
		if errno := t.mayAdd(m.to); errno != specfs.OK {
			return errno
		}
	} else {
		as := directory
		if m.Exchange {
			as = m.new.Kind == specfs.Directory
		}
		if errno := t.mayRemove(m.to, m.new, as); errno != specfs.OK {
			return errno
		}
	}
	if m.from != m.to {
		// The ".." of a directory is in it.
		for _, e := range []entry{m.old, m.new} {
			if e.Kind != specfs.Directory || e == m.new && !m.Exchange {
				continue
			}
			if o, errno := t.known(e.ID); errno != specfs.OK || !t.may(o, specfs.Write) {
				return specfs.EACCES
			}
		}
	}
	if directory && m.new.ID != 0 && !m.Exchange && !t.empty(t.behind(m.new)) {
		return specfs.ENOTEMPTY
	}
	return specfs.OK
}

// moved notes that an object is in another directory, or has another name.
func (t *tree) moved(m *move, e entry, from, to *object) {
	o := t.behind(e)
	if e.Kind != specfs.Directory || from == to {
		t.change(o)
		return
	}
	from.Links--
	to.Links++
	o.Parent = to.ID
	t.change(o, specfs.Place)
}
