"""Two hundred turns of four people in private and in two channels: each replays the same, whatever happened
since. What shows something forgotten has nothing to replay, and is counted apart."""

import json
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from agents.testing import function_call
from scripted_model import AnsweringModel

from agent.errors import HachiError
from agent.replay.replay import replay
from agent.tracing.filters import TraceFilter
from hachi import Companion

TURNS, REPLAYED = 260, 200
PEOPLE, PLACES = ("ana", "ben", "cleo", "ana", "dora"), (None, "acme/general", None, "acme/random")
TOPICS = ("garden", "sister", "piano", "boat", "school", "dog", "knee", "Lisbon")


class Script:
    """A different turn each time: with a search, with two at once, with something to remember, with a task,
    with a document, with an answer that is no JSON, with a server that fails, with none of it."""

    def __init__(self) -> None:
        self.turn, self.step = -1, 0

    def next(self) -> None:
        self.turn, self.step = self.turn + 1, 0

    def __call__(self, question: str) -> Any:
        self.step += 1
        if self.turn % 23 == 22:
            return ConnectionError("the cable is out")
        calls = self._calls() if self.step == 1 else []
        items = [function_call(name, given, call_id=f"c{n}") for n, (name, given) in enumerate(calls)]
        return items or self._answer()

    def _calls(self) -> list[tuple[str, dict[str, Any]]]:
        topic = TOPICS[self.turn % len(TOPICS)]
        fact = {"content": f"Ana's {topic} was visited {self.turn} times", "subjects": ["ana", topic.lower()]}
        task = {"id": None, "description": f"water the {topic} {self.turn}", "status": "open"}
        return [
            [("search_memories", {"query": f"what about the {topic}?"})],
            [("remember", fact | {"ttl": None})],
            [("search_memories", {"query": topic}), ("get_recent_memories", {"limit": 4})],
            [("update_task", task)],
            [("search_memories", {"query": "what did we talk about?"}), ("remember", fact | {"ttl": "7d"})],
            [("search_knowledge", {"query": f"how deep is the {topic}"})],
            [],
            [("search_memories", {"query": ""})],
            [("make_coffee", {}), ("search_memories", "no arguments")],
        ][self.turn % 9]

    def _answer(self) -> str:
        kept = {"content": f"Ana told of number {self.turn}", "subjects": ["ana"], "ttl": None}
        whole = {"message": f"Number {self.turn} it is.", "memories": [kept] if self.turn % 5 == 0 else []}
        return json.dumps(whole) if self.turn % 11 else f"Number {self.turn}, in plain words."


async def test_two_hundred_turns_are_the_same_again(
    open_pet: Callable[..., Awaitable[Companion]], clock: Any, tmp_path: Path
) -> None:
    script = Script()
    pet = await open_pet(given=AnsweringModel(then=script))
    failed = 0
    for n in range(TURNS):
        script.next()
        clock.advance(minutes=7)
        if n % 20 == 10:
            await pet.documents.add(f"{n}.md", f"The {TOPICS[n % 8]} is {n} metres deep.", user=None)
        said = f"tell me of the {TOPICS[n % len(TOPICS)]}, number {n}?"
        try:
            await pet.respond(said, user=PEOPLE[n % 5], place=PLACES[n % 4])
        except HachiError:
            failed += 1
        if n % 25 == 24:
            await pet.settle()
            for memory in await pet.memories.list(user="dora", limit=1):
                await pet.memories.forget(memory.id, user="dora")
            await pet.admin.purge()

    await pet.settle()
    found = await pet.traces.list(TraceFilter(), clock(), TURNS)
    traces = [await pet.traces.get(one.id, clock()) for one in found if one.content == "kept"]
    changed = {}
    for trace in traces:
        replayed = await replay(pet, trace)
        if not replayed.same:
            changed[trace.summary.said] = replayed.differences[0]

    assert failed == TURNS // 23
    assert len(found) == TURNS
    assert REPLAYED <= len(traces) < TURNS
    assert changed == {}
