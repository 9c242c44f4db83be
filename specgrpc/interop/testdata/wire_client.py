"""A client in Python that speaks the protocol of speculative streams by hand, as
docs/wire.md gives it. It prints the conversations and what became of the calls at
the server."""

import os
import queue
import sys

import grpc

from cases import PATIENCE, get
from foresay.spec.v1 import frames_pb2 as wire
from foresay.testkv.v1 import testkv_pb2 as kv
from foresay.testkv.v1 import testkv_pb2_grpc

SERVICE = "/foresay.testkv.v1.TestKV/"
RESPONSES = {"Get": kv.GetResponse, "Put": kv.PutResponse, "Append": kv.AppendResponse}


class Conversation:
    """One speculative stream."""

    def __init__(self, channel, title, method):
        print("== " + title)
        self.method = method
        self.id = os.urandom(16)
        self.out = queue.Queue()
        open_stream = channel.stream_stream(
            SERVICE + method + ".spec",
            request_serializer=wire.ClientFrame.SerializeToString,
            response_deserializer=wire.ServerFrame.FromString)
        self.call = open_stream(iter(self.out.get, None), timeout=PATIENCE)

    def send(self, **frame):
        print("-> " + next(iter(frame)))
        self.out.put(wire.ClientFrame(**frame))
        return self

    def request(self, message, caller=wire.CALLER_STATE_SPECULATIVE, **more):
        depth = 1 if caller == wire.CALLER_STATE_SPECULATIVE else 0
        return self.send(request=wire.Request(
            payload=message.SerializeToString(), call_id=self.id, attempt=1, caller=caller, depth=depth, **more))

    def confirm(self, call_id=None):
        return self.send(confirm=wire.Confirm(call_id=call_id or self.id, attempt=1)).half_close()

    def abort(self):
        return self.send(abort=wire.Abort(call_id=self.id, attempt=1)).half_close()

    def half_close(self):
        print("-> (half-close)")
        self.out.put(None)
        return self

    def message(self, payload):
        text = str(RESPONSES[self.method].FromString(payload))
        return "{ %s }" % " ".join(text.split())

    def read(self):
        """Reads one frame."""
        frame = next(self.call)
        kind = frame.WhichOneof("frame")
        if kind == "refused":
            said = wire.Refused.Reason.Name(frame.refused.reason)
        elif kind == "prediction":
            said = self.message(frame.prediction.payload)
        else:
            result = frame.final.WhichOneof("result")
            said = result + " " + {
                "payload": lambda: self.message(frame.final.payload),
                "prediction": lambda: str(frame.final.prediction),
                "status": lambda: repr(frame.final.status[:10]),
            }[result]()
            if frame.final.tentative:
                said += ", tentative"
        print("<- %s: %s" % (kind, said))
        return self

    def end(self):
        """Reads the end of the stream."""
        try:
            frame = next(self.call)
            raise AssertionError("a frame instead of the end: %s" % frame)
        except StopIteration:
            pass
        except grpc.RpcError:
            pass
        print("<- (end) %s" % self.call.code().name)
        self.out.put(None)
        return self

    def cancel(self):
        print("-> (reset)")
        self.call.cancel()
        self.out.put(None)


def run(channel):
    stub = testkv_pb2_grpc.TestKVStub(channel)

    def talk(title, method):
        return Conversation(channel, title, method)

    def put(key):
        return kv.PutRequest(key=key, value="v")

    def became(text):
        """Waits until the server notes something."""
        stub.Get(get("!noted " + text), timeout=PATIENCE)
        print("   the server: " + text)

    talk("a read, confirmed", "Get").request(get("one")).read().confirm().end()
    talk("confirmed before the result", "Get").request(get("one")).confirm().read().end()
    talk("a read, half-closed without Confirm", "Get").request(get("one")).read().half_close().end()
    talk("a read, aborted", "Get").request(get("one")).read().abort().end()

    talk("a staged write, confirmed", "Put").request(put("a")).read().confirm().end()
    became("committed a")
    talk("a staged write, half-closed without Confirm", "Put").request(put("b")).read().half_close().end()
    became("rolled back b")
    talk("a staged write, aborted", "Put").request(put("c")).read().abort().end()
    became("rolled back c")
    talk("a staged write, reset", "Put").request(put("d")).read().cancel()
    became("rolled back d")
    talk("a staged write, and silence", "Put").request(put("e"), lease_ms=50).read().end()
    became("rolled back e")
    talk("a Confirm of another call", "Put").request(put("f")).read().confirm(call_id=os.urandom(16)).end()
    became("rolled back f")

    talk("a write that is not staged", "Append").request(kv.AppendRequest(key="k", value="v")).read().end()
    talk("an error", "Get").request(get("missing")).read().confirm().end()
    talk("a prediction that is wrong", "Get").request(get("predicting")).read().read().confirm().end()
    talk("a prediction that is right", "Get").request(get("predicting right")).read().read().confirm().end()
    talk("predictions for a confirmed caller", "Get").request(
        get("predicting"), caller=wire.CALLER_STATE_CONFIRMED).half_close().read().read().end()
    talk("a stream that begins with Confirm", "Get").confirm().end()
    print("== the server's values")
    for key in "abcdefk":
        print("   %s: %r" % (key, stub.Get(get(key)).value))


with grpc.insecure_channel(sys.argv[1]) as channel:
    run(channel)
