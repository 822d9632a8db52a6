"""A test made of a trace: a fixture and a pytest file that passes now and fails when behaviour changes.

The model's answers are the recorded ones, so what it said is no news. What the test holds to is what Hachi
made of them: which tools ran and with what they answered, what was found and for whom, what was decided,
where the reply went. Of the reply it asks for the words that matter, not for its wording.
"""

import ast
import re
import tempfile
import unicodedata
from collections.abc import Iterator
from pathlib import Path

from agent.companion import Companion
from agent.replay.fixture import Fixture, fixture_of
from agent.replay.replay import can_be_taken_again
from agent.replay.scratch import copy, moment_of
from agent.replay.testing import Called, TurnAgain, taken_again
from agent.tracing.compare import differences
from agent.tracing.trace import Trace
from memory.audience import Place
from memory.index import bm25 as words

WIDTH = 100
"""Columns of what is written."""
TELLING = 3
"""Words of the reply that a test asks for."""
SHOWN = 60
"""Characters of what was said that the test is named by."""


async def make_test(pet: Companion, trace: Trace) -> dict[str, str]:
    """The two files, by name. Raises BadInput where the turn cannot be taken again."""
    can_be_taken_again(trace)
    fixture = await _fixture(pet, trace)
    again = await taken_again(fixture)
    stem = f"trace_{trace.summary.short}"
    return {f"test_{stem}.py": _written(trace, again, f"{stem}.json"), f"{stem}.json": fixture.to_json()}


async def _fixture(pet: Companion, trace: Trace) -> Fixture:
    moment = await moment_of(pet, trace)
    with tempfile.TemporaryDirectory(prefix="hachi-test-", ignore_cleanup_errors=True) as folder:
        settings = pet.settings.model_copy(
            update={"home": Path(folder), "database_url": None, "qdrant_url": None, "traces_url": None}
        )
        async with Companion.open(settings, clock=pet.clock, upkeep=False) as scratch:
            await copy(pet, scratch, moment, trace, indexed=False)
            return await fixture_of(pet, scratch, trace)


def _written(trace: Trace, again: TurnAgain, fixture: str) -> str:
    summary = trace.summary
    where = str(Place.of_key(summary.place))
    said = " ".join(summary.said.split())[:SHOWN]
    title = f"{summary.user} in {where} on {summary.started_at:%Y-%m-%d}: {said}"
    text = _FILE.format(
        title=_in_docstring(title),
        short=summary.short,
        fixture=fixture,
        name=_name(said),
        body="\n".join(
            f"    {line}" if line else "" for line in [*_changed(trace, again), *_assertions(again)]
        ),
    )
    ast.parse(text)  # what cannot be read would be found only when it is run
    return text


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


def _changed(trace: Trace, again: TurnAgain) -> list[str]:
    found = next(iter(differences(trace, again.trace)), None)
    return [f"# When this was made it was not as recorded: {found.where} {found.what}."] if found else []


def _assertions(turn: TurnAgain) -> Iterator[str]:
    yield ""
    yield from _is("turn.called", turn.called)
    for place, tool in enumerate(turn.tools):
        yield from _tool(f"turn.tools[{place}]", tool)
    if turn.audience:
        yield f"assert turn.audience == {{{', '.join(map(_text, sorted(turn.audience)))}}}"
    if any(True for _ in turn.trace.spans("search")):
        yield from _is("turn.found", turn.found)
    if turn.decided:
        yield from _is("turn.decided", turn.decided)
    if turn.to_remember:
        yield from _is("turn.to_remember", turn.to_remember)
    yield ""
    yield f"assert turn.place == {_text(turn.place)}"
    if turn.error:
        yield f"assert (turn.error or '').startswith({_text(turn.error.partition(':')[0])})"
        return
    yield "assert turn.error is None"
    for word in telling_words(turn):
        yield f"assert {_text(word)} in turn.reply"


def _tool(name: str, tool: Called) -> Iterator[str]:
    yield from _is(f"{name}.arguments", dict(tool.arguments))
    yield f"assert {name}.ok" if tool.ok else f"assert not {name}.ok"
    if not tool.ok and "error" in tool.result:
        yield from _is(f'{name}.result["error"]', tool.result["error"])


def _is(what: str, value: object) -> Iterator[str]:
    first, *rest = _literal(value, len(f"assert {what} == "))
    yield f"assert {what} == {first}"
    yield from rest


def _literal(value: object, taken: int = 0) -> list[str]:
    """As it is written in Python, on one line where that is wide enough."""
    short = _on_one_line(value)
    if taken + len(short) <= WIDTH or not value or not isinstance(value, list | dict):
        return [short]
    if isinstance(value, dict):
        parts = [(f"{_text(str(name))}: ", item) for name, item in value.items()]
    else:
        parts = [("", item) for item in value]
    lines = ["{" if isinstance(value, dict) else "["]
    for before, item in parts:
        first, *rest = _literal(item, 8 + len(before))
        block = [before + first, *rest]
        lines += [f"    {line}" for line in block[:-1]] + [f"    {block[-1]},"]
    return [*lines, "}" if isinstance(value, dict) else "]"]


def _on_one_line(value: object) -> str:
    if isinstance(value, str):
        return _text(value)
    if isinstance(value, dict):
        return "{" + ", ".join(f"{_text(str(k))}: {_on_one_line(v)}" for k, v in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_on_one_line, value)) + "]"
    if isinstance(value, tuple):
        return "(" + ", ".join(map(_on_one_line, value)) + ")"
    return repr(value)


def _text(text: str) -> str:
    """A literal in double quotes; what cannot be seen is written out."""
    return f'"{"".join(map(_character, text))}"'


def _character(character: str) -> str:
    if character in '"\\':
        return f"\\{character}"
    return character if character.isprintable() else character.encode("unicode_escape").decode()


def telling_words(turn: TurnAgain) -> list[str]:
    """What the reply says that was not in the question: the words it shares with what was found, known or
    done first; of equals the longest."""
    asked = _stems(turn.trace.summary.said)
    results = (str(tool.result) for tool in turn.tools)
    known = [turn.prompt.get(section, "") for section in ("person", "summary", "documents")]
    brought = _stems(" ".join([*turn.found, *results, *turn.to_remember, *known]))
    candidates = [
        word
        for word in dict.fromkeys(re.findall(r"\w{3,}", turn.reply))
        if (stems := _stems(word)) and not stems & asked
    ]
    order = sorted(candidates, key=lambda word: (not _stems(word) & brought, -len(word)))
    return order[:TELLING] or ([turn.reply.split()[0]] if turn.reply.split() else [])


def _stems(text: str) -> frozenset[int]:
    vector = words.query(text)
    return frozenset(vector.indices) if vector is not None else frozenset()


def _name(said: str) -> str:
    """As an identifier that can be typed: accents go, and so does what is no letter or digit of ASCII."""
    plain = unicodedata.normalize("NFKD", said.lower()).encode("ascii", "ignore").decode()
    return "_".join(re.findall(r"[a-z0-9]+", plain))[:SHOWN].strip("_") or "the_turn"


def _in_docstring(text: str) -> str:
    shown = "".join(c if c.isprintable() else " " for c in text)
    return shown.replace("\\", "\\\\").replace('"', "'")
