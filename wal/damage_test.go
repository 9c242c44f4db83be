package wal

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/foresay/foresay/wal/faultfs"
)

// Of a directory in which a byte has changed, either all is found as it was, or an error says so.
// There is an exception: if the store was not closed, damage in the last group of the database's
// log, or in the last record of its MANIFEST, looks as a torn write does (see DESIGN.md, known
// limits): then what that said may be missing.
func TestDamage(t *testing.T) {
	disk := faultfs.New()
	h := newHistory(2)
	s := mustOpen(t, "/data", Options{FS: disk, MemTableBytes: minMemTableBytes})
	if err := h.run(s, disk, rand.New(rand.NewPCG(1, 9)), 100, 1000); err != nil {
		t.Fatal(err)
	}
	killed := disk.Kill()
	mustClose(t, s)
	tryDamage(t, "closed", disk, h, disk.Ops())
	tryDamage(t, "killed", killed, h, disk.Ops())
}

func tryDamage(t *testing.T, when string, disk *faultfs.Disk, h *history, ops int) {
	t.Helper()
	rnd := rand.New(rand.NewPCG(2, 9))
	var files []string
	for _, dir := range []string{"/data", "/data/db"} {
		names, err := disk.List(dir)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range names {
			files = append(files, dir+"/"+name)
		}
	}
	noticed, harmless := 0, 0
	for _, file := range files {
		info, err := disk.Stat(file)
		if err != nil {
			t.Fatal(err)
		}
		if info.IsDir() || info.Size() == 0 {
			continue
		}
		must := ops
		if when == "killed" && strings.HasSuffix(file, ".log") {
			must = 0
		}
		for range 24 / oneOf(2) {
			image := disk.Kill().Crash(0) // everything is durable, or was not acknowledged
			at := rnd.Int64N(info.Size())
			if when == "killed" && strings.Contains(file, "MANIFEST") && at >= lastRecord(t, image, file) {
				continue
			}
			if err := image.Corrupt(file, at, byte(1+rnd.IntN(255))); err != nil {
				continue // not durable
			}
			found, err := openDamaged(image, h, must)
			switch {
			case err == nil:
				harmless++
			case found:
				t.Errorf("%s: %s, byte %d: %v", when, file, at, err)
			default:
				noticed++
			}
		}
	}
	t.Logf("%s: noticed %d times, harmless %d times", when, noticed, harmless)
	if noticed < 15 {
		t.Errorf("%s: noticed only %d times", when, noticed)
	}
}

// TestDamagedTable: whoever meets damage in a table is told which file it is, and that a new node
// has to take this one's place: there is nothing to mend.
func TestDamagedTable(t *testing.T) {
	disk := faultfs.New()
	h := newHistory(2)
	s := mustOpen(t, "/data", Options{FS: disk, MemTableBytes: minMemTableBytes})
	if err := h.run(s, disk, rand.New(rand.NewPCG(1, 9)), 100, 1000); err != nil {
		t.Fatal(err)
	}
	mustClose(t, s)
	names, err := disk.List("/data/db")
	if err != nil {
		t.Fatal(err)
	}
	met, metLarge := 0, 0
	for _, name := range names {
		file := "/data/db/" + name
		info, err := disk.Stat(file)
		if err != nil {
			t.Fatal(err)
		}
		large := strings.HasSuffix(name, largeSuffix)
		if !large && !strings.HasSuffix(name, ".sst") {
			continue
		}
		for at := int64(0); at < info.Size(); at += 1 + info.Size()/16 {
			image := disk.Kill().Crash(0)
			if err := image.Corrupt(file, at, 90); err != nil {
				t.Fatal(err)
			}
			_, err = openDamaged(image, h, disk.Ops())
			if err == nil {
				continue // nobody has read that part
			}
			met++
			if large {
				metLarge++
			}
			damage, ok := errors.AsType[*DamageError](err)
			named := ok && (damage.File == file || large && damage.File == "/data/db")
			if !named || strings.Contains(err.Error(), "mend the disk") || !strings.Contains(err.Error(), "replace the node") {
				t.Errorf("%s is damaged at %d of %d, and the error is %v", file, at, info.Size(), err)
			}
		}
	}
	if met == metLarge || metLarge == 0 {
		t.Errorf("damage is met %d times, in files of large values %d times; there are %v", met, metLarge, names)
	}
}

// TestMissingData: whichever file of tables, large values or records is missing or cut short, it is
// noticed when the directory is opened and read, nothing panics, and the advice is to replace the
// node. A log whose records are all in tables too may be missed by nobody.
func TestMissingData(t *testing.T) {
	disk := faultfs.New()
	h := newHistory(2)
	s := mustOpen(t, "/data", Options{FS: disk, MemTableBytes: minMemTableBytes})
	if err := h.run(s, disk, rand.New(rand.NewPCG(1, 9)), 100, 1000); err != nil {
		t.Fatal(err)
	}
	killed := disk.Kill()
	mustClose(t, s)
	met := map[string]int{}
	for when, disk := range map[string]*faultfs.Disk{"killed": killed, "closed": disk} {
		names, err := disk.List("/data/db")
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range names {
			file, kind := "/data/db/"+name, name[strings.LastIndex(name, ".")+1:]
			if kind != "sst" && kind != "blob" && kind != "log" {
				continue
			}
			for _, cut := range []bool{false, true} {
				image := disk.Kill()
				content, err := readAll(image, file)
				if err != nil {
					t.Fatal(err)
				}
				switch {
				case cut && kind == "log": // see TestDamage
					continue
				case cut:
					writeFile(t, image, file, content[:len(content)/2])
				default:
					if err := image.Remove(file); err != nil {
						t.Fatal(err)
					}
				}
				_, err = openDamaged(image, h, disk.Ops())
				if err == nil {
					continue // nobody needs it
				}
				met[kind]++
				if _, ok := errors.AsType[*DamageError](err); !ok || strings.Contains(err.Error(), "mend the disk") ||
					strings.Contains(err.Error(), "\n") {
					t.Errorf("%s: without %s, or half of it (%v), the error is %v", when, file, cut, err)
				}
			}
		}
	}
	if met["sst"] == 0 || met["blob"] == 0 || met["log"] == 0 {
		t.Errorf("met %v", met)
	}
}

// lastRecord returns where the last record of a MANIFEST begins.
func lastRecord(t *testing.T, disk *faultfs.Disk, file string) int64 {
	t.Helper()
	f, err := disk.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	content, err := io.ReadAll(f)
	if err != nil {
		t.Fatal(err)
	}
	return int64(chunks{content: content[:len(content)-1]}.end()) // less a byte, the last chunk is none
}

// openDamaged returns an error and whether it is about what was found, instead of the store's.
func openDamaged(image *faultfs.Disk, h *history, ops int) (found bool, err error) {
	s, err := Open("/data", Options{FS: image})
	if err != nil {
		return false, err
	}
	err = h.check(s, ops)
	if stopped := s.Close(); stopped != nil {
		return false, stopped
	}
	return true, err
}

func TestFormatFile(t *testing.T) {
	disk := faultfs.New()
	s := mustOpen(t, "/data", Options{FS: disk})
	id := s.Identity()
	mustClose(t, s)
	f, err := disk.Open("/data/FORESAY")
	if err != nil {
		t.Fatal(err)
	}
	good, err := io.ReadAll(f)
	if err != nil || !strings.HasPrefix(string(good), "foresay-wal 3\nid "+id.String()+"\ncrc ") {
		t.Fatalf("%q, %v", good, err)
	}
	for name, test := range map[string]struct {
		content string
		want    string
	}{
		"empty":      {"", "/data/FORESAY: damaged: it begins with \"\": what this disk has promised"},
		"of another": {"hello, world\n", "/data/FORESAY: damaged: it begins with \"hello, world\\n\": what this disk has"},
		"newer": {"foresay-wal 4\nwho knows",
			"/data/FORESAY: the directory has format version 4, and this program knows 1 to 3 only: run the program that " +
				"wrote it"},
		"cut off": {string(good[:len(good)-1]), "/data/FORESAY: its checksum or form is wrong"},
		"another digit": {strings.Replace(string(good), id.String(), strings.Repeat("0", 32), 1),
			"/data/FORESAY: its checksum or form is wrong"},
		"more":           {string(good) + "\n", "/data/FORESAY: its checksum or form is wrong"},
		"no line":        {"foresay-wal 1", "/data/FORESAY: damaged: it begins with"},
		"a large number": {"foresay-wal 99999999999999999999\n", "/data/FORESAY: damaged: it begins with"},
	} {
		t.Run(name, func(t *testing.T) {
			image := disk.Kill()
			writeFile(t, image, "/data/FORESAY", []byte(test.content))
			_, err := Open("/data", Options{FS: image})
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Fatalf("got %v, want %s", err, test.want)
			}
			if version := new(FormatError); name == "newer" && (!errors.As(err, &version) || version.Version != 4) {
				t.Fatalf("got %#v", err)
			}
			if name == "of another" { // one that no store has made
				if err := image.RemoveAll("/data/db"); err != nil {
					t.Fatal(err)
				}
				_, err := Open("/data", Options{FS: image})
				if err == nil || !strings.Contains(err.Error(), "/data/FORESAY: not the format file of a Foresay log") {
					t.Errorf("without a database: %v", err)
				}
				image = disk.Kill()
			}
			writeFile(t, image, "/data/FORESAY", good) // nothing was changed
			s := mustOpen(t, "/data", Options{FS: image})
			if s.Identity() != id {
				t.Errorf("identity %v", s.Identity())
			}
			mustClose(t, s)
		})
	}
}

func writeFile(t *testing.T, fs vfs.FS, name string, content []byte) {
	t.Helper()
	f, err := fs.Create(name, vfs.WriteCategoryUnspecified)
	if err == nil {
		_, err = f.Write(content)
	}
	if err == nil {
		err = f.Sync()
	}
	if err != nil {
		t.Fatal(err)
	}
}

// A directory without its format file but with data is not taken for a new one; one without its
// database not either.
func TestMissingFiles(t *testing.T) {
	disk := faultfs.New()
	s := mustOpen(t, "/data", Options{FS: disk})
	var b Batch
	b.Append(1, nil)
	if err := commitNow(mustNode(t, s, "n"), &b); err != nil {
		t.Fatal(err)
	}
	mustClose(t, s)
	image := disk.Kill()
	if err := image.Remove("/data/FORESAY"); err != nil {
		t.Fatal(err)
	}
	if _, err := Open("/data", Options{FS: image}); err == nil ||
		!strings.Contains(err.Error(), `/data/FORESAY: missing, but the database has data, of "n"`) {
		t.Errorf("got %v", err)
	}
	image = disk.Kill()
	if err := image.RemoveAll("/data/db"); err != nil {
		t.Fatal(err)
	}
	wantDamage(t, image, "/data/db", "missing")
	names, err := disk.List("/data/db")
	if err != nil {
		t.Fatal(err)
	}
	tried := map[string]bool{}
	for _, name := range names {
		file := "/data/db/" + name
		kind, _, _ := strings.Cut(name, ".0")
		image := disk.Kill()
		switch {
		case strings.HasPrefix(name, "marker."):
			if err := image.Remove(file); err != nil {
				t.Fatal(err)
			}
			wantDamage(t, image, "/data/db", "not whole")
		case strings.HasPrefix(name, "MANIFEST-"):
			kind = "MANIFEST"
			if err := image.Remove(file); err != nil {
				t.Fatal(err)
			}
			wantDamage(t, image, file, "missing")
			for _, content := range []string{"", "no MANIFEST, and long enough to be one"} {
				writeFile(t, image, file, []byte(content))
				wantDamage(t, image, file, "damaged")
			}
		}
		tried[kind] = true
	}
	if !tried["MANIFEST"] || !tried["marker.manifest"] || !tried["marker.format-version"] {
		t.Errorf("files of the database were not found: %v", tried)
	}
}

// wantDamage opens a directory of which a file is damaged.
func wantDamage(t *testing.T, image *faultfs.Disk, file, problem string) {
	t.Helper()
	_, err := Open("/data", Options{FS: image})
	if damage, ok := errors.AsType[*DamageError](err); !ok || damage.File != file ||
		!strings.HasPrefix(damage.Problem, problem) {
		t.Errorf("got %v, want that %s is %s", err, file, problem)
	}
}

// The newest log is missed, after a crash and after Close; so is what says which one that is, if it
// is damaged. In a directory that was made before there was such a file nothing is missed, and from
// then on it is.
func TestMissingLog(t *testing.T) {
	disk := faultfs.New()
	h := newHistory(1)
	s := mustOpen(t, "/data", Options{FS: disk, MemTableBytes: minMemTableBytes})
	if err := h.run(s, disk, rand.New(rand.NewPCG(1, 9)), 50, 1000); err != nil {
		t.Fatal(err)
	}
	killed := disk.Kill()
	mustClose(t, s)
	for when, image := range map[string]*faultfs.Disk{"killed": killed, "closed": disk} {
		old := image.Kill()
		content, err := readAll(image, "/data/NEWEST")
		if err != nil {
			t.Fatal(err)
		}
		logs, err := decodeNewest(string(content))
		if err != nil || len(logs) == 0 {
			t.Fatalf("logs %v, %v", logs, err)
		}
		log := fmt.Sprintf("/data/db/%06d.log", logs[len(logs)-1])
		wants := func(image *faultfs.Disk, file string) {
			t.Helper()
			_, err := Open("/data", Options{FS: image})
			if damage, ok := errors.AsType[*DamageError](err); !ok || damage.File != file {
				t.Errorf("%s: got %v, want %s to be missed", when, err, file)
			}
		}
		if err := image.Remove(log); err != nil {
			t.Fatal(err)
		}
		wants(image, log)
		damaged := old.Kill()
		if err := damaged.Corrupt("/data/NEWEST", int64(len(newestMagic)), 1); err != nil {
			t.Fatal(err)
		}
		wants(damaged, "/data/NEWEST")
		if err := old.Remove("/data/NEWEST"); err != nil {
			t.Fatal(err)
		}
		lost := old.Kill()
		wants(lost, "/data/NEWEST")
		if err := lost.Remove(log); err != nil {
			t.Fatal(err)
		}
		wants(lost, "/data/NEWEST")
		writeFile(t, old, "/data/FORESAY", encodeFormat(s.Identity(), namedVersion-1))
		mustClose(t, mustOpen(t, "/data", Options{FS: old}))
		if err := old.Remove("/data/NEWEST"); err != nil {
			t.Fatal(err)
		}
		wants(old, "/data/NEWEST")
	}
}

func TestLock(t *testing.T) {
	for name, opts := range map[string]Options{"real": {}, "in memory": {FS: faultfs.New()}} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			s := mustOpen(t, dir, opts)
			if _, err := Open(dir, opts); err == nil || !strings.Contains(err.Error(), "in use") {
				t.Errorf("a second one got %v", err)
			}
			mustClose(t, s)
			mustClose(t, mustOpen(t, dir, opts))
		})
	}
}

func FuzzDecodeFormat(f *testing.F) {
	f.Add(encodeFormat(ID{1, 2, 3}, formatVersion))
	f.Add(encodeFormat(ID{1, 2, 3}, earliestVersion))
	f.Add([]byte("foresay-wal 3\n"))
	f.Add([]byte("foresay-wal 1\nid 00\ncrc 0\n"))
	f.Fuzz(func(t *testing.T, content []byte) {
		id, version, err := decodeFormat("F", content)
		if err == nil && !bytes.Equal(encodeFormat(id, version), content) {
			t.Fatalf("%q is taken for %q", content, encodeFormat(id, version))
		}
		if err != nil && !strings.HasPrefix(err.Error(), "F: ") {
			t.Fatalf("the error does not name the file: %v", err)
		}
	})
}

func FuzzDecodeEntry(f *testing.F) {
	f.Add(appendIndex(entryPrefix("node", kindRecord), 7))
	f.Add(append(entryPrefix("n", kindKey), "key"...))
	f.Add(entryPrefix("\xff", kindLow))
	f.Add([]byte{0, 1})
	f.Add([]byte{1})
	f.Fuzz(func(t *testing.T, key []byte) {
		name, err := entryName(key)
		if err != nil {
			return
		}
		prefix := entryPrefix(name, key[1+len(name)])
		if !bytes.HasPrefix(key, prefix) || checkName(name) != nil {
			t.Fatalf("%x is taken for an entry of %q", key, name)
		}
		rest := key[len(prefix):]
		if index, err := decodeIndex(rest); err == nil && !bytes.Equal(appendIndex(nil, index), rest) {
			t.Fatalf("%x is taken for the index %d", rest, index)
		}
		if low, err := decodeLow(rest); err == nil && low == 0 {
			t.Fatalf("%x is taken for a lowest index", rest)
		}
		if end := prefixEnd(entryPrefix(name, kindRecord)); bytes.Compare(key, end) >= 0 && key[1+len(name)] <= kindRecord {
			t.Fatalf("%x is not below %x", key, end)
		}
	})
}

// Any bytes can be verified; damage is where the valid chunks end; those are valid by themselves.
func FuzzVerify(f *testing.F) {
	disk := faultfs.New()
	s, err := Open("/data", Options{FS: disk})
	if err != nil {
		f.Fatal(err)
	}
	if err := s.Close(); err != nil {
		f.Fatal(err)
	}
	names, err := disk.List("/data/db")
	if err != nil {
		f.Fatal(err)
	}
	for _, name := range names {
		content, err := s.readFile("/data/db/" + name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(content, uint32(2), strings.HasSuffix(name, ".log"))
	}
	f.Fuzz(func(t *testing.T, content []byte, number uint32, isLog bool) {
		c := chunks{content: content, number: number, isLog: isLog}
		end := c.end()
		if at := c.verify(); end > len(content) || at >= 0 && at != end {
			t.Fatalf("the chunks end at %d of %d, damaged at %d", end, len(content), at)
		}
		if c.content = content[:end]; c.end() != end || c.verify() >= 0 {
			t.Fatalf("valid up to %d, but by itself up to %d, damaged at %d", end, c.end(), c.verify())
		}
	})
}
