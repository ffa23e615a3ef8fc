"""A star of network namespaces, for programs that speak TCP or UDP: what the links of `up --fabric veth` are to Gradcube.

Each server has a namespace of its own with one link, and an address of 198.18.0.0/24, which is for benchmarks. The
switch is a bridge in a namespace of its own. Both ends of a link keep to the rate by a token bucket with the same
figures as in dataplane/bed/network_commands.cc. Needs root. A namespace ends with the process that holds it, and that
with this one.
"""

import contextlib
import dataclasses
import json
import subprocess
from typing import List
from typing import Tuple

from bench_process import Failure
from bench_process import run_all

NETWORK = "198.18.0.0/24"
ETHERNET_HEADER = 14
UNSEEN_ON_THE_WIRE = 24
SWITCH_QUEUE = 128_000
SENDER_QUEUE_FRAMES = 1024


@dataclasses.dataclass
class Star:
    switch: int  # the process id of its namespace's holder, as those of the members
    members: List[Tuple[int, str]]  # holder and address of each server

    def drops(self, member):
        """Frames that the switch has queued for this member, and those that its full queue has dropped."""
        report = run_all([inside(self.switch, ["tc", "-s", "-json", "qdisc", "show", "dev", f"port{member}"])], 30)
        queue = json.loads(report)[0]
        return queue["packets"], queue["drops"]

    def received(self, member):
        """Bytes of frames that have come in over this member's link."""
        report = run_all([inside(self.members[member][0], ["ip", "-s", "-json", "link", "show", "dev", "link"])], 30)
        return json.loads(report)[0]["stats64"]["rx"]["bytes"]


def _hold_namespace(stack):
    """The process id of a new namespace's holder, which leaves when its standard input is closed."""
    try:
        holder = subprocess.Popen(
            ["unshare", "--net", "sh", "-c", "echo ready; exec cat"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
    except FileNotFoundError as error:
        raise Failure(f"{error.filename} is not there") from None
    stack.callback(holder.wait, 5)
    stack.callback(holder.stdout.close)
    stack.callback(holder.stdin.close)
    if holder.stdout.readline().strip() != "ready":
        raise Failure("cannot make a network namespace: this takes root")
    return holder.pid


def inside(holder, command):
    return ["nsenter", "--target", str(holder), "--net", *command]


def _configure(holder, ip_lines, tc_lines):
    for program, lines in (("ip", ip_lines), ("tc", tc_lines)):
        if not lines:
            continue
        script = "\n".join(lines)
        run_all([inside(holder, ["sh", "-c", f"{program} -batch - <<'LINES'\n{script}\nLINES"])], 30)


def _bucket(device, rate, mtu, limit):
    burst = max(3 * (mtu + ETHERNET_HEADER + UNSEEN_ON_THE_WIRE), rate // 8 // 20_000)
    shape = f"rate {rate}bit burst {burst} limit {limit} overhead {UNSEEN_ON_THE_WIRE}"
    return f"qdisc add dev {device} root tbf {shape}"


def _lossy(loss):
    """Each server loses this share of the IP packets that come to it: a program of classic BPF, by random numbers."""
    program = f"4,32 0 0 4294963256,37 1 0 {round(loss * 2**32)},6 0 0 2,6 0 0 0"
    return [
        "qdisc add dev link clsact",
        f"filter add dev link ingress protocol ip prio 1 bpf direct-action bytecode '{program}'",
    ]


@contextlib.contextmanager
def star(servers, rate, mtu, loss=0, congestion=None):
    """with star(9, 100_000_000, 9000) as net: ... net.members ... No rate: None.

    congestion: the law by which TCP gives way, "cubic"; None: the machine's own.
    """
    with contextlib.ExitStack() as stack:
        switch = _hold_namespace(stack)
        holders = [_hold_namespace(stack) for _ in range(servers)]
        members = [(holder, f"198.18.0.{number + 1}") for number, holder in enumerate(holders)]
        links = [f"link add name bridge mtu {mtu} type bridge stp_state 0 mcast_snooping 0"]
        for number, holder in enumerate(holders):
            port = f"port{number}"
            links.append(f"link add name {port} mtu {mtu} type veth peer name link mtu {mtu} netns {holder}")
            links.append(f"link set dev {port} master bridge up")
        links.append(f"link set dev bridge mtu {mtu} up")
        of_switch = [f"port{number}" for number in range(servers)] if rate else []
        _configure(switch, links, [_bucket(port, rate, mtu, SWITCH_QUEUE) for port in of_switch])
        queue = SENDER_QUEUE_FRAMES * (mtu + ETHERNET_HEADER)
        for holder, address in members:
            lines = [f"address add {address}/24 dev link", "link set dev link up", "link set dev lo up"]
            if congestion:
                lines.append(f"route replace {NETWORK} dev link scope link src {address} congctl {congestion}")
            queues = [_bucket("link", rate, mtu, queue)] if rate else []
            _configure(holder, lines, queues + (_lossy(loss) if loss else []))
        yield Star(switch, members)
