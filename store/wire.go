package store

import "github.com/foresay/foresay/internal/wirefmt"

// MinAccessBytes is the least that a read or a write takes as bytes, for lists of them.
const MinAccessBytes = 3

// VersionFields are a Version's, or a transaction's name's.
func VersionFields(c *wirefmt.Coder, m *Version) {
	wirefmt.Uint(c, &m.Time)
	wirefmt.Uint(c, &m.Client)
}

// PriorityFields are a Priority's.
func PriorityFields(c *wirefmt.Coder, m *Priority) {
	wirefmt.Uint(c, &m.Began)
	wirefmt.Uint(c, &m.Client)
}

// ValueFields are a Value's.
func ValueFields(c *wirefmt.Coder, m *Value) {
	VersionFields(c, &m.Version)
	wirefmt.Bool(c, &m.Present)
	wirefmt.Bytes(c, &m.Bytes)
}

var (
	valueLayout = wirefmt.NewLayout("store: value", ValueFields)
	txnLayout   = wirefmt.NewLayout("store: transaction", TxnFields)
)

// accessRoom is about what a value, a read or a write takes beside its bytes.
const accessRoom = 24

// EncodeValue returns a value as bytes, as disks have it.
func EncodeValue(v Value) []byte {
	return valueLayout.Append(make([]byte, 0, accessRoom+len(v.Bytes)), v)
}

// DecodeValue returns the value that EncodeValue has encoded.
func DecodeValue(b []byte) (Value, error) { return valueLayout.Decode(b) }

// EncodeTxn returns a transaction as bytes, as disks have it.
func EncodeTxn(t Txn) []byte { return txnLayout.Append(make([]byte, 0, TxnRoom(t)), t) }

// DecodeTxn returns the transaction that EncodeTxn has encoded. It may be no valid one.
func DecodeTxn(b []byte) (Txn, error) { return txnLayout.Decode(b) }

// TxnRoom is about how many bytes a transaction takes.
func TxnRoom(t Txn) int {
	const room = 40
	return room + ContentBytes(t.Reads, t.Writes) + accessRoom*(len(t.Reads)+len(t.Writes))
}

func readFields(c *wirefmt.Coder, m *Read) {
	wirefmt.String(c, &m.Key)
	VersionFields(c, &m.Version)
}

func writeFields(c *wirefmt.Coder, m *Write) {
	wirefmt.String(c, &m.Key)
	wirefmt.Bool(c, &m.Delete)
	wirefmt.Bytes(c, &m.Bytes)
}

// WritesFields are those of a list of writes.
func WritesFields(c *wirefmt.Coder, writes *[]Write) {
	wirefmt.List(c, writes, MinAccessBytes, writeFields)
}

// TxnFields are a Txn's. What is read may be no valid one.
func TxnFields(c *wirefmt.Coder, m *Txn) {
	VersionFields(c, &m.ID)
	PriorityFields(c, &m.Priority)
	wirefmt.List(c, &m.Reads, MinAccessBytes, readFields)
	WritesFields(c, &m.Writes)
}

// RequestKinds are those of what clients and sites say, for a protocol's codec. Their tags are
// below 16, or above 239.
func RequestKinds() []wirefmt.Kind[Message] {
	return []wirefmt.Kind[Message]{
		wirefmt.NewKind[Message](1, readRequestFields),
		wirefmt.NewEarlierKind[Message](2, func(m ReadReply) bool { return !m.Led }, readReplyFields),
		wirefmt.NewEarlierKind[Message](3, func(m CommitRequest) bool { return !m.Serializable && !m.Explain },
			earlierCommitRequestFields),
		wirefmt.NewKind[Message](4, siteVoteFields),
		wirefmt.NewEarlierKind[Message](5, func(m Decided) bool {
			return m.Version.IsZero() && !m.Fast && len(m.Current) == 0 && m.Held == 0 && m.Course == nil
		}, earlierDecidedFields),
		wirefmt.NewKind[Message](6, busyFields),
		wirefmt.NewEarlierKind[Message](7, func(m DeclareRequest) bool {
			return !m.Serializable && !m.dated() && m.Step == 0 && m.Priority.IsZero()
		}, earliestDeclareRequestFields),
		wirefmt.NewEarlierKind[Message](8, func(m DeclareReply) bool { return m.At == 0 && m.Age == 0 && m.Step == 0 },
			earlierDeclareReplyFields),
		wirefmt.NewKind[Message](9, abandonRequestFields),
		wirefmt.NewEarlierKind[Message](10, func(m CommitRequest) bool { return !m.Explain }, commitRequestFields),
		wirefmt.NewKind[Message](250, explainedRequestFields),
		wirefmt.NewEarlierKind[Message](11, func(m DeclareRequest) bool {
			return !m.dated() && m.Step == 0 && m.Priority.IsZero()
		},
			earlierDeclareRequestFields),
		wirefmt.NewEarlierKind[Message](14, func(m Decided) bool {
			return len(m.Current) == 0 && m.Held == 0 && m.Course == nil
		}, decidedFields),
		wirefmt.NewEarlierKind[Message](15, func(m DeclareRequest) bool {
			return m.Step == 0 && m.Priority.IsZero()
		}, declareRequestFields),
		wirefmt.NewEarlierKind[Message](240, func(m DeclareReply) bool { return m.Step == 0 }, declareReplyFields),
		wirefmt.NewEarlierKind[Message](241, func(m Decided) bool { return m.Held == 0 && m.Course == nil },
			currentDecidedFields),
		wirefmt.NewEarlierKind[Message](242, func(m DeclareRequest) bool { return m.Priority.IsZero() },
			stepDeclareRequestFields),
		wirefmt.NewKind[Message](243, func(c *wirefmt.Coder, m *DeclareReply) {
			declareReplyFields(c, m)
			wirefmt.Uint32(c, &m.Step)
		}),
		wirefmt.NewEarlierKind[Message](244, func(m Decided) bool { return m.Course == nil }, heldDecidedFields),
		wirefmt.NewKind[Message](249, func(c *wirefmt.Coder, m *Decided) {
			heldDecidedFields(c, m)
			if m.Course == nil {
				m.Course = new(Course)
			}
			courseFields(c, m.Course)
		}),
		wirefmt.NewKind[Message](245, func(c *wirefmt.Coder, m *DeclareRequest) {
			stepDeclareRequestFields(c, m)
			PriorityFields(c, &m.Priority)
		}),
		wirefmt.NewKind[Message](246, func(c *wirefmt.Coder, m *ReadReply) {
			readReplyFields(c, m)
			wirefmt.Bool(c, &m.Led)
		}),
	}
}

// SpeculationKinds are those of transactions that are committed locally (Protocol.Speculates), for
// the codec of a protocol that has them.
func SpeculationKinds() []wirefmt.Kind[Message] {
	return []wirefmt.Kind[Message]{
		wirefmt.NewEarlierKind[Message](247, func(m SpeculateRequest) bool { return !m.Explain },
			func(c *wirefmt.Coder, m *SpeculateRequest) {
				commitRequestFields(c, &m.CommitRequest)
				speculateFields(c, m)
			}),
		wirefmt.NewKind[Message](251, func(c *wirefmt.Coder, m *SpeculateRequest) {
			explainedRequestFields(c, &m.CommitRequest)
			speculateFields(c, m)
		}),
		wirefmt.NewKind[Message](248, func(c *wirefmt.Coder, m *Speculated) {
			VersionFields(c, &m.ID)
			wirefmt.Uint(c, &m.At)
		}),
	}
}

// speculateFields are those of a SpeculateRequest beside its CommitRequest's.
func speculateFields(c *wirefmt.Coder, m *SpeculateRequest) {
	wirefmt.Bool(c, &m.Held)
	wirefmt.List(c, &m.After, 2, VersionFields)
	wirefmt.Bool(c, &m.Told)
	wirefmt.Bool(c, &m.Waits)
}

func currentDecidedFields(c *wirefmt.Coder, m *Decided) {
	decidedFields(c, m)
	wirefmt.List(c, &m.Current, 6, CurrentFields)
}

func heldDecidedFields(c *wirefmt.Coder, m *Decided) {
	currentDecidedFields(c, m)
	wirefmt.Uint(c, &m.Held)
}

func stepDeclareRequestFields(c *wirefmt.Coder, m *DeclareRequest) {
	declareRequestFields(c, m)
	wirefmt.Uint32(c, &m.Step)
}

// SnapshotKinds are those of what servers are asked of snapshots (Protocol.Snapshots), for the
// codec of a protocol that has them.
func SnapshotKinds() []wirefmt.Kind[Message] {
	return []wirefmt.Kind[Message]{
		wirefmt.NewKind[Message](12, pageRequestFields), wirefmt.NewKind[Message](13, pageReplyFields),
	}
}

func readRequestFields(c *wirefmt.Coder, m *ReadRequest) {
	wirefmt.Uint(c, &m.Ref)
	wirefmt.String(c, &m.Key)
	PriorityFields(c, &m.Priority)
}

func readReplyFields(c *wirefmt.Coder, m *ReadReply) {
	wirefmt.Uint(c, &m.Ref)
	ValueFields(c, &m.Value)
	wirefmt.Bool(c, &m.Pending)
	wirefmt.Uint(c, &m.Hint)
	wirefmt.Bool(c, &m.Queued)
}

func explainedRequestFields(c *wirefmt.Coder, m *CommitRequest) {
	commitRequestFields(c, m)
	wirefmt.Bool(c, &m.Explain)
}

func commitRequestFields(c *wirefmt.Coder, m *CommitRequest) {
	earlierCommitRequestFields(c, m)
	wirefmt.Bool(c, &m.Serializable)
}

func earlierCommitRequestFields(c *wirefmt.Coder, m *CommitRequest) {
	TxnFields(c, &m.Txn)
	wirefmt.Bool(c, &m.Recover)
	wirefmt.Bool(c, &m.Firm)
	wirefmt.Bool(c, &m.Hold)
}

func siteVoteFields(c *wirefmt.Coder, m *SiteVote) {
	VersionFields(c, &m.ID)
	ShardsFields(c, &m.Shards)
	wirefmt.Bool(c, &m.Yes)
	ReasonFields(c, &m.Reason)
	wirefmt.Uint(c, &m.Hint)
	wirefmt.List(c, &m.Current, 6, CurrentFields)
}

func decidedFields(c *wirefmt.Coder, m *Decided) {
	earlierDecidedFields(c, m)
	VersionFields(c, &m.Version)
	wirefmt.Bool(c, &m.Fast)
}

func earlierDecidedFields(c *wirefmt.Coder, m *Decided) {
	VersionFields(c, &m.ID)
	wirefmt.Enum(c, &m.Verdict, 0, Aborted, "verdict")
	ReasonFields(c, &m.Reason)
}

func busyFields(c *wirefmt.Coder, m *Busy) { VersionFields(c, &m.ID) }

func declareRequestFields(c *wirefmt.Coder, m *DeclareRequest) {
	earlierDeclareRequestFields(c, m)
	wirefmt.Int(c, &m.MaxAge)
	wirefmt.Uint(c, &m.NotBefore)
	wirefmt.Uint(c, &m.At)
}

// dated reports whether a declaration says of when it wants to see the store.
func earlierDeclareRequestFields(c *wirefmt.Coder, m *DeclareRequest) {
	earliestDeclareRequestFields(c, m)
	wirefmt.Bool(c, &m.Serializable)
}

func earliestDeclareRequestFields(c *wirefmt.Coder, m *DeclareRequest) {
	VersionFields(c, &m.ID)
	wirefmt.List(c, &m.Reads, 1, wirefmt.String)
	wirefmt.List(c, &m.Writes, 1, wirefmt.String)
}

func declareReplyFields(c *wirefmt.Coder, m *DeclareReply) {
	earlierDeclareReplyFields(c, m)
	wirefmt.Uint(c, &m.At)
	wirefmt.Int(c, &m.Age)
}

func earlierDeclareReplyFields(c *wirefmt.Coder, m *DeclareReply) {
	VersionFields(c, &m.ID)
	wirefmt.List(c, &m.Values, 5, HeldFields)
}

func abandonRequestFields(c *wirefmt.Coder, m *AbandonRequest) { VersionFields(c, &m.ID) }

func pageRequestFields(c *wirefmt.Coder, m *PageRequest) {
	wirefmt.Uint(c, &m.Ref)
	wirefmt.Uint32(c, &m.Shard)
	wirefmt.Uint(c, &m.At)
	wirefmt.Bytes(c, &m.From)
}

func pageReplyFields(c *wirefmt.Coder, m *PageReply) {
	wirefmt.Uint(c, &m.Ref)
	wirefmt.Uint(c, &m.At)
	ReasonFields(c, &m.Reason)
	wirefmt.Uint(c, &m.Horizon)
	wirefmt.List(c, &m.Items, 5, func(c *wirefmt.Coder, i *Item) {
		wirefmt.String(c, &i.Key)
		ValueFields(c, &i.Value)
	})
	wirefmt.Bytes(c, &m.Next)
}

// HeldFields are a Held's.
func HeldFields(c *wirefmt.Coder, m *Held) {
	ValueFields(c, &m.Value)
	wirefmt.Uint32(c, &m.Site)
	wirefmt.Bool(c, &m.Large)
}

// ShardsFields are those of a list of shards.
func ShardsFields(c *wirefmt.Coder, shards *[]uint32) { wirefmt.List(c, shards, 1, wirefmt.Uint32) }

// CurrentFields are a Current's.
func CurrentFields(c *wirefmt.Coder, m *Current) {
	wirefmt.String(c, &m.Key)
	wirefmt.Bool(c, &m.Locked)
	ValueFields(c, &m.Value)
}

// ReasonFields are a Reason's.
func ReasonFields(c *wirefmt.Coder, reason *Reason) {
	wirefmt.Enum(c, reason, 0, Lapsed, "reason")
}
