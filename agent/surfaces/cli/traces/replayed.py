"""What came of replaying several turns: for people, as JSON and as JUnit's XML."""

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any
from xml.etree.ElementTree import Element, SubElement, tostring

from agent.replay.replay import NotReplayed, Replayed, causes
from agent.surfaces.cli.output import Output, print_table, write_output
from agent.surfaces.cli.traces.lines import difference_lines, print_lines, text_lines_of
from agent.tracing.differences import Difference
from agent.tracing.render.text import count, duration, harmless, money, one_line, tokens
from agent.tracing.render.trace import heading
from agent.tracing.render.tree import Line
from agent.tracing.trace import span_json

CHANGED = 3
"""The exit code if a turn went differently: 1 is an error, 2 a mistyped command."""
COLUMNS = ("id", "said", "tokens", "time", "cost", "behaviour")


@dataclass(frozen=True)
class Replays:
    each: Sequence[Replayed | NotReplayed]

    @property
    def done(self) -> list[Replayed]:
        return [one for one in self.each if isinstance(one, Replayed)]

    def output(self, *, full: bool = False, junit: Path | None = None, name: str = "replay") -> Output:
        if junit:
            write_output(junit, _junit(self.each, name), "the report is")
        same, data = all(one.same for one in self.done), [_as_json(one) for one in self.each]
        told = (
            (lambda: None) if str(junit) == "-" else lambda: self.print(full)
        )  # the report alone can be read
        return Output(data, told, 0 if same else CHANGED)

    def print(self, full: bool) -> None:
        """Print each turn in short, and what they have in common."""
        live = len(self.each) > 1 and any(one.live for one in self.done)
        if live:
            print_table(COLUMNS, map(_row, self.done))
        print_lines(
            (
                line
                for one in self.each
                if full or not (live and one in self.done)
                for line in _lines(one, full)
            ),
            whole=full,
        )
        if len(self.each) > 1:
            self._print_summary()

    def _print_summary(self) -> None:
        done = self.done
        same, skipped = sum(one.same for one in done), len(self.each) - len(done)
        more = f", {skipped} not replayed" if skipped else ""
        print(f"{len(done)} replayed: {same} same, {len(done) - same} changed{more}")
        for what, turns, otherwise in causes(done):
            print(f"{count(turns, 'turn')}: {one_line(what)}; {otherwise or 'none'} went otherwise")


def _named(difference: Difference) -> str:
    return one_line(f"{difference.where} {difference.what}")


def _row(one: Replayed) -> list[str]:
    """Return how a turn was and how it went again with a live model."""
    (was, now), summary = one.figures, one.before.trace.summary
    return [
        summary.short,
        one_line(summary.said, 40),
        f"{tokens(was.usage) or '-'} ⇒ {tokens(now.usage) or '-'}",
        f"{duration(was.took)} ⇒ {duration(now.took)}",
        f"{money(was.cost)} ⇒ {money(now.cost)}",
        "same" if one.same else "; ".join(map(_named, one.told)),
    ]


def _as_json(one: Replayed | NotReplayed) -> dict[str, Any]:
    if isinstance(one, NotReplayed):
        return {"id": one.id, "not_replayed": one.why}
    before, after = map(asdict, one.figures)
    return {
        "id": one.before.trace.id,
        "same": one.same,
        "behaves_otherwise": bool(one.behaviour),
        "memory": one.options.memory,
        "forked_at": one.options.fork,
        "differences": [asdict(difference) for difference in one.differences],
        "before": before,
        "after": after,
        "root": span_json(one.after.root),
    }


def _junit(each: Sequence[Replayed | NotReplayed], name: str) -> str:
    """Return a report that continuous integration reads: a turn that went otherwise is a failure."""
    failed = sum(isinstance(one, Replayed) and not one.same for one in each)
    skipped = sum(isinstance(one, NotReplayed) for one in each)
    suite = Element("testsuite", name=harmless(name), tests=str(len(each)))
    suite.set("failures", str(failed))
    suite.set("skipped", str(skipped))
    for one in each:
        if isinstance(one, NotReplayed):
            SubElement(_case(suite, name, one.id), "skipped", message=harmless(one.why))
            continue
        summary = one.before.trace.summary
        case = _case(suite, name, f"{summary.short} {one_line(summary.said, 60)}")
        case.set("time", f"{one.after.summary.took or 0:.3f}")
        if not one.same:
            told = "\n".join(map(_named, one.told))
            SubElement(case, "failure", message=told.partition("\n")[0]).text = told
    return tostring(suite, encoding="unicode", xml_declaration=True) + "\n"


def _case(suite: Element, set_name: str, name: str) -> Element:
    return SubElement(suite, "testcase", classname=harmless(set_name), name=name)


def _lines(replayed: Replayed | NotReplayed, full: bool) -> Iterator[Line]:
    if isinstance(replayed, NotReplayed):
        yield Line("", f"not replayed: {one_line(replayed.why)}", "faint")
        return
    before, after = replayed.before.trace.summary, replayed.after.summary
    if replayed.same:
        yield Line("", f"same     {heading(before)}", "good")
    else:
        first, *others = replayed.told
        yield Line("", f"CHANGED  {heading(before)}", "bad")
        yield Line("", f"first difference: {_named(first)}", "strong")
        if full:
            yield from list(difference_lines(before, after, replayed.differences, whole=True))[3:]
        else:
            yield from text_lines_of(first, whole=False)
            if others:
                told = f"… and {len(others)} more that may follow from it; --full shows them"
                yield Line("", told, "faint")
    if replayed.live:
        yield Line("", f"from call {replayed.options.fork} on the model of today was asked", "faint")
        reply = replayed.after.root.data.get("reply", {}).get("message", "")
        yield Line("", f"→ {one_line(reply or replayed.after.root.error or '')}")
