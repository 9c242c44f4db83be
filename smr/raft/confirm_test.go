package raft

import (
	"encoding/binary"
	"slices"
	"testing"

	"go.etcd.io/raft/v3/raftpb"
)

// TestConfirmIsOfItsTime: what a majority says to a round of heartbeats confirms only the questions
// that came before the round.
func TestConfirmIsOfItsTime(t *testing.T) {
	b := newByHand(t)
	confirmed := func() (questions []uint64) {
		for _, e := range b.told {
			if e.kind == wasConfirmed {
				questions = append(questions, e.question)
			}
		}
		b.told = nil
		return questions
	}
	ask := func(question uint64, want bool) {
		t.Helper()
		var ok bool
		if b.do(func() { ok = b.part.confirm(b.env, question) }); ok != want {
			t.Errorf("question %d is taken: %v, want %v", question, ok, want)
		}
	}
	heard := func(round uint64) {
		b.receive(2, rpc{&raftpb.Message{Type: raftpb.MsgHeartbeatResp.Enum(), From: new(uint64(2)), To: new(uint64(1)),
			Term: new(uint64(2)), Context: binary.LittleEndian.AppendUint64(nil, round)}})
	}
	ask(1, false)
	b.lead()
	ask(2, true)
	if got := confirmed(); got != nil || b.core.beatTicks != 0 {
		t.Errorf("a leader that may lack entries confirms %v, after %d rounds", got, b.core.beatTicks)
	}
	b.receive(2, rpc{&raftpb.Message{Type: raftpb.MsgAppResp.Enum(), From: new(uint64(2)), To: new(uint64(1)),
		Term: new(uint64(2)), Index: &b.core.last}})
	for _, question := range []uint64{3, 4} {
		ask(question, true) // while the rounds of those before are under way
	}
	if got := confirmed(); got != nil {
		t.Errorf("%v are confirmed by nobody", got)
	}
	heard(1)
	if got := confirmed(); !slices.Equal(got, []uint64{2}) {
		t.Errorf("the first round confirms %v, want 2 alone", got)
	}
	heard(3)
	if got := confirmed(); !slices.Equal(got, []uint64{3, 4}) || b.core.beatTicks != 3 {
		t.Errorf("%d rounds confirm %v, want 3 and 4 by the third", b.core.beatTicks, got)
	}
	ask(5, true)
	b.receive(3, rpc{&raftpb.Message{Type: raftpb.MsgHeartbeat.Enum(), From: new(uint64(3)), To: new(uint64(1)),
		Term: new(uint64(5)), Commit: new(uint64(1))}})
	heard(4)
	if got := confirmed(); got != nil || b.led {
		t.Errorf("who leads no more confirms %v", got)
	}
}

// TestRoundsAreFew: those who ask while many rounds are under way share the next one.
func TestRoundsAreFew(t *testing.T) {
	b := newByHand(t)
	b.lead()
	b.receive(2, rpc{&raftpb.Message{Type: raftpb.MsgAppResp.Enum(), From: new(uint64(2)), To: new(uint64(1)),
		Term: new(uint64(2)), Index: &b.core.last}})
	for question := range uint64(100) {
		b.do(func() { b.part.confirm(b.env, question) })
	}
	if b.core.beatTicks != maxRounds {
		t.Errorf("%d rounds are under way, want %d", b.core.beatTicks, maxRounds)
	}
	b.told = nil
	for _, round := range []uint64{1, maxRounds + 1} {
		b.receive(2, rpc{&raftpb.Message{Type: raftpb.MsgHeartbeatResp.Enum(), From: new(uint64(2)), To: new(uint64(1)),
			Term: new(uint64(2)), Context: binary.LittleEndian.AppendUint64(nil, round)}})
	}
	if len(b.told) != 100 || !b.part.rounds.idle() {
		t.Errorf("%d questions are confirmed by %d rounds, want 100", len(b.told), b.core.beatTicks)
	}
}
