"""A client of a daemon's telemetry socket, as dpdk-telemetry.py is one."""

import json
import socket

from fabrics import PATIENCE


class TelemetryClient:
    """The protocol: a message for a request, a message for its answer."""

    def __init__(self, directory):
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.socket.settimeout(PATIENCE)
        self.socket.connect(str(directory / "dpdk_telemetry.v2"))
        self.greeting = json.loads(self.socket.recv(1024))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.socket.close()

    def ask_raw(self, request):
        self.socket.send(request)
        return json.loads(self.socket.recv(self.greeting["max_output_len"]))

    def ask(self, request):
        (answer,) = self.ask_raw(request.encode()).values()
        return answer
