package front

import (
	pb "github.com/foresay/foresay/api/foresay/store/v1"
	"github.com/foresay/foresay/store"
)

func courseToWire(m *store.Course) *pb.Course {
	if m == nil {
		return nil
	}
	out := &pb.Course{Snapshot: m.Snapshot, Local: m.Local, LocalNs: ageToWire(m.LocalAt),
		LastOnNs: ageToWire(m.LastOnAt)}
	for _, b := range m.Built {
		out.Built = append(out.Built, &pb.Course_Built{Key: []byte(b.Key), By: versionToWire(b.By)})
	}
	for _, w := range m.Words {
		out.Words = append(out.Words, &pb.Course_Word{Shard: w.Shard, Site: w.Site, AtNs: ageToWire(w.At)})
	}
	if !m.LastOn.IsZero() {
		out.LastOn = versionToWire(m.LastOn)
	}
	return out
}

func courseFromWire(m *pb.Course) *store.Course {
	if m == nil {
		return nil
	}
	out := &store.Course{Snapshot: m.GetSnapshot(), Local: m.GetLocal(), LocalAt: ageFromWire(m.GetLocalNs()),
		LastOn: versionFromWire(m.GetLastOn()), LastOnAt: ageFromWire(m.GetLastOnNs())}
	for _, b := range m.GetBuilt() {
		out.Built = append(out.Built, store.Built{Key: store.Key(b.GetKey()), By: versionFromWire(b.GetBy())})
	}
	for _, w := range m.GetWords() {
		out.Words = append(out.Words, store.CourseWord{Shard: w.GetShard(), Site: w.GetSite(), At: ageFromWire(w.GetAtNs())})
	}
	return out
}
