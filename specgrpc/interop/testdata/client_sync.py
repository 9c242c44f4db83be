"""A client with blocking stubs that knows nothing of Foresay: it makes the same
calls to each server that it is given."""

import sys

import grpc

from cases import BLOCKED, CASES, DEADLINE, OVER, PATIENCE, get, report
from foresay.testkv.v1 import testkv_pb2_grpc


def run(address):
    with grpc.insecure_channel(address) as channel:
        stub = testkv_pb2_grpc.TestKVStub(channel)
        for name, method, request, options in CASES:
            try:
                response, call = getattr(stub, method).with_call(request, **options)
            except grpc.RpcError as error:
                response, call = None, error
            report(name, response, call.code(), call.details(), call.initial_metadata(), call.trailing_metadata())

        try:
            stub.Get(BLOCKED, timeout=DEADLINE)
        except grpc.RpcError as error:
            print("deadline: %s" % (error.code() in OVER))
        stub.Get(get("!freed block"), timeout=PATIENCE)

        stub.Get(get("!reset"))
        future = stub.Get.future(BLOCKED)
        stub.Get(get("!blocked block"), timeout=PATIENCE)
        future.cancel()
        print("cancel: %s" % future.code().name)
        stub.Get(get("!freed block"), timeout=PATIENCE)

        futures = [stub.Get.future(get(key)) for key in ("one", "two") for _ in range(8)]
        print("at once: %s" % sorted(f.result().value for f in futures))


for target in sys.argv[1:]:
    print("==== a server", flush=True)
    run(target)
