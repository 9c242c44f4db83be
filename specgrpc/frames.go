package specgrpc

import (
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"

	specv1 "github.com/foresay/foresay/api/foresay/spec/v1"
)

// specSuffix makes the name of a unary method's speculative stream.
const specSuffix = ".spec"

// undoneTrailer is in the trailers of a stream whose call was undone. A Confirm
// that was sent on it was not heard.
const undoneTrailer = "foresay-undone"

// hooksTrailer is in the trailers of a stream whose result stood only after the
// commit hooks of its handler: the microseconds that these took.
const hooksTrailer = "foresay-hooks-us"

const (
	// maxPredictions bounds the predictions of one call, so that neither side
	// remembers without end.
	maxPredictions = 64
	// frameOverheadBytes is what a frame adds to its payload, at most.
	frameOverheadBytes = 128
)

// word is the caller's word on a speculative call: did its assumptions hold?
type word uint8

const (
	noWord word = iota
	confirmed
	aborted
)

func (w word) String() string { return [...]string{"no word", "confirm", "abort"}[w] }

// attemptID names one attempt at a call.
type attemptID struct {
	call   [16]byte
	number uint32
}

func (id attemptID) String() string {
	return hex.EncodeToString(id.call[:]) + "/" + strconv.FormatUint(uint64(id.number), 10)
}

func (id attemptID) confirm() *specv1.ClientFrame {
	return &specv1.ClientFrame{Frame: &specv1.ClientFrame_Confirm{
		Confirm: &specv1.Confirm{CallId: id.call[:], Attempt: id.number},
	}}
}

func (id attemptID) abort() *specv1.ClientFrame {
	return &specv1.ClientFrame{Frame: &specv1.ClientFrame_Abort{
		Abort: &specv1.Abort{CallId: id.call[:], Attempt: id.number},
	}}
}

// matches reports whether a frame's id is this one.
func (id attemptID) matches(call []byte, attempt uint32) bool {
	return string(call) == string(id.call[:]) && attempt == id.number
}

// checkRequest returns the Request that a stream begins with, and its id.
func checkRequest(f *specv1.ClientFrame) (*specv1.Request, attemptID, error) {
	var id attemptID
	r := f.GetRequest()
	switch {
	case r == nil:
		return nil, id, fmt.Errorf("the first frame is %s, not Request", clientFrameName(f))
	case len(r.GetCallId()) != len(id.call):
		return nil, id, fmt.Errorf("the frame's Request.call_id has %d bytes, want %d", len(r.GetCallId()), len(id.call))
	case r.GetAttempt() == 0:
		return nil, id, errors.New("the frame's Request.attempt is 0, want at least 1")
	}
	switch r.GetCaller() {
	case specv1.CallerState_CALLER_STATE_CONFIRMED:
		if r.GetDepth() != 0 {
			return nil, id, fmt.Errorf("the frame's Request.depth is %d although Request.caller is confirmed", r.GetDepth())
		}
	case specv1.CallerState_CALLER_STATE_SPECULATIVE:
		if r.GetDepth() == 0 {
			return nil, id, errors.New("the frame's Request.depth is 0 although Request.caller is speculative")
		}
	default:
		return nil, id, fmt.Errorf("the frame's Request.caller is %v", r.GetCaller())
	}
	copy(id.call[:], r.GetCallId())
	id.number = r.GetAttempt()
	return r, id, nil
}

// checkWord returns what a frame after the Request says.
func checkWord(f *specv1.ClientFrame, id attemptID) (word, error) {
	switch w := f.GetFrame().(type) {
	case *specv1.ClientFrame_Confirm:
		if !id.matches(w.Confirm.GetCallId(), w.Confirm.GetAttempt()) {
			return noWord, errors.New("frame Confirm names another call")
		}
		return confirmed, nil
	case *specv1.ClientFrame_Abort:
		if !id.matches(w.Abort.GetCallId(), w.Abort.GetAttempt()) {
			return noWord, errors.New("frame Abort names another call")
		}
		return aborted, nil
	default:
		return noWord, fmt.Errorf("%s after Request", clientFrameName(f))
	}
}

func clientFrameName(f *specv1.ClientFrame) string {
	switch f.GetFrame().(type) {
	case *specv1.ClientFrame_Request:
		return "Request"
	case *specv1.ClientFrame_Confirm:
		return "Confirm"
	case *specv1.ClientFrame_Abort:
		return "Abort"
	default:
		return "empty or unknown"
	}
}

// answers checks the order and the references of the frames that a server
// sends on one stream.
type answers struct {
	predictions int
	final       bool
	refused     bool
}

// none reports whether the server has not answered at all.
func (a *answers) none() bool { return a.predictions == 0 && !a.final && !a.refused }

// check takes the next frame; an error says how it breaks the protocol.
func (a *answers) check(f *specv1.ServerFrame) error {
	if a.refused {
		return errors.New("a frame after Refused")
	}
	switch x := f.GetFrame().(type) {
	case *specv1.ServerFrame_Refused:
		if !a.none() {
			return errors.New("frame Refused after another frame")
		}
		a.refused = true
	case *specv1.ServerFrame_Prediction:
		if a.final {
			return errors.New("frame Prediction after Final")
		}
		if a.predictions == maxPredictions {
			return fmt.Errorf("more than %d predictions", maxPredictions)
		}
		a.predictions++
	case *specv1.ServerFrame_Final:
		if a.final {
			return errors.New("frame Final after Final")
		}
		a.final = true
		switch r := x.Final.GetResult().(type) {
		case nil:
			return errors.New("frame Final without a result")
		case *specv1.Final_Prediction:
			if int64(r.Prediction) >= int64(a.predictions) {
				return fmt.Errorf("frame Final refers to prediction %d of %d", r.Prediction, a.predictions)
			}
		}
	default:
		return errors.New("an empty or unknown frame")
	}
	return nil
}
