"""A server in Python that speaks the protocol of speculative streams by hand, as
docs/wire.md gives it, for the one method of its service that has no side
effects."""

import grpc

import server_sync
import store
from foresay.spec.v1 import frames_pb2 as wire
from foresay.testkv.v1 import testkv_pb2 as kv


class Store(store.Store):
    def arrived(self, path):
        pass  # a stream has arrived when its call has run, see below


class Speculative:
    """The stream Get.spec."""

    def __init__(self, data):
        self.data = data

    def get(self, frames, context):
        request = next(frames).request
        key = kv.GetRequest.FromString(request.payload).key
        if request.caller == wire.CALLER_STATE_CONFIRMED:
            yield from self.answer(key, "predicted")
            return
        yield from self.answer(key, "speculative")
        word = self.word(frames, request)
        self.data.note("%s %s" % (word, key))
        if word != "confirmed":
            context.abort(grpc.StatusCode.CANCELLED, "undone")

    def answer(self, key, how):
        """Predicts, wrongly for the key two, and answers."""
        self.data.note("%s get %s" % (how, key))
        with self.data.lock:
            self.data.streams.append(key)
        response = self.data.read(key)
        guess = kv.GetResponse(value="nonsense") if key == "two" else response
        yield wire.ServerFrame(prediction=wire.Prediction(payload=guess.SerializeToString()))
        if guess is response:
            yield wire.ServerFrame(final=wire.Final(prediction=0))
        else:
            yield wire.ServerFrame(final=wire.Final(payload=response.SerializeToString()))

    def word(self, frames, request):
        """Only an explicit Confirm of this attempt confirms."""
        try:
            for frame in frames:
                confirm = frame.confirm
                if frame.HasField("confirm") and (confirm.call_id, confirm.attempt) == (request.call_id, request.attempt):
                    return "confirmed"
                return "aborted"
        except Exception:  # what the iterator of a reset stream raises
            pass
        return "lost"


def main():
    data = Store()
    handler = grpc.stream_stream_rpc_method_handler(
        Speculative(data).get,
        request_deserializer=wire.ClientFrame.FromString,
        response_serializer=wire.ServerFrame.SerializeToString)
    server_sync.serve(data, grpc.method_handlers_generic_handler(
        "foresay.testkv.v1.TestKV", {"Get.spec": handler}))


main()
