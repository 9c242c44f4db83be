"""A server in Python that speaks the protocol of speculative streams by hand, as
docs/wire.md gives it, for the one method of its service that has no side
effects."""

import queue
import threading

import grpc

import server_sync
import store
from foresay.spec.v1 import frames_pb2 as wire
from foresay.testkv.v1 import testkv_pb2 as kv


class Store(store.Store):
    def arrived(self, path):
        pass  # a stream has arrived when its call has run, see below


LEASE_SECONDS = 15


class Speculative:
    """The stream Get.spec."""

    # How the stream ends after each word, and after none.
    ENDS = {
        "aborted": grpc.StatusCode.CANCELLED,
        "lost": grpc.StatusCode.CANCELLED,
        "silent": grpc.StatusCode.ABORTED,
        "misnamed": grpc.StatusCode.INVALID_ARGUMENT,
    }

    def __init__(self, data):
        self.data = data

    def get(self, frames, context):
        request = next(frames).request
        speculative = request.caller == wire.CALLER_STATE_SPECULATIVE
        if (len(request.call_id) != 16 or request.attempt == 0 or speculative != (request.depth > 0)
                or request.caller == wire.CALLER_STATE_UNSPECIFIED):
            context.abort(grpc.StatusCode.INVALID_ARGUMENT, "no valid Request")
        key = kv.GetRequest.FromString(request.payload).key
        yield from self.answer(key, "speculative" if speculative else "predicted")
        if not speculative:
            return
        word = self.word(frames, request)
        self.data.note("%s %s" % (word, key))
        if word in self.ENDS:
            context.abort(self.ENDS[word], "undone: " + word)

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
        """Returns the caller's word. Only an explicit Confirm of this attempt
        confirms."""
        words = queue.Queue()

        def listen():
            try:
                frame = next(frames)
            except BaseException:  # half-closed, reset, expired
                words.put("lost")
                return
            kind = frame.WhichOneof("frame")
            named = getattr(frame, kind or "confirm")
            if kind not in ("confirm", "abort") or (named.call_id, named.attempt) != (request.call_id, request.attempt):
                words.put("misnamed")
            else:
                words.put("confirmed" if kind == "confirm" else "aborted")

        threading.Thread(target=listen, daemon=True).start()
        lease = min(LEASE_SECONDS, request.lease_ms / 1000 or LEASE_SECONDS)
        try:
            return words.get(timeout=lease)
        except queue.Empty:
            return "silent"


def main():
    data = Store()
    handler = grpc.stream_stream_rpc_method_handler(
        Speculative(data).get,
        request_deserializer=wire.ClientFrame.FromString,
        response_serializer=wire.ServerFrame.SerializeToString)
    server_sync.serve(data, grpc.method_handlers_generic_handler(
        "foresay.testkv.v1.TestKV", {"Get.spec": handler}))


main()
