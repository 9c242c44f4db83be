package specfs

import (
	"testing"
	"time"

	"github.com/foresay/foresay/internal/wirefmt/wiretest"
)

// ops has an operation of each kind.
func ops() []Op {
	return []Op{
		GetAttr{ID: 300},
		Lookup{Parent: 1, Name: "a\xff"},
		Check{ID: 2, Access: Read | Execute},
		List{ID: 1, After: "m", Most: 100},
		ParentOf{ID: 7},
		ReadAt{ID: 2, Offset: 1 << 33, Length: 4096, Opened: true},
		ReadLink{ID: 3},
		GetXattr{ID: 2, Name: "user.a"},
		ListXattrs{ID: 2},
		Make{Parent: 1, Name: "s", New: SessionID(3).IDs() + 1, Kind: Symlink, Mode: 0o4755, Target: "there"},
		Link{ID: 2, Parent: 1, Name: "b"},
		Unlink{Parent: 1, Name: "b"},
		RemoveDir{Parent: 1, Name: "d"},
		Rename{From: 1, Name: "a", To: 4, NewName: "b", Replace: true},
		Rename{From: 1, Name: "a", To: 4, NewName: "b", Exchange: true},
		SetAttr{
			ID: 2, Set: SetMode | SetModifiedNow, Mode: 0o600, UID: 1, GID: 2, Size: 3, Times: Times{Accessed: -4, Modified: 5},
			Opened: true,
		},
		WriteAt{ID: 2, Offset: 5, Append: true, Data: []byte("data"), Opened: true},
		Allocate{ID: 2, Offset: 1, Length: 2, Keep: true, Punch: true, Opened: true},
		SetXattr{ID: 2, Name: "user.a", Value: []byte("v"), Create: true, Replace: true},
		RemoveXattr{ID: 2, Name: "user.a"},
		Reap{ID: 9},
	}
}

// messages has a message of each kind.
func messages() []Message {
	var steps []Step
	for _, op := range ops() {
		steps = append(steps, Step{Op: op, Cred: Cred{UID: 1, GID: 2, Groups: []uint32{3, 400}}, Now: 5, Errno: ENOENT})
	}
	parts := []Part{{ID: 1, Aspect: Name, Name: "x"}, {ID: 2, Aspect: Data}, {ID: 3}}
	assumptions := []Assumption{{parts[0], 3}, {parts[1], Number(7).Provisional()}}
	return []Message{
		Hello{Token: 1 << 60, First: 2, Era: 3, News: 4, Leases: true, Open: []ID{5, 600}},
		Fetch{Tag: 1, News: 2, Wants: []Want{{[]byte("a"), []byte("b")}}, Cred: Cred{UID: 7}},
		Epoch{Number: 1, Era: 2, Acked: 3, News: 4, Assumes: assumptions, Blind: assumptions[:1], Steps: steps},
		Heard{Notice: 1, Open: []ID{2}},
		Renew{Tag: 300},
		Forget{IDs: []ID{1, 2}},
		Bye{},
		Welcome{
			Token: 1, At: 6, Session: 2, Lease: time.Second, Now: 4, Generation: 5,
			Cred: Cred{UID: 7, GID: 8, Groups: []uint32{9}}, Trusted: true, ReadOnly: true,
		},
		Fetched{
			Tag: 1, Changed: parts, News: 2, Facts: []Fact{{[]byte("a"), []byte("b"), []Record{{[]byte("a"), []byte("v")}}}},
			Refused: EACCES,
		},
		Answer{Number: 1, Refused: WrongVersion, Serial: 3, Moved: parts, Changed: parts[:1], News: 4, Now: 5},
		Notice{Notice: 1, Parts: parts},
		Renewed{Tag: 1, Generation: 2},
		Unknown{},
	}
}

func TestCodec(t *testing.T) {
	t.Run("messages", func(t *testing.T) { wiretest.Codec(t, Codec(), 1, messages()) })
}

func FuzzCodec(f *testing.F) { wiretest.Fuzz(f, Codec(), messages()) }
