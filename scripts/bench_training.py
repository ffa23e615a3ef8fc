"""Rows about training with PyTorch over the backend `gradcube`: docs/pytorch.md and docs/mg-wfbp.md.

Ranks are processes that share this machine's cores. So networks have hardly anything to compute, or ranks sleep for as
long as they would compute (tests/bench/training); gradients and what is exchanged are real.
"""

import bench_hosts
import bench_peers
from bench_namespaces import star
from bench_process import Cluster
from bench_row import Medians
from bench_row import Row
from bench_row import against
from bench_row import at_least
from bench_row import at_most
from bench_row import value_at_most
from bench_row import zero
from bench_trainers import CALM
from bench_trainers import on_cluster
from bench_trainers import on_star

STEPS = "DDP, 12.6 MB of gradients, nine ranks"


def steps_row(place, words, ours, gloo, limit):
    """Steps per second, which gloo's are the peer of."""
    ours, gloo = 1 / ours["seconds_median"], 1 / gloo["seconds_median"]
    row = Row(f"{STEPS}, {place}", ours, "steps/s", f"{words} {gloo:.4g} steps/s", ours / gloo)
    return at_least(row, limit)


def staged_row(place, ours):
    return zero(f"copied after the first step, {place}", ours["staged_bytes"], "bytes")


def link_rows(setting):
    """BCube(3,2) with a daemon in each namespace, against gloo on a star of nine with the same links. Takes root."""
    steps = setting.iterations(9)
    with Cluster(setting.build, *bench_hosts.LINKS, *CALM) as cluster:
        ours = on_cluster(setting, cluster, "ddp_steps.py", "gradcube", steps)
    with star(bench_peers.RANKS, bench_hosts.RATE, 9000) as net:
        gloo = on_star(setting, net.members, "ddp_steps.py", "gloo", steps)
    place = "links of 100 Mbit/s"
    return [steps_row(place, "gloo on star:9", ours, gloo, 1.8), staged_row(place, ours)]


def core_rows(setting):
    """No links to wait for: the cores are what both sides need."""
    steps = setting.iterations(60)
    with Cluster(setting.build) as cluster:
        ours = on_cluster(setting, cluster, "ddp_steps.py", "gradcube", steps)
        gloo = on_cluster(setting, cluster, "ddp_steps.py", "gloo", steps)
    place = "no rate"
    return [steps_row(place, "gloo over loopback", ours, gloo, 1.5), staged_row(place, ours)]


def bucket_rows(setting):
    """Two ranks, so that each can have a core: what a bucket takes longer than the C library's all-reduce."""
    size = 64_000
    with Cluster(setting.build, topology="star:2") as cluster:
        taken = on_cluster(setting, cluster, "bucket_cost.py", size, setting.iterations(60))
    cost = 1e6 * (taken["torch"] - taken["library"])
    words = {name: f"{1e6 * seconds:.4g} us" for name, seconds in taken.items()}
    bound = f"64 KB by torch.distributed {words['torch']}, by the C library {words['library']}"
    return [value_at_most(Row("cost of the backend for a bucket", cost, "us", bound), 20)]


# Bytes, words, and how many times as long gloo is to take.
TENSORS = ((4_000, "4 KB", 20), (64_000, "64 KB", 12), (1_000_000, "1 MB", 8), (25_000_000, "25 MB", 3))


def tensor_rows(setting):
    """`all_reduce()` by nine ranks without a rate: of ordinary tensors, which are copied, and of those that share memory
    with the daemon, as DistributedDataParallel's buckets do."""
    medians = Medians()
    sizes = [size for size, _, _ in TENSORS]
    sides = [("gradcube", "ordinary"), ("gradcube", "shared"), ("gloo", "ordinary")]
    for _ in range(setting.turns()):
        with Cluster(setting.build) as cluster:
            for backend, memory in sides:
                arguments = (backend, memory, setting.iterations(20), *sizes)
                for size, seconds in on_cluster(setting, cluster, "allreduce_sizes.py", *arguments).items():
                    medians.add(f"{backend} {memory} {size}", seconds)
    rows = []
    for memory in ("ordinary", "shared"):
        for size, words, limit in TENSORS:
            ours, gloo = medians[f"gradcube {memory} {size}"], medians[f"gloo ordinary {size}"]
            title = f"all_reduce of {words} in {memory} memory"
            row = Row(title, ours * 1e3, "ms", f"gloo {gloo * 1e3:.4g} ms", gloo / ours)
            rows.append(at_least(row, limit))
    return rows


# The network is like those of the papers: its first layers take longest. On these links 4 KB take 10 ms and 7 MB
# 250 ms, and all-reduces that are on their way together do not help each other.
WIDTH = 192  # a layer has 147 KB of gradients
LAYERS = "4x40,8x8,36x1"
POLICIES = ("wfbp", "synceasgd", "mgwfbp", "optimal")
SLOW_LINKS = ("--rate", "200mbit", "--delay", "1ms", "--mtu", "9000", "--queue", "256K")


def merging_rows(setting):
    """MG-WFBP: many small layers, on links whose delay counts for each message."""
    with Cluster(setting.build, *SLOW_LINKS, *CALM) as cluster:
        rounds = setting.iterations(5)
        taken = on_cluster(setting, cluster, "merged_steps.py", WIDTH, LAYERS, 0, rounds, *POLICIES)
        needed = on_cluster(setting, cluster, "merged_steps.py", WIDTH, LAYERS, 0.5, rounds, "optimal", "optimal,need")
    seconds, messages = taken["seconds_median"], taken["messages"]

    def words(policy):
        return f"{policy} ({messages[policy]} messages)"

    rows = []
    for policy in ("optimal", "mgwfbp"):
        for other in ("wfbp", "synceasgd"):
            figure = f"48 layers of 147 KB, 200 Mbit/s, switches' delays of 1 ms: {words(other)}"
            row = against(figure, seconds[other], "s", words(policy), seconds[policy])
            row.target, row.met = "> 1", row.ratio > 1
            rows.append(row)
    best = min((policy for policy in seconds if policy != "optimal"), key=seconds.get)
    figure = f"the same: {words('optimal')}"
    row = against(figure, seconds["optimal"], "s", f"the best other, {words(best)}", seconds[best])
    rows.append(at_most(row, 1.01))
    ready, need = (needed["seconds_median"][way] for way in ("optimal", "optimal,need"))
    figure = "the same with forward passes of half the time: steps after the backward pass"
    row = against(figure, ready, "s", "steps by need", need)
    row.target, row.met = "> 1", row.ratio > 1
    return [*rows, row]


GROUPS = [
    ("training: DDP against gloo on links of 100 Mbit/s", link_rows),
    ("training: DDP against gloo without a rate", core_rows),
    ("training: cost of the backend", bucket_rows),
    ("training: all_reduce against gloo", tensor_rows),
    ("training: merged gradients", merging_rows),
]
