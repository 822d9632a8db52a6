"""Two hundred turns of every sort: each replays the same."""

import json
from collections.abc import Awaitable, Callable
from typing import Any

from agents.testing import function_call
from scripted_model import AnsweringModel

from agent import Companion
from agent.replay.replay import replay
from agent.tracing.filters import TraceFilter

TURNS = 200
TOPICS = ("garden", "sister", "piano", "boat", "school", "dog", "knee", "Lisbon")


class Script:
    """A different turn each time: with a search, with two at once, with something to remember, with a task,
    with a correction, with an answer that is no JSON, with none of it."""

    def __init__(self) -> None:
        self.turn, self.step = -1, 0

    def next(self) -> None:
        self.turn, self.step = self.turn + 1, 0

    def __call__(self, question: str) -> Any:
        self.step += 1
        calls = self._calls() if self.step == 1 else []
        items = [function_call(name, given, call_id=f"c{n}") for n, (name, given) in enumerate(calls)]
        return items or self._answer()

    def _calls(self) -> list[tuple[str, dict[str, Any]]]:
        topic = TOPICS[self.turn % len(TOPICS)]
        fact = {"content": f"Ana's {topic} was visited {self.turn} times", "subjects": ["ana", topic.lower()]}
        return [
            [("search_memories", {"query": f"what about the {topic}?"})],
            [("remember", fact | {"ttl": None})],
            [("search_memories", {"query": topic}), ("get_recent_memories", {"limit": 4})],
            [
                (
                    "update_task",
                    {"id": None, "description": f"water the {topic} {self.turn}", "status": "open"},
                )
            ],
            [("search_memories", {"query": "what did we talk about?"}), ("remember", fact | {"ttl": "7d"})],
            [],
            [("search_memories", {"query": ""})],
        ][self.turn % 7]

    def _answer(self) -> str:
        kept = {"content": f"Ana told of number {self.turn}", "subjects": ["ana"], "ttl": None}
        whole = {"message": f"Number {self.turn} it is.", "memories": [kept] if self.turn % 5 == 0 else []}
        return json.dumps(whole) if self.turn % 9 else f"Number {self.turn}, in plain words."


async def test_two_hundred_turns_are_the_same_again(
    open_pet: Callable[..., Awaitable[Companion]], clock: Any
) -> None:
    script = Script()
    pet = await open_pet(given=AnsweringModel(then=script))
    for n in range(TURNS):
        script.next()
        clock.advance(minutes=7)
        user, place = ("ana", "ben")[n % 3 == 2], (None, None, "acme/general")[n % 3]
        said = f"tell me of the {TOPICS[n % len(TOPICS)]}, number {n}?"
        await pet.respond(said, user=user, place=place)
        await pet.settle()

    traces = [
        await pet.traces.get(one.id, clock()) for one in await pet.traces.list(TraceFilter(), clock(), TURNS)
    ]
    changed = {}
    for trace in traces:
        replayed = await replay(pet, trace)
        if not replayed.same:
            changed[trace.summary.said] = replayed.differences[0]

    assert len(traces) == TURNS
    assert changed == {}
