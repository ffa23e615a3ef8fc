"""How many servers the models' topologies have, and the time that one link takes: what every model counts in.

The models go beyond what a cluster can run, up to MOST_SERVERS. Raises ValueError when a bound does not hold.
"""

import math

MOST_SERVERS = 1_000_000_000


def checked_servers(N):
    """N, if it is 2..MOST_SERVERS: one server alone has nothing to synchronize."""
    if not 2 <= N <= MOST_SERVERS:
        raise ValueError(f"N is {N}, but it is 2..{MOST_SERVERS}")
    return N


def product_of(radices):
    """N, the product of the radices: a generalized BCube has one for each level, each at least 2."""
    if not radices:
        raise ValueError("there are 0 levels, but there is at least 1")
    N = 1
    for n in radices:
        if n < 2:
            raise ValueError(f"n is {n}, but it is at least 2")
        N *= n
        if N > MOST_SERVERS:
            raise ValueError(f"{' x '.join(map(str, radices))} servers are more than {MOST_SERVERS}")
    return N


def grid_servers(n, levels):
    """N = n^levels, of BCube(n,k) with k levels and of a torus with h dimensions."""
    return product_of([n] * levels)


def is_power_of_two(N):
    return N > 0 and N & (N - 1) == 0


def transfer_seconds(byte_count, bits_per_second):
    """The papers' T_F for the whole gradient (BML, Table 1), W/B (HiPS, Table 2), n/w (BlueConnect, Eq. 1).

    Bytes may be a fraction: a share of a gradient.
    """
    if not (math.isfinite(byte_count) and byte_count >= 0 and math.isfinite(bits_per_second) and bits_per_second > 0):
        raise ValueError(
            f"{byte_count} bytes at {bits_per_second} bit/s: expected finite numbers, at least 0 bytes and a rate "
            "above 0"
        )
    return 8 * byte_count / bits_per_second
