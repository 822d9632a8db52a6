"""Generates a fixture and a pytest file from a trace. The test passes now and fails when behaviour changes.

The test repeats the recorded model outputs and checks what Hachi did with them: the tools, search results,
audience, decisions, and the place of the reply. It checks the telling words of the reply, not its wording.
"""

import ast
import re
import unicodedata
from collections.abc import Iterator
from pprint import pformat
from textwrap import indent

from agent.companion import Companion
from agent.replay.fixture import fixture_of
from agent.replay.replay import check_replayable
from agent.replay.testing import TurnAgain, taken_again
from agent.tracing.compare import differences
from agent.tracing.trace import Trace
from memory.audience import Place
from memory.index import bm25

WIDTH = 100
"""Columns of the generated file."""
REPLY_WORDS = 3
"""How many words of the reply the test checks."""
NAME_LENGTH = 60
"""Characters of the message in the test's name."""

_FILE = '''"""{title}

Made by `hachi traces to-test {short}`, and yours to edit. The model's answers are the recorded
ones; everything else is today's.
"""

from pathlib import Path

from agent.replay.testing import take_again

FIXTURE = Path(__file__).with_name("{fixture}")


def test_{name}() -> None:
    turn = take_again(FIXTURE)
{body}
'''


async def make_test(pet: Companion, trace: Trace) -> dict[str, str]:
    """Return the two files by name. Raises BadInput if the turn cannot be replayed."""
    check_replayable(trace)
    fixture = await fixture_of(pet, trace)
    turn = await taken_again(fixture)
    stem = f"trace_{trace.summary.short}"
    return {f"test_{stem}.py": _source(trace, turn, f"{stem}.json"), f"{stem}.json": fixture.to_json()}


def _source(trace: Trace, turn: TurnAgain, fixture: str) -> str:
    summary = trace.summary
    said = " ".join(summary.said.split())[:NAME_LENGTH]
    title = f"{summary.user} in {Place.of_key(summary.place)} on {summary.started_at:%Y-%m-%d}: {said}"
    lines = list(_assertions(turn))
    if changed := next(iter(differences(trace, turn.trace)), None):
        lines.insert(0, f"# When this was made it was not as recorded: {changed.where} {changed.what}.")
    texts = {"title": _docstring(title), "short": summary.short, "name": _identifier(said)}
    source = _FILE.format(**texts, fixture=fixture, body=indent("\n".join(lines), "    "))
    ast.parse(source)  # raises now, not when the test runs
    return source


def _assertions(turn: TurnAgain) -> Iterator[str]:
    yield from _equals("turn.called", turn.called)
    for place, tool in enumerate(turn.tools):
        name = f"turn.tools[{place}]"
        yield from _equals(f"{name}.arguments", dict(tool.arguments))
        yield f"assert {name}.ok" if tool.ok else f"assert not {name}.ok"
        if not tool.ok and "error" in tool.result:
            yield from _equals(f"{name}.result['error']", tool.result["error"])
    searched = any(turn.trace.spans("search"))
    for name in ("audience", "found", "decided", "to_remember", "place"):
        if (value := getattr(turn, name)) or (name == "found" and searched):
            yield from _equals(f"turn.{name}", value)
    if turn.error:
        yield f"assert (turn.error or '').startswith({turn.error.partition(':')[0]!r})"
        return
    yield "assert turn.error is None"
    for word in telling_words(turn):
        yield f"assert {word!r} in turn.reply"


def _equals(name: str, value: object) -> list[str]:
    """Return an assertion, on one line if it fits."""
    if isinstance(value, set) and value:  # a short set is printed in the order of its hashes
        literal = f"{{{', '.join(sorted(map(repr, value)))}}}"
    else:
        literal = pformat(value, width=WIDTH, sort_dicts=False)
    if len(name) + len(literal) <= WIDTH and "\n" not in literal:
        return [f"assert {name} == {literal}"]
    return [f"assert {name} == (", *(f"    {line}" for line in literal.splitlines()), ")"]


def telling_words(turn: TurnAgain) -> list[str]:
    """Return words of the reply that were not in the message: first those that also occur in search results,
    known facts or tool calls, then the longest."""
    asked = _stems(turn.trace.summary.said)
    results = (str(tool.result) for tool in turn.tools)
    known = (turn.prompt.get(section, "") for section in ("person", "summary", "documents"))
    sources = _stems(" ".join([*turn.found, *results, *turn.to_remember, *known]))
    words = {word: _stems(word) for word in re.findall(r"\w{3,}", turn.reply)}
    candidates = [word for word, stems in words.items() if stems and not stems & asked]
    candidates.sort(key=lambda word: (not words[word] & sources, -len(word)))
    return candidates[:REPLY_WORDS] or turn.reply.split()[:1]


def _stems(text: str) -> frozenset[int]:
    vector = bm25.query(text)
    return frozenset(vector.indices) if vector is not None else frozenset()


def _identifier(said: str) -> str:
    """Return the message as a Python name of ASCII letters and digits."""
    plain = unicodedata.normalize("NFKD", said.lower()).encode("ascii", "ignore").decode()
    return "_".join(re.findall(r"[a-z0-9]+", plain))[:NAME_LENGTH].strip("_") or "the_turn"


def _docstring(text: str) -> str:
    return "".join(c if c.isprintable() else " " for c in text).replace("\\", "\\\\").replace('"', "'")
