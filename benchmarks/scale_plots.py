"""Draws what `scale.py` measured: its JSON on stdin, SVG files into a folder. Needs matplotlib alone.

    python benchmarks/scale_plots.py FOLDER < result.json

Every grey and colour is one that can be read on a white page and on a dark one; the ground is left clear.
"""

import json
import math
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

INK, GRID = "#7d8590", "#7d859040"
OURS, THEIRS = "#2f81f7", "#db6d28"

Line = tuple[str, str, Sequence[tuple[float, float]]]
"""Its name, its colour and its points."""


def draw(result: Mapping[str, Any], folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    hachi, mem0 = (_by_size(result[who]) for who in ("hachi", "mem0"))
    search = [("Hachi", OURS, _points(hachi, "search")), ("mem0, local", THEIRS, _points(mem0, "search"))]
    _plot("Milliseconds of a search, median", search, folder / "benchmark-search.svg")
    # Alone: mem0's add without a model compares and decides nothing.
    remember = [("Hachi", OURS, _points(hachi, "remember"))]
    _plot("Milliseconds to remember a fact, median", remember, folder / "benchmark-remember.svg")
    purges = [(size, row["purge_seconds"]) for size, row in hachi.items() if row["purged"]]
    title = "Seconds to purge the hundredth that has expired"
    _plot(title, [("Hachi", OURS, purges)], folder / "benchmark-purge.svg")


def _by_size(rows: Mapping[str, Any]) -> dict[int, Any]:
    return {int(size): rows[size] for size in sorted(rows, key=int)}


def _points(rows: Mapping[int, Any], what: str) -> list[tuple[float, float]]:
    return [(size, row[f"{what}_p50"]) for size, row in rows.items()]


def _plot(title: str, lines: Sequence[Line], path: Path) -> None:
    import matplotlib

    matplotlib.use("svg")
    from matplotlib import pyplot
    from matplotlib.ticker import FuncFormatter, NullFormatter

    style = {"svg.fonttype": "none", "svg.hashsalt": "hachi", "font.size": 11}
    colours = dict.fromkeys(("text.color", "axes.labelcolor", "xtick.color", "ytick.color"), INK)
    with matplotlib.rc_context({**style, **colours}):
        figure, axes = pyplot.subplots(figsize=(6.4, 3.4), layout="constrained")
        drawn = [(name, colour, points) for name, colour, points in lines if points]
        for name, colour, points in drawn:
            across, up = zip(*points, strict=True)
            axes.plot(across, up, color=colour, linewidth=2, marker="o", markersize=5)
            _label(axes, points, colour, name if len(drawn) > 1 else "")
        axes.set(xscale="log", yscale="log")
        axes.set_title(title, loc="left", fontsize=12, pad=12)
        axes.set_xlabel("memories, 200 a user")
        axes.xaxis.set_major_formatter(FuncFormatter(lambda size, _: f"{size:,.0f}"))
        axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
        axes.yaxis.set_minor_formatter(NullFormatter())
        axes.margins(x=0.12)
        axes.set_ylim(*_decades([up for *_, points in drawn for _, up in points]))
        axes.grid(True, which="major", color=GRID, linewidth=0.8)
        axes.tick_params(which="both", length=0)
        axes.spines[:].set_visible(False)
        figure.savefig(path, transparent=True, metadata={"Date": None})
        pyplot.close(figure)


def _decades(values: Sequence[float]) -> tuple[float, float]:
    """Whole powers of ten around the values, with room for a label above."""
    return 10.0 ** math.floor(math.log10(min(values))), 10.0 ** math.ceil(math.log10(2 * max(values)))


def _label(axes: Any, points: Sequence[tuple[float, float]], colour: str, name: str) -> None:
    """Each point with its value; the last one with the line's name."""
    for place, (across, up) in enumerate(points, 1):
        last = place == len(points)
        text = f"{name}  {up:.3g}".strip() if last else f"{up:.3g}"
        side = "right" if last and name and len(points) > 2 else "center"
        axes.annotate(
            text, (across, up), (0, 9), textcoords="offset points", color=colour, ha=side, fontsize=10
        )


if __name__ == "__main__":
    draw(json.load(sys.stdin), Path(sys.argv[1]))
