"""The plot of `prompt.py`; needs matplotlib."""

import statistics
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from scale_plots import GRID, INK

SECTIONS = ("tools", "rules", "person", "summary", "knowledge", "setting", "history", "question")
NAMES = {"rules": "persona and rules", "person": "about the person", "summary": "summary so far"}
SMOOTHED = 20
COLOURS = {
    "tools": "#6e7681", "rules": "#8b949e", "person": "#2f81f7", "summary": "#3fb950", "knowledge": "#a371f7",
    "setting": "#d29922", "history": "#db6d28", "question": "#e5534b",
}  # fmt: skip


def plot(costs: Sequence[Mapping[str, Any]], path: Path) -> None:
    """Areas on each other, each point the mean of twenty turns: what single messages take jumps about."""
    import matplotlib

    matplotlib.use("svg")
    from matplotlib import pyplot
    from matplotlib.ticker import FuncFormatter

    across, layers = smoothed(costs)
    style = {"svg.fonttype": "none", "svg.hashsalt": "hachi", "font.size": 11}
    colours = dict.fromkeys(("text.color", "axes.labelcolor", "xtick.color", "ytick.color"), INK)
    with matplotlib.rc_context({**style, **colours}):
        figure, axes = pyplot.subplots(figsize=(6.4, 3.4), layout="constrained")
        axes.stackplot(across, *layers.values(), colors=[COLOURS[name] for name in layers], linewidth=0)
        for name, at in labelled(layers).items():
            text = f"{NAMES.get(name, name)}  {statistics.fmean(layers[name]):,.0f}"
            offset = {"xytext": (8, 0), "textcoords": "offset points", "va": "center", "fontsize": 9}
            axes.annotate(text, (across[-1], at), color=COLOURS[name], **offset)
        axes.set_title("Tokens of a prompt, by section", loc="left", fontsize=12, pad=12)
        axes.set_xlabel("turn; each point is the mean of twenty")
        for axis in (axes.xaxis, axes.yaxis):
            axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}"))
        axes.set_xlim(across[0], across[-1])
        axes.set_ylim(0)
        axes.grid(True, axis="y", color=GRID, linewidth=0.8)
        axes.tick_params(which="both", length=0)
        axes.spines[:].set_visible(False)
        figure.savefig(path, transparent=True, metadata={"Date": None})
        pyplot.close(figure)


def smoothed(costs: Sequence[Mapping[str, Any]]) -> tuple[list[float], dict[str, list[float]]]:
    """The middles of every twenty turns, and the mean of each section over them."""
    groups = [costs[at : at + SMOOTHED] for at in range(0, len(costs), SMOOTHED)]
    across = [statistics.fmean(cost["turn"] for cost in group) for group in groups]
    layers = {
        name: [statistics.fmean(cost["tokens"].get(name, 0) for cost in group) for group in groups]
        for name in SECTIONS
    }
    return across, {name: values for name, values in layers.items() if any(values)}


def labelled(layers: Mapping[str, Sequence[float]]) -> dict[str, float]:
    """The heights of the labels at the right end: beside the middles of the layers, and off each other."""
    level, gap, heights = 0.0, sum(map(max, layers.values())) / 17, dict[str, float]()
    for name, values in layers.items():
        middle, level = level + values[-1] / 2, level + values[-1]
        heights[name] = max(middle, max(heights.values(), default=0.0) + gap)
    return heights
