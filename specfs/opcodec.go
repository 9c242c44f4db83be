package specfs

import "github.com/foresay/foresay/internal/wirefmt"

// opFormat returns the format of operations.
func opFormat() *wirefmt.Format[Op] {
	return wirefmt.NewFormat("specfs: operation", codecVersion,
		wirefmt.NewKind[Op](1, func(c *wirefmt.Coder, o *GetAttr) { wirefmt.Uint(c, &o.ID) }),
		wirefmt.NewKind[Op](2, func(c *wirefmt.Coder, o *Lookup) { nameFields(c, &o.Parent, &o.Name) }),
		wirefmt.NewKind[Op](3, func(c *wirefmt.Coder, o *Check) {
			wirefmt.Uint(c, &o.ID)
			wirefmt.Enum(c, &o.Access, 0, Execute|Write|Read, "access")
		}),
		wirefmt.NewKind[Op](4, func(c *wirefmt.Coder, o *List) {
			nameFields(c, &o.ID, &o.After)
			wirefmt.Count(c, &o.Most)
		}),
		wirefmt.NewKind[Op](5, func(c *wirefmt.Coder, o *ParentOf) { wirefmt.Uint(c, &o.ID) }),
		wirefmt.NewKind[Op](6, func(c *wirefmt.Coder, o *ReadAt) {
			wirefmt.Uint(c, &o.ID)
			wirefmt.Uint(c, &o.Offset)
			wirefmt.Count(c, &o.Length)
			wirefmt.Bool(c, &o.Opened)
		}),
		wirefmt.NewKind[Op](7, func(c *wirefmt.Coder, o *ReadLink) { wirefmt.Uint(c, &o.ID) }),
		wirefmt.NewKind[Op](8, func(c *wirefmt.Coder, o *GetXattr) { nameFields(c, &o.ID, &o.Name) }),
		wirefmt.NewKind[Op](9, func(c *wirefmt.Coder, o *ListXattrs) { wirefmt.Uint(c, &o.ID) }),
		wirefmt.NewKind[Op](32, makeFields),
		wirefmt.NewKind[Op](33, func(c *wirefmt.Coder, o *Link) {
			wirefmt.Uint(c, &o.ID)
			nameFields(c, &o.Parent, &o.Name)
		}),
		wirefmt.NewKind[Op](34, func(c *wirefmt.Coder, o *Unlink) { nameFields(c, &o.Parent, &o.Name) }),
		wirefmt.NewKind[Op](35, func(c *wirefmt.Coder, o *RemoveDir) { nameFields(c, &o.Parent, &o.Name) }),
		wirefmt.NewKind[Op](36, func(c *wirefmt.Coder, o *Rename) {
			nameFields(c, &o.From, &o.Name)
			nameFields(c, &o.To, &o.NewName)
			wirefmt.Bool(c, &o.Replace)
			wirefmt.Bool(c, &o.Exchange)
		}),
		wirefmt.NewKind[Op](37, setAttrFields),
		wirefmt.NewKind[Op](38, func(c *wirefmt.Coder, o *WriteAt) {
			wirefmt.Uint(c, &o.ID)
			wirefmt.Uint(c, &o.Offset)
			wirefmt.Bool(c, &o.Append)
			wirefmt.Bytes(c, &o.Data)
			wirefmt.Bool(c, &o.Opened)
		}),
		wirefmt.NewKind[Op](39, func(c *wirefmt.Coder, o *Allocate) {
			wirefmt.Uint(c, &o.ID)
			wirefmt.Uint(c, &o.Offset)
			wirefmt.Uint(c, &o.Length)
			wirefmt.Bool(c, &o.Keep)
			wirefmt.Bool(c, &o.Punch)
			wirefmt.Bool(c, &o.Opened)
		}),
		wirefmt.NewKind[Op](40, func(c *wirefmt.Coder, o *SetXattr) {
			nameFields(c, &o.ID, &o.Name)
			wirefmt.Bytes(c, &o.Value)
			wirefmt.Bool(c, &o.Create)
			wirefmt.Bool(c, &o.Replace)
		}),
		wirefmt.NewKind[Op](41, func(c *wirefmt.Coder, o *RemoveXattr) { nameFields(c, &o.ID, &o.Name) }),
		wirefmt.NewKind[Op](42, func(c *wirefmt.Coder, o *Reap) { wirefmt.Uint(c, &o.ID) }),
	)
}

func nameFields(c *wirefmt.Coder, id *ID, name *string) {
	wirefmt.Uint(c, id)
	wirefmt.String(c, name)
}

func makeFields(c *wirefmt.Coder, o *Make) {
	nameFields(c, &o.Parent, &o.Name)
	wirefmt.Uint(c, &o.New)
	wirefmt.Enum(c, &o.Kind, File, Socket, "kind of object")
	modeField(c, &o.Mode)
	wirefmt.String(c, &o.Target)
}

func setAttrFields(c *wirefmt.Coder, o *SetAttr) {
	wirefmt.Uint(c, &o.ID)
	set := uint32(o.Set)
	if wirefmt.Uint32(c, &set); set >= 2*uint32(SetModifiedNow) {
		c.Failf("settings %x", set)
	}
	o.Set = Setting(set)
	modeField(c, &o.Mode)
	wirefmt.Uint32(c, &o.UID)
	wirefmt.Uint32(c, &o.GID)
	wirefmt.Uint(c, &o.Size)
	wirefmt.Int(c, &o.Times.Accessed)
	wirefmt.Int(c, &o.Times.Modified)
	wirefmt.Bool(c, &o.Opened)
}
