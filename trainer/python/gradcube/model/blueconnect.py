"""BlueConnect's performance models: all-reduce over networks whose levels differ in bandwidth (BlueConnect, sections
2.2, 2.3 and 3.3, Eq. 1 to 10).

    p      learners that take part (the servers of this project, with one trainer each)
    size   the paper's n or N, "the gradient's size in unit": the bytes of each learner's buffer
    alpha  seconds for each transfer, whatever its size
    w      bits per second

All times are in seconds. Assumed: addition takes no time.

Where the text is wrong, or leaves a choice:
  - Eq. 2 holds for a p that is a power of two, yet Eq. 4 and 7 take it for any. It then counts ceil(lg p) transfers, as
    many as a binary tree of p learners has rounds.
  - Eq. 8 has factors p_0 to p_k on its left side and k factors on its right. There is one for each bandwidth: p_0 to
    p_(|W|-1), as in section 3.3.
  - The last forms of Eq. 9 and 10 take the least bandwidth over j < i. The terms that Eq. 9 writes out include j = i,
    and without it stage i would not depend on its own network. So it is j <= i.

Every function raises ValueError for p = 0 and for what the stages below do not allow.
"""

import typing

from .grid import is_power_of_two, transfer_seconds


class Stage(typing.NamedTuple):
    """Of BlueConnect: p learners exchange over a network of bandwidth w."""

    p: int
    w: float


def _share_seconds(p, size, w):
    """(p-1)/p n/w"""
    if p < 1:
        raise ValueError(f"p is {p}, but there is at least 1 learner")
    return (p - 1) / p * transfer_seconds(size, w)


def ring_stage_seconds(p, size, alpha, w):
    """Eq. 1, T_r: reduce-scatter or all-gather around a ring, (p-1) alpha + (p-1)/p n/w."""
    return (p - 1) * alpha + _share_seconds(p, size, w)


def recursive_stage_seconds(p, size, alpha, w):
    """Eq. 2, T_c: the same by recursive halving or doubling, lg(p) alpha + (p-1)/p n/w."""
    seconds = _share_seconds(p, size, w)
    return (p - 1).bit_length() * alpha + seconds  # ceil(lg p)


def best_stage_seconds(p, size, alpha, w):
    """Eq. 3, T_r/c: Eq. 2 if p is a power of two, else Eq. 1."""
    return (recursive_stage_seconds if is_power_of_two(p) else ring_stage_seconds)(p, size, alpha, w)


def broadcast_seconds(p, size, alpha, w):
    """Eq. 4: broadcast or reduce, T_c + T_r."""
    return recursive_stage_seconds(p, size, alpha, w) + ring_stage_seconds(p, size, alpha, w)


def one_level_seconds(p, size, alpha, least_w):
    """Eq. 5 and 6: all-reduce around one ring of all learners, 2 T_r at the least bandwidth."""
    return 2 * ring_stage_seconds(p, size, alpha, least_w)


def halving_doubling_seconds(p, size, alpha, w):
    """All-reduce by recursive halving, then doubling: 2 T_c (section 2.2). p is a power of two."""
    if not is_power_of_two(p):
        raise ValueError(f"p is {p}, but it is a power of two")
    return 2 * recursive_stage_seconds(p, size, alpha, w)


def two_level_seconds(p0, p1, size, alpha, w0, least_w):
    """Eq. 7: p0 learners of each node reduce to one of them at the bandwidth w0, these p1 do an all-reduce at the least
    bandwidth, and then broadcast in their node."""
    return 2 * broadcast_seconds(p0, size, alpha, w0) + 2 * best_stage_seconds(p1, size, alpha, least_w)


def tree_seconds(stages, size, alpha):
    """Eq. 9: BlueConnect on a tree of switches. stages[i] is p_i and w_i, from the learners up; all p_0 * ... * p_(i-1)
    learners below a port of level i share its w_i. Every p_i is above 1 (Eq. 8)."""
    sharers = [1.0]
    for stage in stages:
        sharers.append(sharers[-1] * stage.p)
    return _seconds(stages, 2, size, alpha, sharers)


def torus_seconds(stages, size, alpha):
    """Eq. 10: BlueConnect on a torus. stages[0] is inside a node; the p_0 learners of a node share the cables of each
    dimension, and no others do. p_0 may be 1, a node with one learner. The rings go one way round, so one cable of each
    dimension is idle."""
    sharers = [1.0] + [float(stages[0].p)] * (len(stages) - 1) if stages else []
    return _seconds(stages, 1, size, alpha, sharers)


def _seconds(stages, least_p0, size, alpha, sharers):
    """2 T_r/c of each stage, over the part of the gradient that the stages before have left and at the least bandwidth
    so far. A port of stage i is shared by sharers[i] learners."""
    if not stages:
        raise ValueError("there is no stage, but there is at least 1")
    seconds, least_w = 0.0, stages[0].w
    for i, (p, w) in enumerate(stages):
        least_p = least_p0 if i == 0 else 2
        if p < least_p:
            raise ValueError(f"p_{i} is {p}, but it is at least {least_p}")
        least_w = min(least_w, w / sharers[i])
        seconds += 2 * best_stage_seconds(p, size, alpha, least_w)
        size /= p
    return seconds
