package specfs

// Limits of operations.
const (
	MaxNameBytes   = 255
	MaxTargetBytes = 4095     // of a symlink
	MaxXattrBytes  = 64 << 10 // of one value
	MaxLinks       = 65000
	MaxFileBytes   = 1 << 44
	// MaxDataBytes is how much one operation reads or writes.
	MaxDataBytes = 1 << 20
)

// An Op is one operation on a file system. Names are bytes without '/' and NUL, and need not be
// UTF-8; "." and ".." are not names of objects. An operation that fails changes nothing.
//
// Those that make an object are given its ID, which the caller has chosen from a range of its own.
// Those that name an object by a directory and a name act on whatever has the name then.
type Op interface {
	// Changes reports whether the operation may change something.
	Changes() bool
}

// Operations that only read. What each returns in a [Result] is said with it.
type (
	// GetAttr returns the attributes.
	GetAttr struct{ ID ID }
	// Lookup returns the object that a directory has under a name, and its attributes.
	Lookup struct {
		Parent ID
		Name   string
	}
	// Check tells whether the caller may do what it wants, as access(2) and open(2) do.
	Check struct {
		ID     ID
		Access Access
	}
	// List returns the names in a directory that come after one, in the order of their bytes, and
	// whether there are more.
	List struct {
		ID    ID
		After string
		Most  int // how many, at least 1
	}
	// ParentOf returns the directory that a directory is in; that of the root is the root.
	ParentOf struct{ ID ID }
	// ReadAt returns data of a file, less than was asked for only at its end.
	ReadAt struct {
		ID     ID
		Offset uint64
		Length int // at most MaxDataBytes
		// Opened says that the caller has opened the file for reading before: its owner may then read
		// it, whatever its mode has become since, as with NFS.
		Opened bool
	}
	// ReadLink returns the target of a symlink as Data.
	ReadLink struct{ ID ID }
	// GetXattr returns the value of an extended attribute as Data.
	GetXattr struct {
		ID   ID
		Name string
	}
	// ListXattrs returns the names of all extended attributes.
	ListXattrs struct{ ID ID }
)

// Operations that change something.
type (
	// Make makes an object and returns its attributes.
	Make struct {
		Parent ID
		Name   string
		New    ID
		Kind   Kind
		Mode   Mode
		Target string // of a symlink
	}
	// Link gives a file, which is not a directory, another name.
	Link struct {
		ID     ID
		Parent ID
		Name   string
	}
	// Unlink takes a name away, which is not a directory's. Result.ID is the object's. If it was the
	// last name the object is an orphan, which goes on as long as somebody has it open.
	Unlink struct {
		Parent ID
		Name   string
	}
	// RemoveDir removes an empty directory.
	RemoveDir struct {
		Parent ID
		Name   string
	}
	// Rename moves an object to another name, as renameat2(2) does. Result.ID is that of what had
	// the name before, if its last name was taken away.
	Rename struct {
		From     ID
		Name     string
		To       ID
		NewName  string
		Replace  bool // what has the new name, if there is something: else EEXIST
		Exchange bool // the two names; Replace is not set then
	}
	// SetAttr changes attributes, and returns them all.
	SetAttr struct {
		ID     ID
		Set    Setting
		Mode   Mode
		UID    uint32
		GID    uint32
		Size   uint64 // of a file: what is beyond is cut off, or it is filled up with zeros
		Times  Times
		Opened bool // for writing: see WriteAt
	}
	// WriteAt writes data to a file. N of the result is its length.
	WriteAt struct {
		ID     ID
		Offset uint64
		Append bool // at the end of the file, wherever that is when it is done; Offset is not used
		Data   []byte
		Opened bool // see ReadAt
	}
	// Allocate makes sure that a file reaches as far, or makes a hole in it: fallocate(2).
	Allocate struct {
		ID     ID
		Offset uint64
		Length uint64
		Keep   bool // the size
		Punch  bool // what is there becomes zeros; Keep is set then
		Opened bool // see ReadAt
	}
	// SetXattr sets an extended attribute. Only those whose names begin with "user." are supported.
	SetXattr struct {
		ID      ID
		Name    string
		Value   []byte
		Create  bool // it must not be there: else EEXIST
		Replace bool // it must be there: else ENODATA
	}
	// RemoveXattr removes an extended attribute.
	RemoveXattr struct {
		ID   ID
		Name string
	}
	// Reap removes what is left of an orphan, some of it at a time; Result.More says that there is
	// more. Only the server asks for it, when nobody has the object open.
	Reap struct{ ID ID }
)

// Setting says which attributes a SetAttr sets. The bits are those of its fields.
type Setting uint16

// The bits of a Setting.
const (
	SetMode Setting = 1 << iota
	SetOwner
	SetGroup
	SetSize
	SetAccessed
	SetModified
	SetAccessedNow // with SetAccessed: to the time of the operation
	SetModifiedNow
)

// Times are those that a SetAttr may set.
type Times struct{ Accessed, Modified Time }

// Changes is part of Op.
func (GetAttr) Changes() bool { return false }

// Changes is part of Op.
func (Lookup) Changes() bool { return false }

// Changes is part of Op.
func (Check) Changes() bool { return false }

// Changes is part of Op.
func (List) Changes() bool { return false }

// Changes is part of Op.
func (ParentOf) Changes() bool { return false }

// Changes is part of Op.
func (ReadAt) Changes() bool { return false }

// Changes is part of Op.
func (ReadLink) Changes() bool { return false }

// Changes is part of Op.
func (GetXattr) Changes() bool { return false }

// Changes is part of Op.
func (ListXattrs) Changes() bool { return false }

// Changes is part of Op.
func (Make) Changes() bool { return true }

// Changes is part of Op.
func (Link) Changes() bool { return true }

// Changes is part of Op.
func (Unlink) Changes() bool { return true }

// Changes is part of Op.
func (RemoveDir) Changes() bool { return true }

// Changes is part of Op.
func (Rename) Changes() bool { return true }

// Changes is part of Op.
func (SetAttr) Changes() bool { return true }

// Changes is part of Op.
func (WriteAt) Changes() bool { return true }

// Changes is part of Op.
func (Allocate) Changes() bool { return true }

// Changes is part of Op.
func (SetXattr) Changes() bool { return true }

// Changes is part of Op.
func (RemoveXattr) Changes() bool { return true }

// Changes is part of Op.
func (Reap) Changes() bool { return true }

// A Result is what an operation came to. Errno is OK, or nothing was done and the rest is zero.
type Result struct {
	Errno   Errno
	ID      ID
	Attr    Attr
	Data    []byte
	N       int
	Entries []Entry
	Xattrs  []string
	More    bool
}

// An Entry is a name in a directory.
type Entry struct {
	Name string
	ID   ID
	Kind Kind
}

// ValidName tells what is wrong with a name of an object, or OK.
func ValidName(name string) Errno {
	if len(name) > MaxNameBytes {
		return ENAMETOOLONG
	}
	if name == "" || name == "." || name == ".." {
		return EINVAL
	}
	for _, b := range []byte(name) {
		if b == '/' || b == 0 {
			return EINVAL
		}
	}
	return OK
}
