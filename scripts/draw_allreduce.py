"""Draws docs/allreduce.svg: BCube(3,2), and what thread 0 of BML has at each server after each step of an all-reduce.

    python3 scripts/draw_allreduce.py > docs/allreduce.svg

The states follow from the paper's rule (BML, section 3.2): in aggregation step w thread t exchanges over level
(t + w) mod k, and each server keeps the pieces whose digit there is its own; the broadcast stage goes back.
"""

import collections

N, K = 3, 2
SPACING, BOX, CELL = 66, 42, 11  # pixels: of servers, a server, a piece in it
SERVERS = [(v1, v0) for v1 in range(N) for v0 in range(N)]

STYLE = """
text { font-family: "DejaVu Sans", Verdana, Helvetica, Arial, sans-serif; font-size: 13px; fill: #1f2937 }
.small { font-size: 12px; fill: #475569 }
.head { font-weight: bold; font-size: 15px }
.card { fill: #ffffff; stroke: #cbd5e1 }
.server { fill: #f8fafc; stroke: #64748b; stroke-width: 1.5 }
.switch { stroke: #94a3b8 } .thread0 { stroke: #2563eb } .thread1 { stroke: #ea8a2f }
line { stroke-width: 2 } line.bar { stroke-width: 6; stroke-linecap: round }
.sum0 { fill: none; stroke: #cbd5e1 } .sum3 { fill: #60a5fa } .sum9 { fill: #1e3a8a }
@media (prefers-color-scheme: dark) {
text { fill: #e5e7eb } .small { fill: #a8b3c2 } .card { fill: #0f172a; stroke: #334155 }
.server { fill: #1e293b; stroke: #94a3b8 } .switch { stroke: #64748b } .thread0 { stroke: #60a5fa }
.thread1 { stroke: #f2a65a } .sum0 { stroke: #475569 } .sum3 { fill: #3b82f6 }
.sum9 { fill: #dbeafe }
}
"""


def text(x, y, words, kind="", anchor="start"):
    return f'<text x="{x}" y="{y}" class="{kind}" text-anchor="{anchor}">{words}</text>'


def line(x1, y1, x2, y2, kind):
    return f'<line x1="{x1}" y1="{y1}" x2="{x2}" y2="{y2}" class="{kind}"/>'


def switches(x, y, level, kind):
    """A bar for each switch of the level, and a stub to each of its servers: level 0 joins rows, level 1 columns."""
    for own in range(N):
        for other in range(N):
            if level == 0:
                column, row = x + other * SPACING + BOX / 2, y + own * SPACING
                yield line(column, row - 9, column, row, kind)
            else:
                column, row = x + own * SPACING, y + other * SPACING + BOX / 2
                yield line(column - 9, row, column, row, kind)
        span = (N - 1) * SPACING + BOX
        if level == 0:
            yield line(x + 3, y + own * SPACING - 11, x + span - 3, y + own * SPACING - 11, f"bar {kind}")
        else:
            yield line(x + own * SPACING - 11, y + 3, x + own * SPACING - 11, y + span - 3, f"bar {kind}")


def boxes(x, y):
    for v1, v0 in SERVERS:
        yield f'<rect x="{x + v0 * SPACING}" y="{y + v1 * SPACING}" width="{BOX}" height="{BOX}" rx="6" class="server"/>'


def states():
    """After each step, by server and piece of thread 0: how many servers' gradients its values are the sum of."""
    has = {server: dict.fromkeys(SERVERS, 1) for server in SERVERS}
    kept = []  # before each aggregation step, the pieces that a server works on
    for level in range(K):
        digit = K - 1 - level  # where the level's digit stands in [v1,v0]
        kept.append({server: {piece for piece in SERVERS if has[server][piece]} for server in SERVERS})
        for server in SERVERS:
            for piece in kept[-1][server]:
                has[server][piece] = has[server][piece] * N if piece[digit] == server[digit] else 0
        yield level, {server: dict(pieces) for server, pieces in has.items()}
    for level in reversed(range(K)):
        for server in SERVERS:
            for piece in kept[level][server]:
                has[server][piece] = N**K
        yield level, {server: dict(pieces) for server, pieces in has.items()}


def panel(x, y, level, has):
    yield from switches(x, y, level, "thread0")
    yield from switches(x, y, 1 - level, "thread1")
    yield from boxes(x, y)
    squares = collections.defaultdict(str)
    for v1, v0 in SERVERS:
        for (p1, p0), servers in has[v1, v0].items():
            left, top = x + v0 * SPACING + 3 + p0 * (CELL + 1.5), y + v1 * SPACING + 3 + p1 * (CELL + 1.5)
            squares[servers] += f"M{left} {top}h{CELL}v{CELL}h-{CELL}z"
    for servers, path in sorted(squares.items()):
        yield f'<path d="{path}" class="sum{servers}"/>'


def picture():
    yield (
        '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 920 640" width="920" height="640" role="img" '
        'aria-label="BCube(3,2) and the four steps of an all-reduce by BML">'
    )
    yield f"<style>{STYLE}</style>"
    yield '<rect x="1" y="1" width="918" height="638" rx="12" class="card"/>'
    yield text(40, 44, "BCube(3,2)", "head")
    yield text(40, 64, "9 servers, 2 links each, 6 switches", "small")
    x, y = 62, 100
    yield from switches(x, y, 0, "switch")
    yield from switches(x, y, 1, "switch")
    yield from boxes(x, y)
    for v1, v0 in SERVERS:
        yield text(x + v0 * SPACING + BOX / 2, y + v1 * SPACING + BOX / 2 + 5, f"{v1},{v0}", "", "middle")
    yield text(40, 322, "The bars are the switches: those of level 0", "small")
    yield text(40, 340, "join a row, those of level 1 a column.", "small")
    for row, (kind, words) in enumerate((("thread0", "thread 0: half of the gradient"), ("thread1", "thread 1: the other half"))):
        yield line(42, 376 + 24 * row, 68, 376 + 24 * row, f"bar {kind}")
        yield text(80, 380 + 24 * row, words)
    yield text(40, 442, "The 9 pieces of thread 0 at a server:", "small")
    for row, (kind, words) in enumerate(
        ((0, "passed on, or not back yet"), (3, "the sum of 3 servers' gradients"), (9, "the sum of all 9"))
    ):
        yield f'<rect x="50" y="{455 + 24 * row}" width="{CELL}" height="{CELL}" rx="1.5" class="sum{kind}"/>'
        yield text(80, 465 + 24 * row, words)
    yield text(40, 552, "Thread 1 does the same with rows and", "small")
    yield text(40, 570, "columns swapped, so no link is ever idle.", "small")
    yield text(40, 594, "Each carries 1/3 + 1/9 + 1/9 + 1/3 = 8/9", "small")
    yield text(40, 612, "of the gradient: 2(N-1)/(kN).", "small")
    heads = ("1  add over the rows", "2  add over the columns", "3  return over the columns", "4  return over the rows")
    for number, (level, has) in enumerate(states()):
        x, y = 400 + 270 * (number % 2), 100 + 305 * (number // 2)
        share = "1/3" if level == 0 else "1/9"
        yield text(x - 18, y - 56, heads[number], "head")
        yield text(x - 18, y - 36, f"each link carries {share} of the gradient", "small")
        yield from panel(x, y, level, has)
    yield "</svg>"


if __name__ == "__main__":
    print("\n".join(picture()))
