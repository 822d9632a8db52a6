"""What a program passes is checked before anything is stored. That every surface says the same is tested in
`tests/agent/surfaces/test_refusals.py`."""

import inspect
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from operator import attrgetter
from typing import Any

import pytest

from agent.companion import Companion
from agent.errors import BadInput, HachiError
from agent.tracing.filters import TraceFilter
from agent.tracing.store.traces import Traces
from agent.wiring.services import Services

OpenPet = Callable[..., Awaitable[Any]]

NAIVE = datetime.fromisoformat("2026-01-10")

WRONG = [
    ({"content": None}, "content: None is no text"),
    ({"type": ["fact"]}, "type: ['fact'] is not one of"),
    ({"importance": True}, "importance: True is no number"),
    ({"importance": "0.5"}, "importance: '0.5' is no number"),
    ({"subjects": [7]}, "subjects: [7] is no list of texts"),
    ({"subjects": None}, "subjects: None is no list of texts"),
    ({"ttl": 7}, "ttl: 7 is no length of time"),
    ({"said_at": NAIVE}, "said_at: '2026-01-10 00:00:00' needs a time zone"),
    ({"said_at": datetime(1, 1, 1, tzinfo=UTC)}, "said_at: '0001-01-01 00:00:00+00:00' is not between"),
    ({"said_at": "soon"}, "said_at: 'soon' is no ISO 8601 time"),
    ({"everybody": "no"}, "everybody: 'no' is neither True nor False"),
    ({"place": 7}, "place: 7 is no name of a place"),
]


@pytest.mark.parametrize(("given", "told"), WRONG, ids=[told for _, told in WRONG])
async def test_a_value_that_cannot_be_used_is_refused_and_named(
    open_pet: OpenPet, given: dict[str, Any], told: str
) -> None:
    pet = await open_pet()
    known = await pet.remember("Ana skis", user="ana")
    arguments = {"content": "Ana swims", "user": "ana"} | given

    for refused in (pet.remember(**arguments), pet.memories.update(known.id, **arguments)):
        with pytest.raises(BadInput) as raised:
            await refused
        assert str(raised.value).startswith(told)

    assert [memory.content for memory in await pet.memories.list(user="ana")] == ["Ana skis"]


async def test_a_fact_of_many_is_checked_like_one_before_any_is_stored(open_pet: OpenPet) -> None:
    pet = await open_pet()
    for wrong, told in (
        ({"content": "Ana swims", "colour": "red"}, "'colour': a memory has no such field"),
        ({"importance": 0.5}, "content: it is missing"),
    ):
        with pytest.raises(BadInput, match=told):
            await pet.memories.remember_many([{"content": "Ana skis"}, wrong], user="ana")
    with pytest.raises(BadInput, match="colour: a memory has no such field"):
        await pet.memories.update("abcd1234", "Ana skis", user="ana", colour="red")
    assert await pet.memories.list(user="ana") == []


AWARE = datetime(2026, 1, 10, tzinfo=UTC)
ODD: list[Any] = [
    *(None, -1, 0, 3.5, float("nan"), True, 10**25, "", "x", "half \ud83d", "\x00", b"bytes", object(), int),
    *([], ["x"], [None], {}, {"a": 1}, NAIVE, AWARE),
]
USUAL = {
    "user": "ana",
    "id": "abcd1234",
    "now": AWARE,
    "moment": AWARE,
    "paths": ["/nowhere"],
    "place": "acme",
}
"""What arguments without a default are given; "x" where they are not here."""
GROUPS = ("memories", "tasks", "documents", "people", "conversations", "admin")
METHODS = {
    f"{group}.{name}": (group, method)
    for group, service in {
        **{group: vars(Services)["__annotations__"][group] for group in GROUPS},
        "traces": Traces,
        "": Companion,
    }.items()
    for name, method in vars(service).items()
    if inspect.iscoroutinefunction(method) and not name.startswith("_")
}
for name in ("write", "showing", "forget", "prune", "places_of", "erase", "after"):
    del METHODS[f"traces.{name}"]  # which the recorder and the erasure call
for name in ("start", "close", "runtime", "settle"):
    METHODS.pop(f".{name}", None)


@pytest.mark.parametrize("called", METHODS)
async def test_no_lower_error_leaves_the_api_whatever_is_passed(open_pet: OpenPet, called: str) -> None:
    """Each argument of each method in turn is an odd value; then it works, or a line says why not."""
    pet = await open_pet()
    group, method = METHODS[called]
    service = getattr(pet, group) if group else pet
    parameters = [*inspect.signature(method).parameters.values()][1:]
    needed = {one.name: USUAL.get(one.name, "x") for one in parameters if one.default is one.empty}
    needed = {
        name: value
        for name, value in needed.items()
        if name not in ("options", "changes", "given", "narrowed")
    }
    refusals = []
    for name in [one.name for one in parameters if one.kind is not one.VAR_KEYWORD]:
        for odd in ODD:
            try:
                await method(service, **needed | {name: odd})
            except HachiError as error:
                refusals.append(str(error))
    assert [line for line in refusals if not line or "\n" in line] == []


@pytest.mark.parametrize(
    ("method", "arguments", "told"),
    [
        ("memories.list", {"limit": -1}, "limit: -1 is no whole number from 1 to 10000"),
        ("memories.list", {"user": None}, "say who the user is"),
        ("conversations.messages", {"limit": 0}, "limit: 0 is no whole number"),
        ("conversations.learned_in", {"conversation": "x", "limit": 2.5}, "limit: 2.5 is no whole number"),
        ("conversations.written_since", {"moment": NAIVE}, "moment: '2026-01-10 00:00:00' needs a time zone"),
        ("conversations.import_", {"parsed": {}}, "parsed: {} is no ParsedImport"),
        ("people.erase", {"user": ""}, "the user needs a name"),
        ("admin.prune_traces", {"before": NAIVE}, "before: '2026-01-10 00:00:00' needs a time zone"),
        ("admin.reindex", {"progress": 7}, "progress: 7 is no function"),
        ("admin.give_back", {"rewrite": 1}, "rewrite: 1 is neither True nor False"),
        ("traces.list", {"wanted": TraceFilter(), "now": AWARE, "limit": -1}, "limit: -1 is no whole number"),
        ("traces.get", {"id": None, "now": AWARE}, "id: None is no text"),
        ("respond", {"text": 7}, "text: 7 is no text"),
        ("respond", {"text": "x", "earlier": [("user", 7)]}, "earlier: 7 is no text"),
    ],
)
async def test_what_an_argument_cannot_be_is_told(
    open_pet: OpenPet, method: str, arguments: dict[str, Any], told: str
) -> None:
    pet = await open_pet()
    call = attrgetter(method)(pet)
    user = {} if method.split(".")[0] in ("admin", "traces") else {"user": "ana"}
    with pytest.raises(BadInput) as raised:
        await call(**user | arguments)
    assert str(raised.value).startswith(told)
