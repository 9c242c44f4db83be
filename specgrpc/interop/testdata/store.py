"""The key-value service of the tests, as the servers in Python serve it.

It does what kv_test.go does in Go. A handler is a generator that yields while
it waits, so that the threaded and the asyncio server share it.
"""

import threading

import grpc

from foresay.testkv.v1 import testkv_pb2 as kv

SEED = {"gate": "one", "one": "two", "two": "three"}
MESSAGE = "kein Schlüssel: 鍵 ☂"


class Failure(Exception):
    """An outcome other than OK."""

    def __init__(self, code, message, trailer=()):
        super().__init__(message)
        self.code, self.message, self.trailer = code, message, trailer


class Store:
    def __init__(self):
        self.lock = threading.Lock()
        self.reset("")

    def reset(self, what):
        """Begins anew. If gated, a key that begins with gate answers only when
        a speculative stream has arrived."""
        with self.lock:
            self.values = {k: (v, 1) for k, v in SEED.items()}
            self.log, self.streams = [], []
            self.gated = what == "gated"
            self.blocked, self.freed = set(), set()

    def note(self, text):
        with self.lock:
            self.log.append(text)

    def arrived(self, path):
        """Notes the path of a call that arrived, before anything handles it."""
        if path.endswith(".spec"):
            with self.lock:
                self.streams.append(path)

    def read(self, key):
        with self.lock:
            value, version = self.values.get(key, ("", 0))
        return kv.GetResponse(value=value, version=version)

    def write(self, key, change):
        with self.lock:
            value, version = self.values.get(key, ("", 0))
            self.values[key] = change(value), version + 1
            return self.values[key]

    def control(self, command):
        """What the tests ask beside the calls under test."""
        verb, _, what = command.partition(" ")
        if verb == "!reset":
            self.reset(what)
        elif verb == "!log":
            with self.lock:
                value, self.log = "\n".join(self.log), []
            return kv.GetResponse(value=value)
        elif verb == "!streams":
            with self.lock:
                return kv.GetResponse(value="\n".join(self.streams))
        elif verb == "!streamed":
            while not self.streams:
                yield
        elif verb == "!blocked":
            while what not in self.blocked:
                yield
        elif verb == "!freed":
            while what not in self.freed:
                yield
        return kv.GetResponse()

    def get(self, request, metadata, send_header, set_trailer):
        key = request.key
        if key.startswith("!"):
            return (yield from self.control(key))
        self.note("get " + key)
        if key.startswith("gate"):
            while self.gated and not self.streams:
                yield
        elif key.startswith("block"):
            self.blocked.add(key)
            try:
                while True:
                    yield
            finally:
                self.freed.add(key)
        elif key == "missing":
            detail = kv.Failure(code=5, message=MESSAGE).SerializeToString()
            raise Failure(grpc.StatusCode.NOT_FOUND, MESSAGE,
                          (("grpc-status-details-bin", rich_status(5, MESSAGE, detail)),))
        elif key == "after headers":
            send_header((("x-header", "sent"),))
            raise Failure(grpc.StatusCode.ABORTED, "after the headers", (("x-trailer", "last"),))
        elif key == "metadata":
            send_header((("x-header", "h"), ("x-header-bin", b"\x00\xff\x80")))
            set_trailer((("x-trailer", "t"), ("x-trailer-bin", b"\x00\xff\x81")))
            own = sorted((k, v) for k, v in metadata if k.startswith("x-"))
            return kv.GetResponse(value=" ".join("%s=%s" % (k, show(v)) for k, v in own))
        elif key == "big":
            return kv.GetResponse(value="x" * (3 << 20))
        return self.read(key)

    def put(self, request):
        self.note("put %s=%s" % (request.key, request.value))
        _, version = self.write(request.key, lambda _: request.value)
        return kv.PutResponse(version=version)

    def append(self, request):
        self.note("append %s+=%s" % (request.key, request.value))
        value, version = self.write(request.key, lambda old: old + request.value)
        return kv.AppendResponse(value=value, version=version)


def show(value):
    return value.hex() if isinstance(value, bytes) else value


def rich_status(code, message, failure):
    """google.rpc.Status with one detail, by hand: every part is shorter than
    128 bytes."""

    def part(tag, content):
        return bytes([tag, len(content)]) + content

    url = b"type.googleapis.com/foresay.testkv.v1.Failure"
    detail = part(0x0A, url) + part(0x12, failure)
    return bytes([0x08, code]) + part(0x12, message.encode()) + part(0x1A, detail)
