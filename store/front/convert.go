package front

import (
	"math"
	"time"

	pb "github.com/foresay/foresay/api/foresay/store/v1"
	"github.com/foresay/foresay/store"
	"github.com/foresay/foresay/store/gate"
)

func versionToWire(v store.Version) *pb.Version {
	return &pb.Version{Time: v.Time, Client: uint64(v.Client)}
}

func versionFromWire(v *pb.Version) store.Version {
	return store.Version{Time: v.GetTime(), Client: store.ClientID(v.GetClient())}
}

func priorityToWire(p store.Priority) *pb.Priority {
	if p.IsZero() {
		return nil
	}
	return &pb.Priority{Began: p.Began, Client: uint64(p.Client)}
}

func priorityFromWire(p *pb.Priority) store.Priority {
	return store.Priority{Began: p.GetBegan(), Client: store.ClientID(p.GetClient())}
}

// commitOf returns the CommitRequest that a message is, or has in it.
func commitOf(msg store.Message) (m store.CommitRequest, ok bool) {
	switch m := msg.(type) {
	case store.CommitRequest:
		return m, true
	case store.SpeculateRequest:
		return m.CommitRequest, true
	}
	return m, false
}

func commitToWire(m store.Message, epoch uint64) *pb.CommitRequest {
	of, _ := commitOf(m)
	out := txnToWire(of.Txn)
	askToWire(out, m, epoch)
	return out
}

// askToWire adds what a request to commit says beside its transaction.
func askToWire(out *pb.CommitRequest, m store.Message, epoch uint64) {
	of, _ := commitOf(m)
	out.Recover, out.Firm, out.Hold, out.Epoch = of.Recover, of.Firm, of.Hold, epoch
	out.Serializable, out.Explain = of.Serializable, of.Explain
	if m, ok := m.(store.SpeculateRequest); ok {
		out.Speculate, out.Held, out.Told, out.Waits = true, m.Held, m.Told, m.Waits
		for _, id := range m.After {
			out.After = append(out.After, versionToWire(id))
		}
	}
}

// txnToWire returns what is the same for all sites that are asked to commit a transaction, and
// however often.
func txnToWire(t store.Txn) *pb.CommitRequest {
	out := &pb.CommitRequest{
		Id: versionToWire(t.ID), Priority: priorityToWire(t.Priority), Reads: make([]*pb.Read, 0, len(t.Reads)),
		Writes: make([]*pb.Write, 0, len(t.Writes)),
	}
	for _, r := range t.Reads {
		out.Reads = append(out.Reads, &pb.Read{Key: []byte(r.Key), Version: versionToWire(r.Version)})
	}
	for _, w := range t.Writes {
		out.Writes = append(out.Writes, &pb.Write{Key: []byte(w.Key), Delete: w.Delete, Value: w.Bytes})
	}
	return out
}

// encodedToWire is commitToWire with what is the same for all sites as bytes, which are not encoded
// again: a message has fields that it does not know as such.
func encodedToWire(m store.Message, txn []byte, epoch uint64) *pb.CommitRequest {
	out := &pb.CommitRequest{}
	askToWire(out, m, epoch)
	out.ProtoReflect().SetUnknown(txn)
	return out
}

func txnFromWire(m *pb.CommitRequest) store.Txn {
	t := store.Txn{ID: versionFromWire(m.GetId()), Priority: priorityFromWire(m.GetPriority())}
	for _, r := range m.GetReads() {
		t.Reads = append(t.Reads, store.Read{Key: store.Key(r.GetKey()), Version: versionFromWire(r.GetVersion())})
	}
	for _, w := range m.GetWrites() {
		t.Writes = append(t.Writes, store.Write{Key: store.Key(w.GetKey()), Delete: w.GetDelete(), Bytes: w.GetValue()})
	}
	return t
}

// gateRead, gateCommit and gateDeclare return what the gate is asked, with a number of the
// service's.

func gateRead(r *pb.ReadRequest) func(ref uint64) store.Message {
	return func(ref uint64) store.Message {
		return gate.Read{Ref: ref, Key: store.Key(r.GetKey()), Priority: priorityFromWire(r.GetPriority())}
	}
}

func gateCommit(r *pb.CommitRequest) func(ref uint64) store.Message {
	return func(ref uint64) store.Message {
		m := gate.Commit{Ref: ref, Txn: txnFromWire(r), Recover: r.GetRecover(), Firm: r.GetFirm(), Hold: r.GetHold(),
			Serializable: r.GetSerializable(), Explain: r.GetExplain(), Speculate: r.GetSpeculate(), Held: r.GetHeld(),
			Told: r.GetTold(), Waits: r.GetWaits()}
		for _, id := range r.GetAfter() {
			m.After = append(m.After, versionFromWire(id))
		}
		return m
	}
}

func gateDeclare(r *pb.DeclareRequest) func(ref uint64) store.Message {
	return func(ref uint64) store.Message {
		return gate.Declare{Ref: ref, DeclareRequest: store.DeclareRequest{ID: versionFromWire(r.GetId()),
			Reads: keysFromWire(r.GetReads()), Writes: keysFromWire(r.GetWrites()), Serializable: r.GetSerializable(),
			MaxAge: ageFromWire(r.GetMaxAgeNs()), NotBefore: r.GetNotBefore(), At: r.GetAt(), Step: r.GetStep(),
			Priority: priorityFromWire(r.GetPriority())}}
	}
}

func gatePage(r *pb.PageRequest) func(ref uint64) store.Message {
	return func(ref uint64) store.Message {
		return gate.Page{Ref: ref, Ask: store.PageRequest{Shard: r.GetShard(), At: r.GetAt(), From: r.GetFrom()}}
	}
}

func pageToWire(m store.PageReply) *pb.PageResponse {
	out := &pb.PageResponse{At: m.At, Reason: reasonToWire(m.Reason), Horizon: m.Horizon, Next: m.Next}
	for _, i := range m.Items {
		out.Items = append(out.Items, &pb.Item{Key: []byte(i.Key), Version: versionToWire(i.Value.Version),
			Value: i.Value.Bytes})
	}
	return out
}

func pageFromWire(r *pb.PageResponse) store.PageReply {
	out := store.PageReply{At: r.GetAt(), Reason: reasonFromWire(r.GetReason()), Horizon: r.GetHorizon(),
		Next: r.GetNext()}
	for _, i := range r.GetItems() {
		out.Items = append(out.Items, store.Item{Key: store.Key(i.GetKey()), Value: store.Value{
			Version: versionFromWire(i.GetVersion()), Present: true, Bytes: i.GetValue()}})
	}
	return out
}

func declareToWire(m store.DeclareRequest, epoch uint64) *pb.DeclareRequest {
	return &pb.DeclareRequest{Id: versionToWire(m.ID), Reads: keysToWire(m.Reads), Writes: keysToWire(m.Writes),
		Epoch: epoch, Serializable: m.Serializable, MaxAgeNs: ageToWire(m.MaxAge), NotBefore: m.NotBefore, At: m.At,
		Step: m.Step, Priority: priorityToWire(m.Priority)}
}

func ageToWire(d time.Duration) uint64 { return uint64(max(d, 0)) }

func ageFromWire(ns uint64) time.Duration { return time.Duration(min(ns, math.MaxInt64)) }

func keysToWire(keys []store.Key) (out [][]byte) {
	for _, k := range keys {
		out = append(out, []byte(k))
	}
	return out
}

func keysFromWire(keys [][]byte) (out []store.Key) {
	for _, k := range keys {
		out = append(out, store.Key(k))
	}
	return out
}

func declaredToWire(m store.DeclareReply) *pb.DeclareResponse {
	out := &pb.DeclareResponse{At: m.At, AgeNs: ageToWire(m.Age), Step: m.Step}
	for _, h := range m.Values {
		w := &pb.Held{Site: h.Site, Large: h.Large}
		if !h.Large {
			w.Version, w.Present, w.Value = versionToWire(h.Value.Version), h.Value.Present, h.Value.Bytes
		}
		out.Values = append(out.Values, w)
	}
	return out
}

func declaredFromWire(m store.DeclareRequest, r *pb.DeclareResponse) store.Message {
	out := store.DeclareReply{ID: m.ID, Step: r.GetStep(), At: r.GetAt(), Age: ageFromWire(r.GetAgeNs())}
	for _, h := range r.GetValues() {
		out.Values = append(out.Values, store.Held{Site: h.GetSite(), Large: h.GetLarge(), Value: store.Value{
			Version: versionFromWire(h.GetVersion()), Present: h.GetPresent(), Bytes: h.GetValue()}})
	}
	return out
}

func readToWire(m store.ReadRequest, epoch uint64) *pb.ReadRequest {
	return &pb.ReadRequest{Key: []byte(m.Key), Priority: priorityToWire(m.Priority), Epoch: epoch}
}

func readFromWire(ref uint64, r *pb.ReadResponse) store.Message {
	v := store.Value{Version: versionFromWire(r.GetVersion()), Present: r.GetPresent(), Bytes: r.GetValue()}
	return store.ReadReply{Ref: ref, Value: v, Pending: r.GetPending(), Hint: r.GetHint(), Queued: r.GetQueued(),
		Led: r.GetLed()}
}

// The wire and the store number reasons alike, which a test checks by name.

func reasonToWire(r store.Reason) pb.Reason {
	if _, ok := pb.Reason_name[int32(r)]; ok {
		return pb.Reason(r)
	}
	return pb.Reason_REASON_UNSPECIFIED
}

// reasonFromWire takes what a later version may add for no reason.
func reasonFromWire(r pb.Reason) store.Reason {
	if _, ok := pb.Reason_name[int32(r)]; ok {
		return store.Reason(r)
	}
	return store.NoReason
}

func currentToWire(all []store.Current) []*pb.Current {
	var out []*pb.Current
	for _, c := range all {
		w := &pb.Current{Key: []byte(c.Key), Locked: c.Locked}
		if !c.Locked {
			w.Version, w.Present, w.Value = versionToWire(c.Value.Version), c.Value.Present, c.Value.Bytes
		}
		out = append(out, w)
	}
	return out
}

func currentFromWire(all []*pb.Current) []store.Current {
	var out []store.Current
	for _, c := range all {
		out = append(out, store.Current{
			Key: store.Key(c.GetKey()), Locked: c.GetLocked(), Value: store.Value{Version: versionFromWire(c.GetVersion()),
				Present: c.GetPresent(), Bytes: c.GetValue()},
		})
	}
	return out
}

func doneToWire(m gate.CommitDone) *pb.CommitResponse {
	if m.Local != nil {
		return &pb.CommitResponse{Result: &pb.CommitResponse_Local{Local: &pb.LocalCommit{At: m.Local.At}}}
	}
	if !m.Known {
		return &pb.CommitResponse{Result: &pb.CommitResponse_Vote{Vote: &pb.Vote{
			Yes: m.Vote.Yes, Reason: reasonToWire(m.Vote.Reason), Hint: m.Vote.Hint, Current: currentToWire(m.Vote.Current),
		}}}
	}
	d := &pb.Decision{Reason: reasonToWire(m.Decided.Reason), Fast: m.Decided.Fast, HeldNs: ageToWire(m.Decided.Held),
		Current: currentToWire(m.Decided.Current), Course: courseToWire(m.Decided.Course)}
	switch m.Decided.Verdict {
	case store.Committed:
		d.Verdict = pb.Decision_VERDICT_COMMITTED
		if !m.Decided.Version.IsZero() {
			d.Version = versionToWire(m.Decided.Version)
		}
	case store.Aborted:
		d.Verdict = pb.Decision_VERDICT_ABORTED
	}
	return &pb.CommitResponse{Result: &pb.CommitResponse_Decision{Decision: d}}
}

// doneFromWire returns the message that the coordinator would have sent to a node, or nil if the
// answer says nothing.
func doneFromWire(id store.TxnID, m *pb.CommitResponse) store.Message {
	switch r := m.GetResult().(type) {
	case *pb.CommitResponse_Vote:
		return store.SiteVote{
			ID: id, Yes: r.Vote.GetYes(), Reason: reasonFromWire(r.Vote.GetReason()), Hint: r.Vote.GetHint(),
			Current: currentFromWire(r.Vote.GetCurrent()),
		}
	case *pb.CommitResponse_Local:
		return store.Speculated{ID: id, At: r.Local.GetAt()}
	case *pb.CommitResponse_Decision:
		d := store.Decided{ID: id, Reason: reasonFromWire(r.Decision.GetReason()), Fast: r.Decision.GetFast(),
			Held:    ageFromWire(r.Decision.GetHeldNs()),
			Current: currentFromWire(r.Decision.GetCurrent()), Course: courseFromWire(r.Decision.GetCourse())}
		switch r.Decision.GetVerdict() {
		case pb.Decision_VERDICT_COMMITTED:
			d.Verdict, d.Version = store.Committed, versionFromWire(r.Decision.GetVersion())
		case pb.Decision_VERDICT_ABORTED:
			d.Verdict = store.Aborted
		}
		return d
	}
	return nil
}
