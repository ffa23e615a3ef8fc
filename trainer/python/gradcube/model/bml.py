"""BML's theory: what gradient synchronization takes on BCube and on Fat-Tree, and what the two networks cost in
switches (BML, sections 2, 3.1, 3.2 and 3.3).

    N    servers: n^k in BCube(n,k), which has k levels of n-port switches
    t_f  T_F: seconds that one link takes for the full gradient (Table 1); grid.transfer_seconds()
    GST  gradient synchronization time, in seconds

Assumed: every link has the same rate, both directions at once; latency and addition take no time; the Fat-Tree is
non-blocking.

Where the text leaves a choice:
  - "PS" on a Fat-Tree is the P2P one, in which every server is a worker and a parameter server for 1/N of the gradient:
    the paper takes it, and gives no time for any other.
  - Section 3.3 says that PS on BCube "will double the GST" of BML, without an equation. hips.mesh_gst() has one. Over
    gst() it is k n^(k-1) (n-1) / (n^k - 1), or nearly k: for the k = 2 of the paper's Figure 5, 1.6 at n = 4 and 1.94
    at n = 32.

Every function raises ValueError for less than two servers, n < 2 or k < 1.
"""

from .grid import checked_servers, grid_servers, product_of


def piece_seconds(n, k, t_f):
    """T_C: seconds that one link takes for one of the kN pieces of the gradient (section 3.2)."""
    N = grid_servers(n, k)
    return t_f / (k * N)


def step_seconds(n, k, w, t_f):
    """Step w of the aggregation stage, 0..k-1: N / n^(w+1) * (n-1) * T_C (section 3.2). The broadcast stage has the
    same steps in reverse."""
    N = grid_servers(n, k)
    if not 0 <= w < k:
        raise ValueError(f"step {w} of {k}")
    return N / n ** (w + 1) * (n - 1) * piece_seconds(n, k, t_f)


def gst(n, k, t_f):
    """GST of BML on BCube(n,k): 2(N-1) * T_C = 2(N-1)/(kN) * T_F (section 3.2)."""
    return 2 * (grid_servers(n, k) - 1) * piece_seconds(n, k, t_f)


def level_share(radices, level):
    """What a port of the level sends in one stage, as a share of the gradient, on a generalized BCube.

    The paper has one radix for all levels. With radices[l] at level l, thread t of k begins with level t, as it does
    there, and takes its k-th of the gradient; then levels carry different shares. A thread that comes to level l from
    level t has 1 / (n_t ... n_(l-1)) of its k-th left, and sends (n_l - 1) / n_l of that. Of equal radices it is
    (N-1)/(kN).
    """
    product_of(radices)
    k = len(radices)
    if not 0 <= level < k:
        raise ValueError(f"level {level} of {k}")
    n = radices[level]
    share, before = 0.0, 1.0  # before: n_t ... n_(l-1)
    for w in range(k):
        share += (n - 1) / (n * before)
        before *= radices[(level + k - w - 1) % k]
    return share / k


def generalized_gst(radices, t_f):
    """The time that a port of the busiest level needs for both stages. The threads of a server take different times
    for a step, so it is a lower bound unless the radices are equal."""
    return 2 * max(level_share(radices, level) for level in range(len(radices))) * t_f


def fat_tree_gst(N, t_f, nics=1):
    """GST on a Fat-Tree: 2(N-1)/N * T_F by P2P-based PS and by ring all-reduce (section 2), and the same by a
    hierarchical algorithm as BML's (section 3.3). With several NICs at every server it is divided by their number
    (section 3.3)."""
    return 2 * (checked_servers(N) - 1) / N * t_f / _checked_nics(nics)


def bcube_switches(n, k):
    """Of BCube(n,k): k * n^(k-1) = kN/n (section 3.1)."""
    return k * (grid_servers(n, k) // n)


def fat_tree_switches(N, n, nics=1):
    """Switches of n ports of a 3-layer Fat-Tree for N servers: 5N/n (section 3.1), times the NICs of a server (section
    3.3). A fraction when no Fat-Tree has exactly N servers: one of n-port switches has n^3/4."""
    if n < 2:
        raise ValueError(f"n is {n}, but it is at least 2")
    return 5 * checked_servers(N) / n * _checked_nics(nics)


def _checked_nics(nics):
    if nics == 0:
        raise ValueError("a server has no NIC, but it has at least 1")
    return nics
