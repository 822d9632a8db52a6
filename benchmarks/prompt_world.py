"""The conversation of `prompt.py`: what the person says, made of building blocks, and the scripted models."""

import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random
from typing import Any

from agents.testing import assistant_message, function_call
from harness import Scripted

START = datetime(2026, 1, 5, 8, tzinfo=UTC)
WINDOW = 100
"""Turns that hold the same lengths in the same languages …"""
EVENLY = 20
"""… dealt evenly over every twenty of them."""
CORRECTION = 4
"""Of so many turns one corrects a fact, where the prompt shows one."""

_TEXTS = json.loads((Path(__file__).parent / "data/prompt_world.json").read_text(encoding="utf-8"))
"""What people say by language, and what models answer: sentences with gaps for a person, a town, a number."""
TOLD = {1: ("name", "Maya"), 2: ("location", "Porto"), 5: ("tone", "casual"), 9: ("answer_length", "short")}
OFTEN = {4: "conversation_themes", 8: "other_notes", 12: "goals"}


def _decks(items: Sequence[Any]) -> list[Any]:
    """For a hundred turns, of which every twenty hold the same in another order."""
    chance = Random(7)
    return [item for _ in range(WINDOW // EVENLY) for item in chance.sample(items, EVENLY)]


LENGTHS = _decks([1] * 10 + [2] * 4 + [4] * 3 + [8] * 2 + [25])
TONGUES = _decks(["en"] * 16 + ["fr"] * 2 + ["he"] * 2)


@dataclass(frozen=True)
class Said:
    """A turn: what the person says, what the models do about it."""

    text: str
    calls: Sequence[tuple[str, dict[str, Any]]]
    answer: dict[str, Any]
    corrects: bool
    noted: dict[str, Any]
    """What a consolidation finds in it."""


def turn(n: int) -> Said:
    """The nth turn, from 1, the same each time."""
    chance, tongue, length = Random(n), TONGUES[n % WINDOW], LENGTHS[n % WINDOW]
    fact = _phrase(_TEXTS["facts"][tongue], chance)
    text = " ".join([f"{fact}.", *(_phrase(_TEXTS["chat"][tongue], chance) for _ in range(length - 1))])
    reply = " ".join(_phrase(_TEXTS["replies"][tongue], chance) for _ in range(1 + length // 2))
    calls: list[tuple[str, dict[str, Any]]] = []
    if n % 4 == 0:
        calls.append(("search_memories", {"query": _phrase(["{who} in {town}"], chance)}))
    if n % 7 == 5:
        due = (START + timedelta(days=n)).isoformat()
        calls.append(("update_task", {"id": None, "description": todo(n), "status": "open", "due": due}))
    if n % 21 == 20:
        calls.append(("update_task", {"id": None, "description": todo(n - 1), "status": "done"}))
    corrects = n % CORRECTION == 2
    memory = {"content": fact, "subjects": ["maya"], "importance": 0.6}
    answer = {"message": reply, "memories": [memory] if corrects or n % 5 == 1 else []}
    return Said(text, calls, answer, corrects, _noted(n, fact))


def todo(n: int) -> str:
    return _phrase(_TEXTS["todo"], Random(n))


def _noted(n: int, fact: str) -> dict[str, Any]:
    """A summary that grows to forty sentences, newest first, of which few are kept; and what is new."""
    where = _phrase(["to see {town} with {who}"], Random(n))
    pairs = [TOLD[n]] if n in TOLD else [(OFTEN[n % 15], where)] if n % 15 in OFTEN else []
    importance = ("high", "medium")[n % 4 // 2]
    new = {"text": fact, "importance": importance, "tags": ["maya"]}
    return {
        "summary": "\n".join(_phrase(_TEXTS["digest"], Random(m)) for m in range(n, max(0, n - 40), -1)),
        "new_facts": [new] if n % 2 else [],
        "new_preferences": [{"key": key, "value": value} for key, value in pairs],
        "task_updates": [{"id": None, "description": todo(n), "status": "open"}] if n % 9 == 2 else [],
    }


def _phrase(choices: Sequence[str], chance: Random) -> str:
    chosen = chance.choice(choices)
    return chosen.format(
        who=chance.choice(_TEXTS["kin"]), town=chance.choice(_TEXTS["towns"]), n=chance.randint(2, 90)
    )


# The models.


class Answering(Scripted):
    """Keeps what it was asked since `begin`: (system message, input, tools), as they are sent."""

    def __init__(self) -> None:
        super().__init__(self._asked_for)

    def begin(self, said: Said) -> None:
        self.said = said
        self.asked: list[tuple[str, list[Any], str]] = []

    def _asked_for(self, system: str, items: list[Any], tools: list[Any]) -> Any:
        self.asked.append((system, items, _written(tools)))
        return self.answer()

    def answer(self) -> Any:
        """To what was asked last."""
        step, said = len(self.asked) - 1, self.said
        if step < len(said.calls):
            name, arguments = said.calls[step]
            return function_call(name, arguments, call_id=f"call-{step}")
        shown = re.search(r"\[FACT\].*\[(\w{8})\]$", str(self.asked[0][1][-1]["content"]), re.MULTILINE)
        corrected = {"replaces": shown[1]} if said.corrects and shown else {}
        return assistant_message(
            json.dumps(said.answer | {"memories": [one | corrected for one in said.answer["memories"]]})
        )


class Consolidating(Answering):
    """Finds what there is in each turn since it was last asked."""

    def __init__(self) -> None:
        super().__init__()
        self._heard: list[Said] = []

    def begin(self, said: Said) -> None:
        super().begin(said)
        self._heard.append(said)

    def answer(self) -> Any:
        question, found = self.asked[-1][1][0]["content"], dict(self.said.noted)
        for name in ("new_facts", "new_preferences", "task_updates"):
            found[name] = [one for said in self._heard for one in said.noted[name]]
        self._heard = []
        if '"memory_summary"' in question:
            found["memory_summary"] = found["summary"]
        return assistant_message(json.dumps(found))


def _written(tools: Iterable[Any]) -> str:
    """The tools as JSON, as providers are sent them; how they show them to the model they do not tell."""
    sent = [
        {"name": tool.name, "description": tool.description, "parameters": tool.params_json_schema}
        for tool in tools
    ]
    return json.dumps(sent, ensure_ascii=False) if sent else ""
