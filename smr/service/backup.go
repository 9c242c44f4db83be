package service

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"slices"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/foresay/foresay/smr/kv"
)

// A Backup is the whole contents of the service at one version, or of its first group if it has
// several.
type Backup struct {
	Version uint64
	Items   []kv.Item  // in order of their versions
	Leases  []kv.Lease // in order of their IDs; of several groups, each has numbers of its own
	// Others are the backups of the other groups, each of a moment of its own, and Routing says
	// which keys they have. One group has none, and "".
	Others  []*Backup
	Routing string
}

// Size returns how many keys and leases all groups have.
func (b *Backup) Size() (keys, leases int) {
	for _, part := range b.parts() {
		keys += len(part.Items)
		leases += len(part.Leases)
	}
	return keys, leases
}

// parts returns the backups of all groups.
func (b *Backup) parts() []*Backup { return append([]*Backup{b}, b.Others...) }

// backupTries bounds how often a backup begins again because changes were forgotten meanwhile.
const backupTries = 3

// Backup is Client.Backup of one group.
//
// It reads page by page, each as of another version, and behind each page what has changed since
// the one before, and stops at one version.
func (c *groupClient) Backup(ctx context.Context, progress func(keys int)) (*Backup, error) {
	for try := 1; ; try++ {
		b, err := c.backup(ctx, progress)
		if _, compacted := errors.AsType[*CompactedError](err); !compacted {
			return b, err
		}
		if try == backupTries {
			return nil, fmt.Errorf("changes come faster than they can be read, and the service keeps %d of them, or %d MiB: "+
				"back up in a quieter moment, or from nearer to the service: %w", kv.MaxChanges, kv.MaxChangeBytes>>20, err)
		}
	}
}

func (c *groupClient) backup(ctx context.Context, progress func(keys int)) (*Backup, error) {
	g := gathering{c: c, items: map[string]kv.Item{}}
	for from, more := "", true; more; {
		r, err := known(c.kv.Read(ctx, kv.Scan([]byte(from), nil, 0)))
		if err != nil {
			return nil, err
		}
		if from == "" {
			g.at = r.Version
		}
		for _, i := range r.Items {
			g.items[string(i.Key)] = i
			from = string(i.Key) + "\x00"
		}
		// Not only at the end: the service keeps the changes of a few pages, and not of all.
		if err := g.catchUp(ctx, r.Version); err != nil {
			return nil, err
		}
		if more = r.More; progress != nil {
			progress(len(g.items))
		}
	}
	leases, err := known(c.kv.Read(ctx, kv.Leases()))
	if err != nil {
		return nil, err
	}
	b := &Backup{Version: leases.Version, Leases: leases.Leases}
	if err := g.catchUp(ctx, b.Version); err != nil {
		return nil, err
	}
	for _, i := range g.items {
		b.Items = append(b.Items, i)
	}
	slices.SortFunc(b.Items, func(a, b kv.Item) int { return cmp.Compare(a.Version, b.Version) })
	return b, nil
}

// gathering is what a backup has read.
type gathering struct {
	c     *groupClient
	items map[string]kv.Item
	at    uint64 // the changes up to this version are in items, of the keys of all pages that were read
}

// catchUp reads the changes up to a version that the service has.
func (g *gathering) catchUp(ctx context.Context, to uint64) error {
	for g.at < to {
		r, err := known(g.c.kv.Read(ctx, kv.Changes(nil, nil, g.at, 0)))
		if err == nil && r.Status == kv.Compacted {
			err = &CompactedError{After: g.at, Version: r.Version}
		}
		if err != nil {
			return err
		}
		for _, i := range r.Items {
			if i.Version <= to {
				apply(g.items, i)
			}
		}
		g.at = min(r.Version, to)
	}
	return nil
}

// apply makes a change that a page may have already.
func apply(items map[string]kv.Item, i kv.Item) {
	switch {
	case i.Version <= items[string(i.Key)].Version:
	case i.Deleted:
		delete(items, string(i.Key))
	default:
		items[string(i.Key)] = i
	}
}

// A NotEmptyError says that a backup cannot be restored because the service has other contents.
type NotEmptyError struct {
	Version uint64 // of the service
	Key     string // that is there and is not in the backup, or is another one there; "" if versions tell it
}

func (e *NotEmptyError) Error() string {
	what := fmt.Sprintf("it is at version %d", e.Version)
	if e.Key != "" {
		what = fmt.Sprintf("it has the key %q, which the backup has not or has otherwise", e.Key)
	}
	return what + "; a backup is restored into a new group only"
}

// restoreBytes is how much of a backup is loaded by one command. A larger value is one command.
const restoreBytes = 512 << 10

// DefaultSkipVersions is how many versions a restore or a recovery skips if nothing else is said.
// It has to be more than were given since the backup, or that the disk has not heard of. A group
// that gives 100,000 a second gives as many in 115 days, and 9,000 times as many stay below
// kv.MaxSkippedTo.
const DefaultSkipVersions = 1_000_000_000_000

// Restore is Client.Restore of one group. prepare is all of it that can fail because of what is
// there.
func (c *groupClient) Restore(ctx context.Context, b *Backup, skipVersions uint64, progress func(keys int)) error {
	at, err := c.prepare(ctx, b, skipVersions)
	if err != nil {
		return err
	}
	end := b.Version + skipVersions
	items := b.Items[searchVersion(b.Items, at):]
	leases := b.Leases
	for len(leases) > 0 && uint64(leases[0].ID) <= at {
		leases = leases[1:]
	}
	for at < end {
		var part kv.Load
		part, items, leases = nextPart(at, end, items, leases)
		r, err := known(c.kv.Execute(ctx, part.Encode()))
		if err == nil && r.Status == kv.Conflict && r.Version != part.To { // else an earlier attempt came through
			err = &NotEmptyError{Version: r.Version}
		}
		if err != nil {
			return err
		}
		if at = part.To; progress != nil {
			progress(len(b.Items) - len(items))
		}
	}
	return nil
}

// prepare returns how far the group has been restored from the backup before, and an error if it
// cannot be.
func (c *groupClient) prepare(ctx context.Context, b *Backup, skipVersions uint64) (at uint64, err error) {
	end, err := kv.SkippedTo(b.Version, skipVersions)
	if err != nil {
		return 0, err
	}
	if at, err = c.restored(ctx, b, end); err != nil {
		return 0, err
	}
	return at, c.hasRoom(ctx, b.Items[searchVersion(b.Items, at):])
}

// hasRoom returns an error if the quota, as it is now, has no room for items: a restore that cannot
// end had better not begin, as nothing else is taken until it ends.
func (c *groupClient) hasRoom(ctx context.Context, items []kv.Item) error {
	u, err := c.Usage(ctx)
	if err != nil {
		return err
	}
	for _, i := range items {
		u.Bytes += uint64(len(i.Key) + len(i.Value))
	}
	u.Keys += uint64(len(items))
	if q := u.Quota; q.Bytes > 0 && u.Bytes > q.Bytes || q.Keys > 0 && u.Keys > q.Keys {
		return &QuotaError{fmt.Sprintf("with the backup there would be %d keys with %d bytes; the quota is %d keys and %d "+
			"bytes (0: no bound)", u.Keys, u.Bytes, q.Keys, q.Bytes)}
	}
	return nil
}

// searchVersion returns how many items have no higher version.
func searchVersion(items []kv.Item, version uint64) int {
	n, _ := slices.BinarySearchFunc(items, version+1, func(i kv.Item, v uint64) int { return cmp.Compare(i.Version, v) })
	return n
}

// nextPart takes what the next command loads from the front of items and leases.
func nextPart(
	after, last uint64, items []kv.Item, leases []kv.Lease,
) (part kv.Load, restItems []kv.Item, restLeases []kv.Lease) {
	part.After, part.To = after, last
	n, size := 0, 0
	for n < len(items) && (n == 0 || size+len(items[n].Key)+len(items[n].Value) <= restoreBytes) && n < 10_000 {
		size += len(items[n].Key) + len(items[n].Value)
		n++
	}
	if n < len(items) {
		part.To = items[n-1].Version
	}
	m := 0
	for m < len(leases) && uint64(leases[m].ID) <= part.To {
		m++
	}
	part.Items, part.Leases, part.Last = items[:n], leases[:m], n == len(items)
	return part, items[n:], leases[m:]
}

// restored returns how far the service has been restored from the backup before: 0 if it is empty,
// end if all is there. A part of a backup that is there is the beginning of it.
func (c *groupClient) restored(ctx context.Context, b *Backup, end uint64) (uint64, error) {
	at := uint64(0)
	keys := map[string]kv.Item{}
	for _, i := range b.Items {
		keys[string(i.Key)] = i
	}
	found := 0
	for from, more := "", true; more; {
		r, err := known(c.kv.Read(ctx, kv.Scan([]byte(from), nil, 0)))
		if err != nil {
			return 0, err
		}
		for _, i := range r.Items {
			if want, ok := keys[string(i.Key)]; !ok || want.Version != i.Version || want.Lease != i.Lease ||
				!bytes.Equal(want.Value, i.Value) {
				return 0, &NotEmptyError{Version: r.Version, Key: string(i.Key)}
			}
			found++
			from = string(i.Key) + "\x00"
		}
		at, more = r.Version, r.More
	}
	if at > b.Version && at != end || found != searchVersion(b.Items, at) {
		return 0, &NotEmptyError{Version: at}
	}
	return at, nil
}

// check validates a backup that may come from a file.
func (b *Backup) check() error {
	for _, i := range b.Items {
		if len(i.Value) > MaxValueBytes || len(i.Key) > MaxKeyBytes {
			return fmt.Errorf("the key %.40q has %d bytes and its value %d, more than %d or %d", i.Key, len(i.Key), len(i.Value),
				MaxKeyBytes, MaxValueBytes)
		}
	}
	return kv.Load{To: b.Version, Leases: b.Leases, Items: b.Items}.Check()
}

// The file of a backup is lines of JSON: one that says what it is, one for each lease and key, and
// one with the checksum of all lines before.
type (
	backupHead struct {
		Backup  string `json:"backup"`
		Format  int    `json:"format"`
		Version uint64 `json:"version"`
		Leases  int    `json:"leases"`
		Keys    int    `json:"keys"`
		// Of several groups each has a line like this, and the first one's says how many there are.
		Group   int    `json:"group,omitempty"`
		Groups  int    `json:"groups,omitempty"`
		Routing string `json:"routing,omitempty"`
	}
	backupLease struct {
		Lease    kv.LeaseID `json:"lease"`
		TTL      string     `json:"ttl"`
		Renewals uint64     `json:"renewals"`
	}
	backupItem struct {
		Key         string     `json:"key,omitempty"`
		KeyBase64   []byte     `json:"key_base64,omitempty"`
		Value       string     `json:"value,omitempty"`
		ValueBase64 []byte     `json:"value_base64,omitempty"`
		Version     uint64     `json:"version"`
		Lease       kv.LeaseID `json:"lease,omitempty"`
	}
	backupEnd struct {
		SHA256 string `json:"sha256"`
	}
)

const (
	backupKind   = "foresay smr"
	backupFormat = 1
	// maxBackupLine bounds a line: a value and its key, as text of which each byte may need two, or
	// in Base64, and the rest.
	maxBackupLine = 2*(MaxValueBytes+MaxKeyBytes) + 1024
)

// text returns bytes as a string if they are one without control characters, of which JSON makes
// six bytes each, else as bytes, which it has in Base64.
func text(b []byte) (string, []byte) {
	if utf8.Valid(b) && !bytes.ContainsFunc(b, unicode.IsControl) {
		return string(b), nil
	}
	return "", b
}

// WriteTo writes the backup as lines of JSON. The last one has a checksum, without which the file
// cannot be read: a part of a file is noticed.
func (b *Backup) WriteTo(to io.Writer) (int64, error) {
	w := &summing{to: bufio.NewWriter(to), sum: sha256.New()}
	for i, part := range b.parts() {
		if err := part.check(); err != nil {
			return 0, fmt.Errorf("backup: %w", err)
		}
		head := backupHead{Backup: backupKind, Format: backupFormat, Version: part.Version, Leases: len(part.Leases),
			Keys: len(part.Items)}
		if len(b.Others) > 0 {
			head.Group = i + 1
		}
		if head.Group == 1 {
			head.Groups, head.Routing = len(b.Others)+1, b.Routing
		}
		w.part(head, part)
	}
	w.line(backupEnd{SHA256: hex.EncodeToString(w.sum.Sum(nil))})
	if w.err == nil {
		w.err = w.to.Flush()
	}
	return w.bytes, w.err
}

// summing writes lines and sums them up.
type summing struct {
	to    *bufio.Writer
	sum   hash.Hash
	bytes int64
	err   error // the first one; nothing is written after it
}

// part writes what one group has.
func (w *summing) part(head backupHead, b *Backup) {
	w.line(head)
	for _, l := range b.Leases {
		w.line(backupLease{Lease: l.ID, TTL: l.TTL.String(), Renewals: l.Renewals})
	}
	for _, i := range b.Items {
		line := backupItem{Version: i.Version, Lease: i.Lease}
		line.Key, line.KeyBase64 = text(i.Key)
		line.Value, line.ValueBase64 = text(i.Value)
		w.line(line)
	}
}

func (w *summing) line(v any) {
	if w.err != nil {
		return
	}
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false) // it is for no page
	if w.err = encoder.Encode(v); w.err != nil {
		return
	}
	w.sum.Write(b.Bytes())
	n, err := w.to.Write(b.Bytes())
	w.bytes += int64(n)
	w.err = err
}

// ReadBackup reads what Backup.WriteTo wrote. Its errors name the line.
func ReadBackup(from io.Reader) (*Backup, error) {
	r := &backupReader{lines: bufio.NewScanner(from), sum: sha256.New()}
	r.lines.Buffer(nil, maxBackupLine)
	b, err := r.read()
	if err != nil {
		return nil, fmt.Errorf("backup: line %d: %w", r.number, err)
	}
	return b, nil
}

type backupReader struct {
	lines  *bufio.Scanner
	sum    hash.Hash
	number int
}

func (r *backupReader) read() (*Backup, error) {
	b, head, err := r.part()
	if err != nil {
		return nil, err
	}
	if head.Group > 1 || head.Groups < 0 || head.Groups > MaxGroups {
		return nil, fmt.Errorf("it begins with group %d of %d", head.Group, head.Groups)
	}
	b.Routing = head.Routing
	for i := 2; i <= head.Groups; i++ {
		other, next, err := r.part()
		if err != nil {
			return nil, err
		}
		if next.Group != i {
			return nil, fmt.Errorf("group %d is where group %d should be", next.Group, i)
		}
		b.Others = append(b.Others, other)
	}
	want := hex.EncodeToString(r.sum.Sum(nil))
	var end backupEnd
	if err := r.line(&end); err != nil {
		return nil, err
	}
	if end.SHA256 != want {
		return nil, errors.New("the checksum is wrong: the file was changed")
	}
	if r.lines.Scan() {
		return nil, errors.New("there is more after the checksum")
	}
	for _, part := range b.parts() {
		if err := part.check(); err != nil {
			return nil, err
		}
	}
	return b, nil
}

// part reads what one group has.
func (r *backupReader) part() (*Backup, backupHead, error) {
	var head backupHead
	if err := r.line(&head); err != nil {
		return nil, head, err
	}
	if head.Backup != backupKind || head.Format != backupFormat {
		return nil, head, fmt.Errorf("it is no backup of format %d of this service", backupFormat)
	}
	b := &Backup{Version: head.Version}
	for range head.Leases {
		var line backupLease
		if err := r.line(&line); err != nil {
			return nil, head, err
		}
		ttl, err := time.ParseDuration(line.TTL)
		if err != nil {
			return nil, head, err
		}
		b.Leases = append(b.Leases, kv.Lease{ID: line.Lease, TTL: ttl, Renewals: line.Renewals})
	}
	for range head.Keys {
		var line backupItem
		if err := r.line(&line); err != nil {
			return nil, head, err
		}
		b.Items = append(b.Items, kv.Item{
			Key: append([]byte(line.Key), line.KeyBase64...), Value: append([]byte(line.Value), line.ValueBase64...),
			Version: line.Version, Lease: line.Lease,
		})
	}
	return b, head, nil
}

// line reads one line, which has no other fields than v.
func (r *backupReader) line(v any) error {
	r.number++
	if !r.lines.Scan() {
		return cmp.Or(r.lines.Err(), errors.New("it is missing: the file is cut off"))
	}
	r.sum.Write(r.lines.Bytes())
	r.sum.Write([]byte{'\n'})
	d := json.NewDecoder(bytes.NewReader(r.lines.Bytes()))
	d.DisallowUnknownFields()
	err := d.Decode(v)
	if err != nil {
		if want, got := kindOfLine(v), r.kind(); got != "" && got != want {
			return fmt.Errorf("%s is where %s should be: lines are missing or out of place, the file was changed", got, want)
		}
	}
	return err
}

// kind tells by the line's first field what the line is; "" if it is none of a backup's.
func (r *backupReader) kind() string {
	d := json.NewDecoder(bytes.NewReader(r.lines.Bytes()))
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return ""
	}
	switch t, _ := d.Token(); t {
	case "backup":
		return kindOfLine(&backupHead{})
	case "lease":
		return kindOfLine(&backupLease{})
	case "key", "key_base64", "value", "value_base64", "version": // the key "" has no field
		return kindOfLine(&backupItem{})
	case "sha256":
		return kindOfLine(&backupEnd{})
	}
	return ""
}

func kindOfLine(v any) string {
	switch v.(type) {
	case *backupHead:
		return "the beginning of a group"
	case *backupLease:
		return "a lease"
	case *backupItem:
		return "a key"
	default:
		return "the checksum"
	}
}
