"""A client on asyncio that knows nothing of Foresay: it makes the same calls to
each server that it is given."""

import asyncio
import sys

import grpc

from cases import BLOCKED, CASES, DEADLINE, OVER, PATIENCE, get, report
from foresay.testkv.v1 import testkv_pb2_grpc


async def run(address):
    async with grpc.aio.insecure_channel(address) as channel:
        stub = testkv_pb2_grpc.TestKVStub(channel)
        for name, method, request, options in CASES:
            call = getattr(stub, method)(request, **options)
            try:
                response = await call
            except grpc.RpcError:
                response = None
            report(name, response, await call.code(), await call.details(),
                   await call.initial_metadata(), await call.trailing_metadata())

        try:
            await stub.Get(BLOCKED, timeout=DEADLINE)
        except grpc.RpcError as error:
            print("deadline: %s" % (error.code() in OVER))
        await stub.Get(get("!freed block"), timeout=PATIENCE)

        await stub.Get(get("!reset"))
        call = stub.Get(BLOCKED)
        await asyncio.sleep(0)  # let it leave
        await stub.Get(get("!blocked block"), timeout=PATIENCE)
        call.cancel()
        try:
            await call
        except asyncio.CancelledError:
            pass
        print("cancel: %s" % (await call.code()).name)
        await stub.Get(get("!freed block"), timeout=PATIENCE)

        calls = [stub.Get(get(key)) for key in ("one", "two") for _ in range(8)]
        print("at once: %s" % sorted([(await c).value for c in calls]))


async def main():
    for target in sys.argv[1:]:
        print("==== a server", flush=True)
        await run(target)


asyncio.run(main())
