"""What the clients in Python call, and how they write down what they saw."""

import hashlib

import grpc

from foresay.testkv.v1 import testkv_pb2 as kv

METADATA = (("x-text", "one"), ("x-text", "two"), ("x-raw-bin", b"\x00\x01\xfe\xff"))

# Name, method, request, options of the call.
CASES = [
    ("first write", "Put", kv.PutRequest(key="k", value="v"), {}),
    ("write on", "Append", kv.AppendRequest(key="k", value="w"), {}),
    ("read", "Get", kv.GetRequest(key="k"), {}),
    ("empty response", "Get", kv.GetRequest(key="never written"), {}),
    ("utf-8 key", "Put", kv.PutRequest(key="ключ ☂", value="значение"), {}),
    ("not found, with details", "Get", kv.GetRequest(key="missing"), {}),
    ("error after headers", "Get", kv.GetRequest(key="after headers"), {}),
    ("error that is no status", "Get", kv.GetRequest(key="no status"), {}),
    ("error of the handler's context", "Get", kv.GetRequest(key="own deadline"), {}),
    ("metadata and binary trailers", "Get", kv.GetRequest(key="metadata"), {"metadata": METADATA}),
    ("gzip", "Get", kv.GetRequest(key="encoding" + " " * 4096), {"compression": grpc.Compression.Gzip}),
    ("3 MiB response", "Get", kv.GetRequest(key="big"), {}),
    ("3 MiB response, gzip", "Get", kv.GetRequest(key="big"), {"compression": grpc.Compression.Gzip}),
    ("request above the limit", "Put", kv.PutRequest(key="k", value="x" * (4 << 20)), {}),
    ("deadline that is far", "Get", kv.GetRequest(key="time left"), {"timeout": 30}),
    ("prediction in the handler", "Get", kv.GetRequest(key="predicting"), {}),
    ("not implemented", "RelayRead", kv.RelayRequest(name="r"), {}),
    ("wait for ready", "Get", kv.GetRequest(key="k"), {"wait_for_ready": True}),
]

# A call that only its end ends.
BLOCKED = kv.GetRequest(key="block")
DEADLINE = 0.5

# How long a client waits for what must happen soon.
PATIENCE = 20

# What it ends with: a server in Go resets the stream at the deadline too, and may
# be the first to do so.
OVER = (grpc.StatusCode.DEADLINE_EXCEEDED, grpc.StatusCode.CANCELLED)


def get(key):
    return kv.GetRequest(key=key)


def show(value):
    return value.hex() if isinstance(value, bytes) else value


def report(name, response, code, details, header, trailer):
    """Prints what a client saw of a call."""
    print("%s: %s %r" % (name, code.name, details or ""))
    if response is not None:
        raw = response.SerializeToString(deterministic=True)
        if len(raw) > 100:
            print("    %d bytes, sha256 %s" % (len(raw), hashlib.sha256(raw).hexdigest()[:16]))
        else:
            print("    " + str(response).strip().replace("\n", ", "))
    for kind, metadata in ("header", header), ("trailer", trailer):
        for key, value in sorted((k, show(v)) for k, v in metadata or ()):
            print("    %s %s=%s" % (kind, key, value))
