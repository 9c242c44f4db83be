package specgrpc

import (
	"fmt"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// marshal returns the one serialization by which equal messages are recognised
// within a process.
func marshal(m proto.Message) ([]byte, error) {
	return proto.MarshalOptions{Deterministic: true}.Marshal(m)
}

// fill makes dst equal to src, which stays untouched.
func fill(dst, src proto.Message) error {
	if d, s := dst.ProtoReflect().Descriptor(), src.ProtoReflect().Descriptor(); d != s {
		if d.FullName() != s.FullName() {
			return fmt.Errorf("specgrpc: a %s is wanted, not a %s", d.FullName(), s.FullName())
		}
		b, err := proto.Marshal(src)
		if err != nil {
			return err
		}
		return proto.Unmarshal(b, dst)
	}
	proto.Reset(dst)
	proto.Merge(dst, src)
	return nil
}

// convert returns a copy of m of the given type, or nil if m is no such message.
func convert(m proto.Message, to protoreflect.MessageType) proto.Message {
	if m == nil || !m.ProtoReflect().IsValid() || m.ProtoReflect().Descriptor().FullName() != to.Descriptor().FullName() {
		return nil
	}
	out := to.New().Interface()
	if fill(out, m) != nil {
		return nil
	}
	return out
}
