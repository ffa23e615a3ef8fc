#!/usr/bin/python3
"""Stands in for a server's daemon on a test bed: takes gradcubed's arguments and serves a control socket.

Beside "status" it has two commands. {"command":"say","level":0,"text":"x"} sends a frame to all of the level,
and {"command":"heard"} lists the texts that have come, each with its level, and what `ip` says of the
interfaces. $BED_SERVER_FAILS names a server that refuses to start, $BED_SERVER_SILENT one that never reports,
and $BED_SERVER_STUBBORN one that ignores SIGTERM.
"""

import argparse
import json
import os
import select
import signal
import socket
import subprocess
import sys
import time

ETHERTYPE = 0x88B5  # for experiments


def arguments():
    parser = argparse.ArgumentParser()
    for name in ("server", "interfaces", "run-dir", "socket-dir", "settings", "ready-fd", "parent"):
        parser.add_argument("--" + name, required=True)
    return parser.parse_args()


def is_it(variable, server):
    return os.environ.get(variable) == server


def tool(*command):
    return json.loads(subprocess.run(command, capture_output=True, check=True).stdout)


class Server:
    def __init__(self, options):
        self.options = options
        self.settings = json.loads(options.settings)
        self.ports = []
        for interface in options.interfaces.split(","):
            port = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ETHERTYPE))
            port.bind((interface, ETHERTYPE))
            self.ports.append(port)
        self.control = socket.socket(socket.AF_UNIX)
        self.control.bind(options.run_dir + "/control.sock")
        self.control.listen()

    def report(self):
        with os.fdopen(int(self.options.ready_fd), "w") as ready:
            if is_it("BED_SERVER_FAILS", self.options.server):
                ready.write('{"ok":false,"error":"this server has no luck"}\n')
                sys.exit(1)
            while is_it("BED_SERVER_SILENT", self.options.server):
                time.sleep(1)
            ready.write('{"ok":true}\n')

    def status(self):
        address = [int(digit) for digit in self.options.server.split(",")]
        lcores = [int(core) for core in self.settings["lcores"].split(",")]
        return {"servers": [{"address": address, "trainers": 0, "ports": []}], "lcores": lcores}

    def say(self, level, text):
        source = os.urandom(5)
        frame = b"\xff" * 6 + b"\x02" + source + ETHERTYPE.to_bytes(2, "big") + text.encode().ljust(60, b"\0")
        self.ports[level].send(frame)

    def heard(self):
        texts = []
        while ready := select.select(self.ports, [], [], 0)[0]:
            for port in ready:
                texts.append([self.ports.index(port), port.recv(9014)[14:].rstrip(b"\0").decode()])
        return {
            "heard": texts,
            "links": tool("ip", "-json", "address"),
            "queues": tool("tc", "-json", "qdisc"),
            "settings": self.settings,
        }

    def answer(self, request):
        command = request["command"]
        if command == "status":
            return {"ok": True, "status": self.status()}
        if command == "say":
            self.say(request["level"], request["text"])
            return {"ok": True}
        return {"ok": True} | self.heard()

    def run(self):
        while True:
            client = self.control.accept()[0]
            with client, client.makefile("rw") as stream:
                stream.write(json.dumps(self.answer(json.loads(stream.readline()))) + "\n")


def main():
    options = arguments()
    stubborn = is_it("BED_SERVER_STUBBORN", options.server)
    signal.signal(signal.SIGTERM, signal.SIG_IGN if stubborn else lambda *_: sys.exit(0))
    server = Server(options)
    server.report()
    server.run()


if __name__ == "__main__":
    main()
