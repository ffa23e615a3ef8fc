"""HiPS's theory: Table 3, the gradient synchronization times of hierarchical and of flat algorithms on BCube and on
Torus (HiPS, sections 4.1 and 4.2).

    n, h  servers of a group and stages: N = n^h servers (Table 2)
    W/B   w_by_b: seconds that one link takes for a server's whole gradient; grid.transfer_seconds()

The paper writes BCube(n,h-1) for what BML and this project call BCube(n,h).

Assumed: every NIC has the rate B in both directions at once; latency and addition take no time. A server of a torus has
two cables in each dimension, which is why the torus needs half of the time in every row.

Where the text is wrong, or leaves a choice:
  - The copy that this was written from has n^(h-1)/n^h in sections 4.1 and 4.2 and in Table 3, where (n^h - 1)/n^h is
    meant. The latter is the sum that section 4.1 takes, it is (N-1)/N in the row RS, and it gives the 37.5 % and 50 %
    of section 4.2; the former is 1/n.
  - PSS/MS is one row: section 4.1 regards MS as the parameter server with a balanced load, and gives no time for one
    that is not.
  - On Torus, the row PSS/MS is a lower bound: that of a BCube whose links are twice as fast.

Every function raises ValueError for n < 2 or h < 1.
"""

from .grid import grid_servers

BCUBE, TORUS = "bcube", "torus"  # the columns of Table 3


def _by_network(network, bcube_seconds):
    return bcube_seconds if network == BCUBE else bcube_seconds / 2


def gst(network, n, h, w_by_b):
    """Row HiPS: 2 (n^h - 1)/n^h W/(hB) on BCube, with mesh or ring in the groups, which take the same time (footnote
    5); half of it on Torus, with ring."""
    return ring_gst(network, n, h, w_by_b) / h


def mesh_gst(network, n, h, w_by_b):
    """Row PSS/MS: 2 (n-1)/n W/B on BCube; at least half of it on Torus."""
    grid_servers(n, h)
    return _by_network(network, 2 * (n - 1) / n * w_by_b)


def ring_gst(network, n, h, w_by_b):
    """Row RS: 2 (n^h - 1)/n^h W/B on BCube, half of it on Torus."""
    N = grid_servers(n, h)
    return _by_network(network, 2 * (N - 1) / N * w_by_b)


def root_gst(n, h, w_by_b):
    """HiPS on BCube with push and pull, where one server of each group is the parameter server: an option of Algorithm
    1 (footnote 3) for which the paper gives no time.

    In a stage each of h processes lets the root receive W/h from n-1 servers over one link, and later send it back; the
    next stage has the same workload, of the roots. So it is h * 2(n-1) W/(hB) = 2(n-1) W/B.
    """
    grid_servers(n, h)
    return 2 * (n - 1) * w_by_b
