"""A fixture and a pytest file made of a trace: the test passes now and fails when behaviour changes.

The model's outputs are the recorded ones. The test checks what Hachi did with them: which tools ran and what
they answered, what was found and for whom, what was decided, where the reply went. Of the reply it checks the
words that matter, not the wording.
"""

import ast
import re
import tempfile
import unicodedata
from collections.abc import Iterator

from agent.companion import Companion
from agent.replay.fixture import Fixture, fixture_of
from agent.replay.replay import check_replayable
from agent.replay.run import sandbox_settings
from agent.replay.sandbox import copy_memories
from agent.replay.testing import TurnAgain, taken_again
from agent.tracing.compare import differences
from agent.tracing.trace import Trace
from memory.audience import Place
from memory.index import bm25

WIDTH = 100
"""Columns of the generated file."""
REPLY_WORDS = 3
"""Words of the reply that the test asks for."""
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
    """The two files, by name. Raises BadInput if the turn cannot be replayed."""
    check_replayable(trace)
    fixture = await _fixture(pet, trace)
    turn = await taken_again(fixture)
    stem = f"trace_{trace.summary.short}"
    return {f"test_{stem}.py": _source(trace, turn, f"{stem}.json"), f"{stem}.json": fixture.to_json()}


async def _fixture(pet: Companion, trace: Trace) -> Fixture:
    with tempfile.TemporaryDirectory(prefix="hachi-test-", ignore_cleanup_errors=True) as folder:
        settings = sandbox_settings(pet.settings, folder)
        async with Companion.open(settings, clock=pet.clock, upkeep=False) as sandbox:
            await copy_memories(pet, trace, sandbox, index=False)
            return await fixture_of(pet, sandbox, trace)


def _source(trace: Trace, turn: TurnAgain, fixture: str) -> str:
    summary = trace.summary
    said = " ".join(summary.said.split())[:NAME_LENGTH]
    title = f"{summary.user} in {Place.of_key(summary.place)} on {summary.started_at:%Y-%m-%d}: {said}"
    lines = list(_assertions(turn))
    if changed := next(iter(differences(trace, turn.trace)), None):
        lines.insert(0, f"# When this was made it was not as recorded: {changed.where} {changed.what}.")
    source = _FILE.format(
        title=_docstring(title),
        short=summary.short,
        fixture=fixture,
        name=_identifier(said),
        body="\n".join(f"    {line}" if line else "" for line in lines),
    )
    ast.parse(source)  # raises now rather than when the test is run
    return source


def _assertions(turn: TurnAgain) -> Iterator[str]:
    yield ""
    yield from _equals("turn.called", turn.called)
    for place, tool in enumerate(turn.tools):
        name = f"turn.tools[{place}]"
        yield from _equals(f"{name}.arguments", dict(tool.arguments))
        yield f"assert {name}.ok" if tool.ok else f"assert not {name}.ok"
        if not tool.ok and "error" in tool.result:
            yield from _equals(f'{name}.result["error"]', tool.result["error"])
    if turn.audience:
        yield f"assert turn.audience == {{{', '.join(map(_quoted, sorted(turn.audience)))}}}"
    if any(True for _ in turn.trace.spans("search")):
        yield from _equals("turn.found", turn.found)
    if turn.decided:
        yield from _equals("turn.decided", turn.decided)
    if turn.to_remember:
        yield from _equals("turn.to_remember", turn.to_remember)
    yield ""
    yield f"assert turn.place == {_quoted(turn.place)}"
    if turn.error:
        yield f"assert (turn.error or '').startswith({_quoted(turn.error.partition(':')[0])})"
        return
    yield "assert turn.error is None"
    for word in telling_words(turn):
        yield f"assert {_quoted(word)} in turn.reply"


def _equals(name: str, value: object) -> Iterator[str]:
    first, *rest = _literal(value, len(f"assert {name} == "))
    yield f"assert {name} == {first}"
    yield from rest


def _literal(value: object, indent: int = 0) -> list[str]:
    """A Python literal, on one line if it fits, else one line an item."""
    short = _one_line(value)
    if indent + len(short) <= WIDTH or not value or not isinstance(value, list | dict):
        return [short]
    pairs = value.items() if isinstance(value, dict) else (("", item) for item in value)
    lines = []
    for key, item in pairs:
        before = f"{_quoted(str(key))}: " if isinstance(value, dict) else ""
        first, *rest = _literal(item, 8 + len(before))
        block = [before + first, *rest]
        lines += [f"    {line}" for line in block[:-1]] + [f"    {block[-1]},"]
    opening, closing = "{}" if isinstance(value, dict) else "[]"
    return [opening, *lines, closing]


def _one_line(value: object) -> str:
    """Like `repr`, with double quotes."""
    if isinstance(value, str):
        return _quoted(value)
    if isinstance(value, dict):
        return "{" + ", ".join(f"{_quoted(str(k))}: {_one_line(v)}" for k, v in value.items()) + "}"
    if isinstance(value, list | tuple):
        opening, closing = "[]" if isinstance(value, list) else "()"
        return opening + ", ".join(map(_one_line, value)) + closing
    return repr(value)


def _quoted(text: str) -> str:
    """With everything escaped that cannot be seen."""
    return f'"{"".join(map(_character, text))}"'


def _character(character: str) -> str:
    if character in '"\\':
        return f"\\{character}"
    return character if character.isprintable() else character.encode("unicode_escape").decode()


def telling_words(turn: TurnAgain) -> list[str]:
    """Words of the reply that were not in the message: those that were also found, known or done come first,
    then the longest."""
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
    """The message as a Python name in ASCII letters and digits."""
    plain = unicodedata.normalize("NFKD", said.lower()).encode("ascii", "ignore").decode()
    return "_".join(re.findall(r"[a-z0-9]+", plain))[:NAME_LENGTH].strip("_") or "the_turn"


def _docstring(text: str) -> str:
    printable = "".join(c if c.isprintable() else " " for c in text)
    return printable.replace("\\", "\\\\").replace('"', "'")
