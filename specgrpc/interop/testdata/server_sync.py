"""A threaded server that knows nothing of Foresay. It prints its address, and
stops when its standard input ends."""

import sys
import time
from concurrent import futures

import grpc

import store
from foresay.testkv.v1 import testkv_pb2_grpc


class Arrivals(grpc.ServerInterceptor):
    """Notes each call before a handler is looked up."""

    def __init__(self, data):
        self.data = data

    def intercept_service(self, continuation, details):
        self.data.arrived(details.method)
        return continuation(details)


class TestKV(testkv_pb2_grpc.TestKVServicer):
    def __init__(self, data):
        self.data = data

    def Get(self, request, context):
        steps = self.data.get(request, context.invocation_metadata(),
                              context.send_initial_metadata, context.set_trailing_metadata)
        try:
            while True:
                next(steps)
                if not context.is_active():
                    steps.close()
                    context.abort(grpc.StatusCode.CANCELLED, "nobody waits")
                time.sleep(0.002)
        except StopIteration as end:
            return end.value
        except store.Failure as failure:
            context.set_trailing_metadata(failure.trailer)
            context.abort(failure.code, failure.message)

    def Put(self, request, context):
        return self.data.put(request)

    def Append(self, request, context):
        return self.data.append(request)


def serve(data, *more):
    """Serves data, and generic handlers beside it, until standard input ends."""
    server = grpc.server(futures.ThreadPoolExecutor(16), interceptors=[Arrivals(data)])
    testkv_pb2_grpc.add_TestKVServicer_to_server(TestKV(data), server)
    server.add_generic_rpc_handlers(more)
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    print("127.0.0.1:%d" % port, flush=True)
    sys.stdin.read()
    server.stop(None).wait()


if __name__ == "__main__":
    serve(store.Store())
