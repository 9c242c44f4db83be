package dash

import (
	"encoding/json"
	"sync"
	"time"
)

// What a page is given when it is opened.
const (
	keptTasks  = 64
	keptPoints = 300 // ten minutes
)

// feed is what is known of one service, as JSON. It is safe for concurrent use.
// Every part is numbered, so that each stream knows what it has sent.
type feed struct {
	mu     sync.Mutex
	about  service
	told   uint64 // how often about changed
	status body
	report body
	tasks  ring
	points ring
}

func newFeed(about service) *feed {
	return &feed{about: about, told: 1, tasks: ring{limit: keptTasks}, points: ring{limit: keptPoints}}
}

// service is an entry of the event "services".
type service struct {
	ID   string `json:"id"`
	Base string `json:"base"` // of the paths to POST to, relative to the page's
	Name string `json:"name"`
	Addr string `json:"addr,omitempty"`
	Up   bool   `json:"up"`
	// Since is when it went up or down, and Error why it is down.
	Since  time.Time `json:"since,omitzero"`
	Error  string    `json:"error,omitempty"`
	Switch bool      `json:"switch"`
	Report bool      `json:"report"`
}

// body is the latest of something of which only that is of interest.
type body struct {
	number uint64
	json   []byte
}

// ring is the last of something of which all is of interest.
type ring struct {
	limit int
	next  uint64 // the number of the next item
	items [][]byte
}

func (r *ring) add(item []byte) {
	if len(r.items) >= r.limit {
		copy(r.items, r.items[1:])
		r.items = r.items[:len(r.items)-1]
	}
	r.items = append(r.items, item)
	r.next++
}

// since returns what came after the first `number` items and is still there.
func (r *ring) since(number uint64) [][]byte {
	fresh := min(r.next-min(number, r.next), uint64(len(r.items)))
	return append([][]byte(nil), r.items[uint64(len(r.items))-fresh:]...)
}

// tell notes what the service says about itself.
func (f *feed) tell(r Rights) {
	f.change(func(s *service) { s.Name, s.Report, s.Up = r.Name, r.Report, true })
}

func (f *feed) change(change func(*service)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	before := f.about
	change(&f.about)
	if f.about != before {
		f.told++
	}
}

// About, as the requester may know it.
func (f *feed) described(may bool) (s service, told uint64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	s = f.about
	s.Switch = s.Switch && may
	return s, f.told
}

func (f *feed) setStatus(b []byte) { f.set(&f.status, b) }
func (f *feed) setReport(b []byte) { f.set(&f.report, b) }

func (f *feed) set(to *body, b []byte) {
	f.mu.Lock()
	defer f.mu.Unlock()
	to.number++
	to.json = b
}

func (f *feed) addTask(b []byte)  { f.add(&f.tasks, b) }
func (f *feed) addPoint(b []byte) { f.add(&f.points, b) }

func (f *feed) add(to *ring, b []byte) {
	f.mu.Lock()
	defer f.mu.Unlock()
	to.add(b)
}

// forget drops what a service that was restarted will send again.
func (f *feed) forget() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.tasks.items, f.points.items = nil, nil
}

// cursor is what a stream has sent of a feed.
type cursor struct {
	status, report, tasks, points uint64
}

// fresh is what a stream has not sent yet.
type fresh struct {
	status, report []byte // nil: nothing new
	tasks, points  [][]byte
}

func (f *feed) since(c *cursor) (out fresh) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.status.number != c.status {
		out.status, c.status = f.status.json, f.status.number
	}
	if f.report.number != c.report {
		out.report, c.report = f.report.json, f.report.number
	}
	out.tasks, c.tasks = f.tasks.since(c.tasks), f.tasks.next
	out.points, c.points = f.points.since(c.points), f.points.next
	return out
}

// array joins values that are JSON.
func array(items [][]byte) []byte {
	raw := make([]json.RawMessage, len(items))
	for i, item := range items {
		raw[i] = item
	}
	b, err := json.Marshal(raw)
	if err != nil {
		panic("dash: a feed holds what is no JSON: " + err.Error())
	}
	return b
}

func (f *feed) id() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.about.ID
}
