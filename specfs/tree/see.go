package tree

import (
	"github.com/foresay/foresay/keyspace"
	"github.com/foresay/foresay/specfs"
)

// VersionOf returns the version that a part has, 0 if there is no such object or name.
func VersionOf(from keyspace.Reader, p specfs.Part) specfs.Version {
	if p.Aspect == specfs.Name {
		return entryOf(from, p.ID, p.Name).Version
	}
	b, ok := from.Get(key(recordObject, p.ID))
	if !ok {
		return 0
	}
	o := mustDecode(objectLayout.Decode(b))
	return *o.version(p.Aspect)
}

func (t *tree) sawPart(p specfs.Part, v specfs.Version) {
	if t.Witness != nil {
		t.Witness.Saw(specfs.Assumption{Part: p, Version: v})
	}
}

func (t *tree) changedPart(p specfs.Part, before specfs.Version) {
	if t.Witness != nil {
		t.Witness.Changed(specfs.Assumption{Part: p, Version: before})
	}
}

// saw says that the result depends on an aspect of an object.
func (t *tree) saw(o *object, a specfs.Aspect) {
	t.sawPart(specfs.Part{ID: o.ID, Aspect: a}, *o.version(a))
}

// known returns the object of an ID, whose kind and permissions the result depends on; ESTALE if
// there is none.
func (t *tree) known(id specfs.ID) (*object, specfs.Errno) {
	o := t.object(id)
	if o == nil {
		t.sawPart(specfs.Part{ID: id, Aspect: specfs.Meta}, 0)
		return nil, specfs.ESTALE
	}
	t.saw(o, specfs.Meta)
	return o, specfs.OK
}

// change writes an object of which some aspects have changed. Its attributes have then, and it has
// the time of that.
func (t *tree) change(o *object, aspects ...specfs.Aspect) {
	for _, a := range append(aspects, specfs.Stat) {
		if v := o.version(a); *v != t.Serial {
			t.changedPart(specfs.Part{ID: o.ID, Aspect: a}, *v)
			*v = t.Serial
		}
	}
	o.Changed = max(o.Changed, t.Now)
	t.put(o)
}

// changeContent is change of a file's data or a directory's names, which have a time of their own.
func (t *tree) changeContent(o *object, aspects ...specfs.Aspect) {
	o.Modified = max(o.Modified, t.Now)
	t.change(o, aspects...)
}

// create writes a new object.
func (t *tree) create(o *object) {
	for _, a := range aspects() {
		t.changedPart(specfs.Part{ID: o.ID, Aspect: a}, 0)
		*o.version(a) = t.Serial
	}
	t.put(o)
}
