"""A server of gRPC's own, in this process, whose methods are Python functions on bytes."""
import contextlib
from concurrent import futures

import grpc
from attendant_client import messages


class _Methods(grpc.GenericRpcHandler):
    def __init__(self, methods):
        self._methods = methods

    def service(self, details):
        handler = self._methods.get(details.method)
        if handler is None:
            return None
        if details.method == messages.method_path("EncodeStream"):
            return grpc.stream_stream_rpc_method_handler(handler)
        return grpc.unary_unary_rpc_method_handler(handler)


@contextlib.contextmanager
def serve(methods):
    """Serves {name of the method: function(request bytes, context)} and yields the address."""
    server = grpc.server(futures.ThreadPoolExecutor(4), options=[
        ("grpc.max_receive_message_length", -1), ("grpc.max_send_message_length", -1)])
    server.add_generic_rpc_handlers([_Methods({messages.method_path(name): handler for name, handler in methods.items()})])
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    try:
        yield f"127.0.0.1:{port}"
    finally:
        server.stop(None).wait()
