"""The story of `prompt.py`, built from templates, and its scripted models."""

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random
from typing import Any

from agents.testing import assistant_message, function_call
from harness import Scripted

START, DAYS = datetime(2026, 1, 5, 8, tzinfo=UTC), 90
PEOPLE, PLACES = ("maya", "ben", "cleo", "dov"), ("acme/general", "acme/garden")
GOES_ON = 0.12
"""The probability that a person writes again within minutes; otherwise days pass."""
TONGUES, LENGTHS = ["en"] * 8 + ["fr", "he"], [1] * 10 + [2] * 4 + [4] * 3 + [8] * 2 + [25]
VITAL = "{user} is allergic to peanuts"
"""A person says this first in each conversation; each later prompt of theirs there must contain it."""

_TEXTS = json.loads((Path(__file__).parent / "data/prompt_world.json").read_text(encoding="utf-8"))
"""What people say, by language, and what models answer: templates for a person, a town, a number."""
ONCE = {1: ("name", "Maya"), 2: ("location", "Porto"), 5: ("tone", "casual"), 9: ("answer_length", "short")}
OFTEN = {4: "conversation_themes", 8: "other_notes", 12: "goals"}


@dataclass(frozen=True)
class Said:
    """A turn: who says what, and how the models react."""

    number: int
    at: datetime
    user: str
    place: str | None
    fact: str
    text: str
    calls: Sequence[tuple[str, dict[str, Any]]]
    reply: str
    importance: float = 0.6

    @property
    def talk(self) -> str:
        return f"{self.place or 'private'} {self.user}"

    @property
    def corrects(self) -> bool:
        return self.number % 4 == 2

    @property
    def remembered(self) -> bool:
        """Return whether the answer stores the fact. In every other turn a consolidation finds it."""
        return self.corrects or self.number % 5 == 1 or self.importance > 0.6


def story(turns: int) -> Iterator[Said]:
    """Yield the turns, always the same: in private and in two places, over `DAYS` days for 65 of them."""
    chance = Random(11)
    talks = [*((user, None) for user in PEOPLE), *((None, place) for place in PLACES)]
    at, met, said = START, set[str](), None
    for n in range(1, turns + 1):
        if said is not None and chance.random() < GOES_ON:
            at, user, place = at + timedelta(minutes=chance.randint(2, 20)), said.user, said.place
        else:
            at += timedelta(days=DAYS / 65 / (1 - GOES_ON) * chance.uniform(0.2, 1.8))
            alone, place = chance.choice(talks)
            user = alone or chance.choice(PEOPLE)
        said = _turn(n, at, user, place)
        if said.talk not in met:
            vital = VITAL.format(user=user)
            said = replace(said, fact=vital, text=f"{vital}.", importance=0.9)
        met.add(said.talk)
        yield said


def _turn(n: int, at: datetime, user: str, place: str | None) -> Said:
    chance = Random(n)
    tongue, length = chance.choice(TONGUES), chance.choice(LENGTHS)
    fact = _phrase(_TEXTS["facts"][tongue], chance)
    text = " ".join([f"{fact}.", *(_phrase(_TEXTS["chat"][tongue], chance) for _ in range(length - 1))])
    reply = " ".join(_phrase(_TEXTS["replies"][tongue], chance) for _ in range(1 + length // 2))
    calls: list[tuple[str, dict[str, Any]]] = []
    if n % 4 == 0:
        calls.append(("search_memories", {"query": _phrase(["{who} in {town}"], chance)}))
    if n % 7 == 5:
        due = (at + timedelta(days=3)).isoformat()
        calls.append(("update_task", {"id": None, "description": todo(n), "status": "open", "due": due}))
    if n % 21 == 20:
        calls.append(("update_task", {"id": None, "description": todo(n - 1), "status": "done"}))
    return Said(n, at, user, place, fact, text, calls, reply)


def todo(n: int) -> str:
    return _phrase(_TEXTS["todo"], Random(n))


def _phrase(choices: Sequence[str], chance: Random) -> str:
    chosen = chance.choice(choices)
    return chosen.format(
        who=chance.choice(_TEXTS["kin"]), town=chance.choice(_TEXTS["towns"]), n=chance.randint(2, 90)
    )


class Answering(Scripted):
    """A model that records its requests since `begin`, as they are sent: (system message, input, tools)."""

    def __init__(self) -> None:
        super().__init__(self._asked_for)

    def begin(self, said: Said) -> None:
        self.said = said
        self.asked: list[tuple[str, list[Any], str]] = []

    def _asked_for(self, system: str, items: list[Any], tools: list[Any]) -> Any:
        self.asked.append((system, items, _written(tools)))
        return self.answer()

    def answer(self) -> Any:
        """Return the answer to the last request."""
        step, said = len(self.asked) - 1, self.said
        if step < len(said.calls):
            name, arguments = said.calls[step]
            return function_call(name, arguments, call_id=f"call-{step}")
        shown = re.findall(r"\[FACT\] (.*) \(.*\[(\w{8})\]$", str(self.asked[0][1][-1]["content"]), re.M)
        old = next((id for text, id in shown if "peanuts" not in text), None) if said.corrects else None
        memory = {
            "content": said.fact,
            "subjects": [said.user],
            "importance": said.importance,
            "replaces": old,
        }
        return assistant_message(
            json.dumps({"message": said.reply, "memories": [memory] if said.remembered else []})
        )


class Consolidating(Answering):
    """A model that finds the facts in the messages of its request."""

    def __init__(self) -> None:
        super().__init__()
        self._told: list[Said] = []

    def begin(self, said: Said) -> None:
        super().begin(said)
        self._told.append(said)

    def answer(self) -> Any:
        question = self.asked[-1][1][0]["content"]
        lines = re.findall(r'^> \[.*?\] \((\d+)\) "[^"]*": (.*)$', question, re.M)
        read = [(int(n), said) for n, text in lines for said in self._told if text.startswith(said.fact)]
        found: dict[str, Any] = {"new_facts": [], "new_preferences": [], "task_updates": []}
        for number, said in read:
            self._find(found, said, [number])
        found["summary"] = _summary(max((said.number for _, said in read), default=1))
        if '"memory_summary"' in question:
            found["memory_summary"] = found["summary"]
        return assistant_message(json.dumps(found))

    @staticmethod
    def _find(found: dict[str, list[Any]], said: Said, cited: list[int]) -> None:
        n, where = said.number, _phrase(["to see {town} with {who}"], Random(said.number))
        if n % 2 and not said.remembered:
            fact = {"text": said.fact, "importance": "medium", "tags": [said.user], "messages": cited}
            found["new_facts"].append(fact)
        for key, value in [ONCE[n]] if n in ONCE else [(OFTEN[n % 15], where)] if n % 15 in OFTEN else []:
            found["new_preferences"].append({"key": key, "value": value, "messages": cited})
        if n % 9 == 2:
            task = {"id": None, "description": todo(n), "status": "open", "messages": cited}
            found["task_updates"].append(task)


def _summary(n: int) -> str:
    """Return a summary that grows to forty sentences, newest first; few of them stay."""
    return "\n".join(_phrase(_TEXTS["digest"], Random(m)) for m in range(n, max(0, n - 40), -1))


def _written(tools: Iterable[Any]) -> str:
    """Return the tools as JSON, as providers receive them; how a model sees them is not known."""
    sent = [
        {"name": tool.name, "description": tool.description, "parameters": tool.params_json_schema}
        for tool in tools
    ]
    return json.dumps(sent, ensure_ascii=False) if sent else ""
