"""Makes a test of a trace: a file that holds the trace, and a pytest file that replays it.

The test passes now and fails when the prompt, the tools that are offered, what the model is given, or the
reading of its answer changes, or a search finds no more what it found. The model and the tools answer as
recorded.
"""

import ast
import re
import unicodedata
from collections.abc import Iterator
from pprint import pformat
from textwrap import indent

from agent.replay.cassette import context_of
from agent.replay.testing import TurnAgain, taken_again, trace_file
from agent.tracing.differences import differences
from agent.tracing.trace import Trace
from memory.audience import Place

WIDTH = 100
"""Columns of the generated file."""
NAME_LENGTH = 60
"""Characters of the message in the test's name."""

_FILE = '''"""{title}

Made by `hachi traces to-test {short}`, and yours to edit. The context, the model's answers and the tools'
results are the recorded ones; everything else is today's. What was found is searched for again.
"""

from pathlib import Path

from agent.replay.testing import take_again

TRACE = Path(__file__).with_name("{file}")


def test_{name}() -> None:
    turn = take_again(TRACE)
{body}
'''


async def make_test(trace: Trace) -> dict[str, str]:
    """Return the two files by name. Raises BadInput if the turn cannot be replayed."""
    facts = [fact.content for fact in context_of(trace).prompt.known.long_term_facts]
    turn = await taken_again(trace)
    summary, stem = trace.summary, f"trace_{trace.summary.short}"
    said = " ".join(summary.said.split())[:NAME_LENGTH]
    title = f"{summary.user} in {Place.of_key(summary.place)} on {summary.started_at:%Y-%m-%d}: {said}"
    lines = list(_assertions(turn, facts))
    if changed := next(iter(differences(trace, turn.trace)), None):
        lines.insert(0, f"# When this was made it was not as recorded: {changed.where} {changed.what}.")
    texts = {"title": _docstring(title), "short": summary.short, "name": _identifier(said)}
    source = _FILE.format(**texts, file=f"{stem}.json", body=indent("\n".join(lines), "    "))
    ast.parse(source)  # raises now, not when the test runs
    return {f"test_{stem}.py": source, f"{stem}.json": trace_file(trace)}


def _assertions(turn: TurnAgain, facts: list[str]) -> Iterator[str]:
    yield from _equals("list(turn.prompt)", list(turn.prompt))
    yield from _equals("turn.versions", turn.versions)
    for fact in facts:
        if fact in turn.prompt.get("person", ""):
            yield f"assert {fact!r} in turn.prompt['person']"
    yield from _equals("turn.called", turn.called)
    for place, tool in enumerate(turn.tools):
        for part, value in (("arguments", tool.arguments), ("ok", tool.ok), ("result", tool.result)):
            yield from _equals(f"turn.tools[{place}].{part}", value)
    if any(turn.found):
        yield from _equals("turn.found", turn.found)
    for name in ("decided", "to_remember", "to_forget", "error", "reply"):
        yield from _equals(f"turn.{name}", getattr(turn, name))


def _equals(name: str, value: object) -> list[str]:
    """Return an assertion, on one line if it fits."""
    if value is None or isinstance(value, bool):
        return [f"assert {name} is {value}"]
    literal = pformat(value, width=WIDTH, sort_dicts=False)
    if len(name) + len(literal) <= WIDTH and "\n" not in literal:
        return [f"assert {name} == {literal}"]
    return [f"assert {name} == (", *(f"    {line}" for line in literal.splitlines()), ")"]


def _identifier(said: str) -> str:
    """Return the message as a Python name of ASCII letters and digits."""
    plain = unicodedata.normalize("NFKD", said.lower()).encode("ascii", "ignore").decode()
    return "_".join(re.findall(r"[a-z0-9]+", plain))[:NAME_LENGTH].strip("_") or "the_turn"


def _docstring(text: str) -> str:
    return "".join(c if c.isprintable() else " " for c in text).replace("\\", "\\\\").replace('"', "'")
