"""Searching, remembering and purging, from a thousand memories to a million.

    python benchmarks/scale.py [--sizes 1000,10000,100000,1000000] [--mem0 PYTHON] [--svg FOLDER] [--json]

Each size is a world of its own, 200 facts a user, opened with the embedded default: SQLite, Qdrant Edge and
the bundled embedder. It is filled in bulk and then measured through the public API: questions of random
users, new facts, and a purge once a hundredth has expired. With `--mem0`, a Python that has `mem0ai` and
`wordllama`, mem0 answers the same questions over the same facts with the same vectors, up to `--mem0-most`
memories. No model and no network take part. Plots are drawn where matplotlib is, by PYTHON or by this one.

Bars, each a ratio from one run: at 1,000 memories a search takes at most a 20th of mem0's; at 1,000,000 at
most twice what it takes at 10,000, both asked turn by turn. Exit 1 where one is missed; a bar whose sizes
were not run is left out.
A million takes about ten minutes, 6 GB of memory and as much disk.
"""

import argparse
import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

HERE = Path(__file__).parent
SIZES = "1000,10000,100000,1000000"
FASTER_THAN_MEM0, FASTER_AT = 20.0, 1_000
SLOWER_WITH_SIZE, SMALL, LARGE = 2.0, 10_000, 1_000_000

Results = dict[int, dict[str, Any]]


def in_a_world(python: str, who: str, *numbers: int) -> dict[str, Any]:
    """What `scale_hachi.py` or `scale_mem0.py` says. Its progress goes to the terminal."""
    command = [python, str(HERE / f"scale_{who}.py"), *map(str, numbers)]
    done = subprocess.run(command, stdout=subprocess.PIPE, check=True, text=True)
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def bars(hachi: Results, mem0: Results) -> list[dict[str, Any]]:
    found = []
    if FASTER_AT in hachi and FASTER_AT in mem0:
        ratio = mem0[FASTER_AT]["search_p50"] / hachi[FASTER_AT]["search_p50"]
        name = f"a search at {FASTER_AT:,}: mem0's time / ours, at least {FASTER_THAN_MEM0:g}"
        found.append({"bar": name, "ratio": ratio, "reached": ratio >= FASTER_THAN_MEM0})
    if LARGE in hachi:
        ratio = hachi[LARGE]["turns_p50"] / hachi[LARGE]["turns_beside_p50"]
        name = f"a search: at {LARGE:,} / at {SMALL:,}, at most {SLOWER_WITH_SIZE:g}"
        found.append({"bar": name, "ratio": ratio, "reached": ratio <= SLOWER_WITH_SIZE})
    return found


def show(hachi: Results, mem0: Results, reached: Sequence[Mapping[str, Any]]) -> None:
    console = Console()
    table = Table("memories", "search p50, p95", "mem0's", "remember p50, p95", "mem0's", "purge of 1 %")
    for size, row in hachi.items():
        purge = f"{row['purge_seconds']:.2f} s" if row["purged"] else ""
        beside = mem0.get(size, {})
        times = [_pair(who, what) for what in ("search", "remember") for who in (row, beside)]
        table.add_row(f"{size:,}", *times, purge)
    console.print(table)
    table = Table("memories", "filled", "opened, first search", "in memory", "on disk", "found")
    for size, row in hachi.items():
        table.add_row(
            f"{size:,}",
            f"{row['rows_seconds'] + row['index_seconds']:.1f} s",
            f"{row['reopen_seconds']:.2f} s",
            f"{row['resident_mb']:,.0f} MB",
            f"{row['disk_mb']:,.0f} MB",
            f"{row['found']:.0%}",
        )
    console.print(table)
    for bar in reached:
        console.print(f"{'reached' if bar['reached'] else 'missed '}  {bar['ratio']:6.2f}  {bar['bar']}")


def _pair(row: Mapping[str, float], what: str) -> str:
    return f"{row[f'{what}_p50']:.2f}, {row[f'{what}_p95']:.2f} ms" if row else ""


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--sizes", default=SIZES, help="how many memories, with commas between")
    parser.add_argument("--searches", type=int, default=300)
    parser.add_argument("--remembers", type=int, default=150)
    parser.add_argument("--mem0", metavar="PYTHON", help="a Python that has mem0ai and wordllama")
    parser.add_argument("--mem0-most", type=int, default=10_000, help="the most memories mem0 is given")
    parser.add_argument("--svg", metavar="FOLDER", type=Path, help="draw plots there; needs matplotlib")
    parser.add_argument("--json", action="store_true")
    return parser.parse_args()


def main() -> int:
    """0 where the bars are reached, else 1."""
    options = _arguments()
    hachi: Results = {}
    mem0: Results = {}
    for size in map(int, options.sizes.split(",")):
        counts = (size, options.searches, options.remembers)
        beside = [SMALL] if size == LARGE else []
        hachi[size] = in_a_world(sys.executable, "hachi", *counts, *beside)
        if options.mem0 and size <= options.mem0_most:
            mem0[size] = in_a_world(options.mem0, "mem0", *counts)
    reached = bars(hachi, mem0)
    result = json.dumps({"hachi": hachi, "mem0": mem0, "bars": reached}, indent=2)
    print(result) if options.json else show(hachi, mem0, reached)
    if options.svg:
        draw = [options.mem0 or sys.executable, str(HERE / "scale_plots.py"), str(options.svg)]
        subprocess.run(draw, input=result, text=True, check=True)
    return 0 if all(bar["reached"] for bar in reached) else 1


if __name__ == "__main__":
    sys.exit(main())
