"""A star of network namespaces, for peers that speak TCP: what the links of `up --fabric veth` are to Gradcube.

Each server has a namespace of its own with one link, and an address of 198.18.0.0/24, which is for benchmarks. The
switch is a bridge in a namespace of its own. Both ends of a link keep to the rate by a token bucket with the same
figures as in dataplane/bed/network_commands.cc. Needs root. A namespace ends with the process that holds it, and that
with this one.
"""

import contextlib
import subprocess

from bench_process import Failure
from bench_process import run_all

ETHERNET_HEADER = 14
UNSEEN_ON_THE_WIRE = 24
SWITCH_QUEUE = 128_000
SENDER_QUEUE_FRAMES = 1024


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


@contextlib.contextmanager
def star(servers, rate, mtu):
    """with star(9, 100_000_000, 9000) as members: ...; the (holder, address) of each server. No rate: None."""
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
            _configure(holder, lines, [_bucket("link", rate, mtu, queue)] if rate else [])
        yield members
