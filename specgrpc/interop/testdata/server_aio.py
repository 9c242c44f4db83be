"""An asyncio server that knows nothing of Foresay. It prints its address, and
stops when its standard input ends."""

import asyncio
import sys

import grpc

import store
from foresay.testkv.v1 import testkv_pb2_grpc


class Arrivals(grpc.aio.ServerInterceptor):
    """Notes each call before a handler is looked up."""

    def __init__(self, data):
        self.data = data

    async def intercept_service(self, continuation, details):
        self.data.arrived(details.method)
        return await continuation(details)


class TestKV(testkv_pb2_grpc.TestKVServicer):
    def __init__(self, data):
        self.data = data

    async def Get(self, request, context):
        header = []
        steps = self.data.get(request, context.invocation_metadata(), header.extend,
                              context.set_trailing_metadata)
        try:
            while True:
                next(steps)
                await asyncio.sleep(0.002)
        except StopIteration as end:
            await context.send_initial_metadata(tuple(header))
            return end.value
        except store.Failure as failure:
            await context.send_initial_metadata(tuple(header))
            await context.abort(failure.code, failure.message, failure.trailer)
        finally:
            steps.close()

    async def Put(self, request, context):
        return self.data.put(request)

    async def Append(self, request, context):
        return self.data.append(request)


async def main():
    data = store.Store()
    server = grpc.aio.server(interceptors=[Arrivals(data)])
    testkv_pb2_grpc.add_TestKVServicer_to_server(TestKV(data), server)
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    print("127.0.0.1:%d" % port, flush=True)
    await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)
    await server.stop(None)


asyncio.run(main())
