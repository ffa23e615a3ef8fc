"""Somebody on a cluster's wires who does not have its key.

He hears every frame that passes the interfaces, and sends some again: as they were, soon or much later, with bytes of
Gradcube's headers or of the payload changed, with the payload of another frame, cut, and with a right CRC32C in place of
the MAC: up to two for each frame that he hears, and besides as many old ones as RATE frames a second have room for. Run
in the network namespace of the interfaces:

    wire_attacker.py SECONDS RATE SEED INTERFACE...

Prints how many frames of each kind he has sent, as JSON.
"""

import json
import random
import select
import socket
import struct
import sys
import time

ALL_FRAMES = 0x0003  # ETH_P_ALL: without it, what leaves is not heard
TO_THE_HOST = 4  # PACKET_OUTGOING: what leaves through this end of the cable
GRADCUBE_PORT = struct.pack("!H", 47330)
UDP = 34
GRADCUBE = 42
HOPS = 43
AUTHENTICATED = 0x08
MAC_BYTES, CRC_BYTES = 8, 4
# Of the headers behind the hops, up to the MAC, by type.
HEADERS = {1: 42, 2: 28, 3: 28, 4: 36, 5: 20, 6: 14, 7: 6}
KEPT = 4000
BURST = 64


def crc_table():
    table = []
    for byte in range(256):
        for _ in range(8):
            byte = byte >> 1 ^ (0x82F63B78 if byte & 1 else 0)
        table.append(byte)
    return table


CRC_TABLE = crc_table()


def crc32c(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc = CRC_TABLE[(crc ^ byte) & 0xFF] ^ crc >> 8
    return ~crc & 0xFFFFFFFF


def with_lengths(frame):
    """The frame with the lengths and the IPv4 checksum that it must have."""
    frame = bytearray(frame)
    struct.pack_into("!H", frame, 16, len(frame) - 14)
    struct.pack_into("!H", frame, UDP + 4, len(frame) - UDP)
    struct.pack_into("!H", frame, 24, 0)
    total = sum(struct.unpack_from("!10H", frame, 14))
    while total > 0xFFFF:
        total = (total & 0xFFFF) + (total >> 16)
    struct.pack_into("!H", frame, 24, ~total & 0xFFFF)
    return bytes(frame)


def headers_end(frame):
    """Where the MAC begins."""
    return GRADCUBE + 6 + 2 * (frame[HOPS] >> 4) + HEADERS.get(frame[GRADCUBE] & 0x0F, 0)


class Attacker:
    def __init__(self, seed, interfaces):
        self.random = random.Random(seed)
        self.sockets = []
        for name in interfaces:
            wire = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ALL_FRAMES))
            wire.bind((name, ALL_FRAMES))
            self.sockets.append(wire)
        self.kept = {wire: [] for wire in self.sockets}
        self.sent = {}
        self.kinds = [self.again, self.again, self.changed, self.changed, self.spliced, self.cut, self.with_crc]

    def run(self, seconds, rate):
        begin = time.monotonic()
        while (now := time.monotonic()) < begin + seconds:
            for wire in select.select(self.sockets, [], [], 0.001 if rate else 0.05)[0]:
                frame, (_, _, kind, *_) = wire.recvfrom(65536)
                if kind == TO_THE_HOST and len(frame) > GRADCUBE + 8 and frame[36:38] == GRADCUBE_PORT:
                    self.hear(wire, frame)
            due = int(rate * (now - begin)) - sum(self.sent.values())
            for _ in range(min(due, BURST)):
                wire = self.random.choice(self.sockets)
                if self.kept[wire]:
                    self.attack(wire, self.random.choice(self.kept[wire]))

    def hear(self, wire, frame):
        kept = self.kept[wire]
        if len(kept) < KEPT:
            kept.append(frame)
        elif self.random.random() < 0.1:  # most of them are old
            kept[self.random.randrange(KEPT)] = frame
        for _ in range(self.random.randrange(3)):
            self.attack(wire, frame if self.random.random() < 0.5 else self.random.choice(kept))

    def attack(self, wire, victim):
        kind = self.random.choice(self.kinds)
        try:
            wire.send(kind(self.kept[wire], victim))
            self.sent[kind.__name__] = self.sent.get(kind.__name__, 0) + 1
        except OSError:  # a full queue
            pass

    def again(self, _, frame):
        return frame

    def changed(self, _, frame):
        bad = bytearray(frame)
        for _ in range(1 + self.random.randrange(3)):
            place = self.random.randrange(GRADCUBE, min(len(bad), self.random.choice((GRADCUBE + 70, len(bad)))))
            bad[place] ^= 1 << self.random.randrange(8)
        return bytes(bad)

    def spliced(self, kept, frame):
        """These headers, with another frame's payload of the same length."""
        other = self.random.choice(kept)
        end = headers_end(frame) + MAC_BYTES
        return frame[:end] + other[end:] if len(other) == len(frame) else self.changed(kept, frame)

    def cut(self, _, frame):
        return with_lengths(frame[: self.random.randrange(GRADCUBE + 8, len(frame))])

    def with_crc(self, kept, frame):
        """What a cluster without a key would take."""
        end = headers_end(frame)
        payload = bytearray(frame[end + MAC_BYTES :])
        if payload:
            payload[self.random.randrange(len(payload))] ^= 0x40
        bad = bytearray(frame[:end])
        bad[HOPS] &= ~AUTHENTICATED
        covered = bytearray(bad[GRADCUBE:])
        covered[HOPS - GRADCUBE] &= 0xF8
        crc = crc32c(covered + payload) or 0xFFFFFFFF
        return with_lengths(bytes(bad) + struct.pack("<I", crc) + bytes(payload))


def main():
    seconds, rate, seed = float(sys.argv[1]), float(sys.argv[2]), int(sys.argv[3])
    attacker = Attacker(seed, sys.argv[4:])
    attacker.run(seconds, rate)
    print(json.dumps(attacker.sent))


if __name__ == "__main__":
    main()
