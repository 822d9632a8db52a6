"""What a program passes is checked before anything is stored. That every surface says the same is tested in
`tests/agent/surfaces/test_refusals.py`."""

import inspect
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime
from itertools import product
from operator import attrgetter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pydantic import RootModel

import hachi.sync
from agent.tracing.store.filters import TraceFilter
from agent.types.client import ClientTurn, MessageItem
from agent.types.options import OpenOptions, TurnOptions
from hachi import BadInput, HachiError, Place, StoreUnavailable
from hachi.testing import AnsweringModel, IsolatedSettings

NAIVE, AWARE = datetime.fromisoformat("2026-01-10"), datetime(2026, 1, 10, tzinfo=UTC)


class Numbers(RootModel[list[int]]):
    """Its JSON is a list."""


GROUPS = "memories tasks documents people conversations sessions admin traces reminders".split()


@pytest.fixture(scope="module")
def pet(tmp_path_factory: pytest.TempPathFactory) -> Iterator[hachi.sync.Companion]:
    home = IsolatedSettings(home=tmp_path_factory.mktemp("home"), embedder="bundled")
    with hachi.sync.Companion.open(home, model=AnsweringModel(), periodic_jobs=False) as opened:
        yield opened


def methods_of(pet: hachi.sync.Companion) -> dict[str, Any]:
    """Every public method of the companion and its groups, by its dotted name."""
    found = {name: getattr(pet.inner, name) for name in ("respond", "stream", "learn", "preview_learn")}
    for group in GROUPS:
        service = getattr(pet.inner, group)
        public = [name for name in dir(type(service)) if name[0] != "_"]
        found |= {
            f"{group}.{name}": one for name in public if inspect.ismethod(one := getattr(service, name))
        }
    return found


USUAL: dict[str, Any] = {
    "user": "ana",
    "id": "abcd1234",
    "now": AWARE,
    "moment": AWARE,
    "paths": ["/nowhere"],
    "place": "acme",
    "parsed": None,
    "sent": None,
    "calls": 1,
    "prefix": "slack:",
    "send": None,
}
"""What arguments without a default are given; "x" where they are not here."""
ODD = st.one_of(
    st.sampled_from([None, True, b"bytes", object(), int, [None], [["x"]], {"a": 1}, (), NAIVE, AWARE]),
    st.sampled_from([Path("x"), float("nan"), "x" * 300_000, "a/" * 5_000, [b"x"]]),
    st.integers(),
    st.floats(),
    st.text(max_size=9),
    st.lists(st.text(max_size=3), max_size=2),
)


def test_only_errors_of_hachis_leave_the_api_whatever_is_passed(pet: hachi.sync.Companion) -> None:
    methods = methods_of(pet)
    assert len(methods) > 60

    @settings(max_examples=500, deadline=None, suppress_health_check=list(HealthCheck))
    @given(st.data(), st.sampled_from([*methods]))
    def holds(data: st.DataObject, called: str) -> None:
        parameters = [*inspect.signature(methods[called]).parameters.values()]
        needed = {one.name: USUAL.get(one.name, "x") for one in parameters if one.default is one.empty}
        options = [*TurnOptions.__annotations__] if needed.pop("options", None) else []
        needed.pop("changes", None)
        name = data.draw(
            st.sampled_from([one.name for one in parameters] + options + ["no_such"]), "argument"
        )
        try:
            result = methods[called](**needed | {name: data.draw(ODD, "value")})
            if inspect.isawaitable(result):
                pet.run(result)  # type: ignore[arg-type]
        except HachiError as error:
            told, lower = str(error), isinstance(error, StoreUnavailable)
            assert ("\n" in told, 0 < len(told) < 5000, lower) == (False, True, False), told

    holds()


def test_what_a_companion_cannot_be_opened_with_is_refused(home: Path) -> None:
    odd_values = (7, "x", [5], {}, object(), lambda: NAIVE)
    for option, odd in product([*OpenOptions.__annotations__, "no_such"], odd_values):
        if (option, odd) == ("surface", "x"):
            continue
        with pytest.raises(BadInput, match=rf"^{option}: "):
            hachi.sync.Companion.start(IsolatedSettings(home=home), **{option: odd})  # type: ignore[arg-type]


LIMIT = "limit: {} is not a whole number from 1 to 10000"


@pytest.mark.parametrize(
    ("method", "arguments", "told"),
    [
        ("remember", {"content": None}, "content: None is not text"),
        ("remember", {"type": ["fact"]}, "type: ['fact'] is not one of"),
        ("remember", {"importance": True}, "importance: True is not a number"),
        ("remember", {"subjects": [7]}, "subjects: [7] is not a list of texts"),
        ("remember", {"ttl": 7}, "ttl: 7 is not a duration"),
        ("remember", {"said_at": NAIVE}, "said_at: '2026-01-10 00:00:00' needs a time zone"),
        (
            "remember",
            {"said_at": datetime(1, 1, 1, tzinfo=UTC)},
            "said_at: '0001-01-01 00:00:00+00:00' is not b",
        ),
        ("remember", {"everybody": "no"}, "everybody: 'no' is neither True nor False"),
        ("remember", {"place": 7}, "place: 7 is not the name of a place"),
        ("remember", {"place": "a/" * 21}, "place: more than 20 places inside each other"),
        ("remember", {"user": "x" * 2001}, "user: longer than 2,000 characters; say it in fewer words"),
        ("memories.remember_many", {"facts": [{"content": "x"}, {}]}, "content: it is missing"),
        ("memories.remember_many", {"facts": [{"content": "x", "hue": 1}]}, "hue: there is no such argument"),
        ("memories.remember_many", {"facts": [b"x"]}, "facts.0: b'x' is not a mapping of names to values"),
        ("memories.list", {"user": None}, "user: None is not a user; pass the user's id as text"),
        ("memories.list", {"usr": "ana"}, "usr: there is no such argument"),
        ("conversations.messages", {"limit": 0}, LIMIT.format(0)),
        ("conversations.messages", {"before": "x"}, "there is no message 'x' here"),
        ("conversations.import_", {"parsed": {}}, "parsed: {} is not a ParsedImport"),
        ("documents.remove", {"what": "two\nlines"}, "no such document here: two lines; "),
        ("admin.reindex", {"progress": 7}, "progress: 7 is not a function"),
        ("respond", {"text": "x", "model": 5}, "model: 5 is not a Model of the Agents SDK"),
        ("respond", {"text": "x", "timeout": 0}, "timeout: 0 is not a number of seconds above 0"),
        ("respond", {"text": "x", "max_turns": 2.5}, "max_turns: 2.5 is not a whole number from 1 to 50"),
        ("respond", {"text": "x", "answer": int}, "answer: <class 'int'> cannot be asked for"),
        (
            "respond",
            {"text": "x", "answer": Numbers},
            "answer: <class 'tests...ents.Numbers'> cannot be asked for: its JSON is no object",
        ),
        ("respond", {"text": "x", "client": {}}, "client: {} is not a ClientTurn"),
        (
            "respond",
            {"text": "x", "client": ClientTurn(shown=5)},
            "client.shown: input should be a valid str",
        ),  # type: ignore[arg-type]
        (
            "respond",
            {"text": "x", "client": ClientTurn((MessageItem("system", "x"),))},  # type: ignore[arg-type]
            "client.history.0.MessageItem.role: input should be 'user' or 'assistant'",
        ),
        ("respond", {"text": "x", "ending": int}, "ending: <class 'int'> is not an async function"),
        ("respond", {"text": "x", "user": "a\x00b"}, "user: pass one line of printable"),
        ("respond", {"text": "x", "conversation": " "}, "conversation: pass one line of printable"),
        ("respond", {"text": "x", "conversation": ".."}, "conversation: pass one line of printable"),
        ("respond", {"text": "x", "user": " . "}, "user: pass one line of printable"),
        ("memories.search", {"query": "x", "place": "acme/half \ud83d"}, "place: pass one line of printable"),
        (
            "memories.search",
            {"query": "x", "place": Place(("acme", ""))},
            "place: pass one line of printable",
        ),
    ],
)
def test_what_an_argument_cannot_be_is_told(
    pet: hachi.sync.Companion, method: str, arguments: dict[str, Any], told: str
) -> None:
    user = {} if method.split(".")[0] in ("admin", "traces", "reminders") else {"user": "ana"}
    content = {"content": "Ana skis"} if method in ("remember", "memories.update") else {}
    before = pet.memories.list(user="ana")
    with pytest.raises((BadInput, hachi.NotFound)) as raised:
        pet.run(attrgetter(method)(pet.inner)(**user | content | arguments))
    assert str(raised.value).startswith(told)
    assert pet.memories.list(user="ana") == before


def test_a_filter_of_traces_reads_its_fields(pet: hachi.sync.Companion) -> None:
    odd_values = (None, float("nan"), object(), NAIVE, [None], "half \ud83d")
    for field, odd in product(TraceFilter.__dataclass_fields__, odd_values):
        with suppress(BadInput):
            wanted = TraceFilter(**{"user": "nobody", "row": "none", field: odd})
            assert pet.traces.list(wanted) == []


def test_a_call_that_holds_what_no_database_keeps_is_traced(
    pet: hachi.sync.Companion, caplog: pytest.LogCaptureFixture
) -> None:
    for half in ({"user": "half \ud83d"}, {"user": "ana", "half \ud83d": 1}):
        with pytest.raises(BadInput):
            pet.run(pet.inner.remember("x", **half))
    pet.settle()
    assert caplog.messages == []
