"""The conversation of `prompt.py`: what the person says, made of building blocks, and the scripted models."""

import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
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

KIN = "Noa Théo Yael Omar Inès Ruth Karim Lena Dov Salma Jonas Mira".split()
TOWNS = "Lyon Haifa Ghent Porto Turin Bergen Jaffa Nantes Cork Graz".split()
FACTS = {
    "en": """\
{who} restores old violins in {town}
{who} adopted {n} cats in {town}
{who} broke a wrist climbing near {town}
{who} keeps {n} hives of bees on a roof in {town}
{who} is allergic to peanuts since the trip to {town}""",
    "fr": """\
{who} a ouvert une boulangerie à {town}
{who} cherche un appartement de {n} m² à {town}""",
    "he": """\
{who} למדה לנגן בצ'לו ב-{town}
{who} עברה לגור ב-{town} עם {n} כלבים""",
}
CHAT = {
    "en": """\
We talked about {town} half the evening, and nobody could agree on the train.
{who} called again, this time about the garden and the {n} tomato plants.
Do you think {n} days are enough for {town}?
The landlord wants an answer by Friday, and I still have doubts.
What did I tell you about {who}?""",
    "fr": """\
Hier soir j'ai dîné avec {who} et nous avons parlé de {town}.
Tu te souviens de ce que je t'ai dit sur {who} ?
Il me reste {n} jours pour rendre le dossier.""",
    "he": """\
אתמול דיברתי עם {who} על הנסיעה ל-{town}.
נשארו לי {n} ימים להגיש את הטופס.""",
}
REPLIES = {
    "en": """\
That sounds like a long week.
How is {who} taking it?
{n} days in {town} are tight, and you would still see the old town.""",
    "fr": """\
Je comprends que tu hésites.
Et {who}, qu'en pense-t-il ?""",
    "he": """\
זה נשמע כמו שבוע ארוך.
ומה {who} חושבת על זה?""",
}
DIGEST = """\
Maya weighs the job in {town} against staying near {who}, decided to answer within {n} days, and wants to \
see the flat and the school there once more before she signs anything.
Maya et {who} iront à {town} au printemps pour {n} jours; les billets et la chambre restent à réserver.
מאיה החליטה לנסוע ל-{town} עם {who} בעוד {n} ימים, אחרי שתסיים את הקורס, ועוד לא הזמינה כרטיסים ומלון."""
TODO = """\
Book the train to {town} for {who}
Call {who} about the {n} boxes in {town}
Send {who} the papers from {town}"""
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
    fact = _phrase(FACTS[tongue], chance)
    text = " ".join([f"{fact}.", *(_phrase(CHAT[tongue], chance) for _ in range(length - 1))])
    reply = " ".join(_phrase(REPLIES[tongue], chance) for _ in range(1 + length // 2))
    calls: list[tuple[str, dict[str, Any]]] = []
    if n % 4 == 0:
        calls.append(("search_memories", {"query": _phrase("{who} in {town}", chance)}))
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
    return _phrase(TODO, Random(n))


def _noted(n: int, fact: str) -> dict[str, Any]:
    """A summary that grows to forty sentences, newest first, of which few are kept; and what is new."""
    where = _phrase("to see {town} with {who}", Random(n))
    pairs = [TOLD[n]] if n in TOLD else [(OFTEN[n % 15], where)] if n % 15 in OFTEN else []
    importance = ("high", "medium")[n % 4 // 2]
    new = {"text": fact, "importance": importance, "tags": ["maya"]}
    return {
        "summary": "\n".join(_phrase(DIGEST, Random(m)) for m in range(n, max(0, n - 40), -1)),
        "new_facts": [new] if n % 2 else [],
        "new_preferences": [{"key": key, "value": value} for key, value in pairs],
        "task_updates": [{"id": None, "description": todo(n), "status": "open"}] if n % 9 == 2 else [],
    }


def _phrase(choices: str, chance: Random) -> str:
    chosen = chance.choice(choices.splitlines())
    return chosen.format(who=chance.choice(KIN), town=chance.choice(TOWNS), n=chance.randint(2, 90))


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
        shown = re.search(r"\[FACT\].*\[(\w{8})\]$", self.asked[-1][0], re.MULTILINE)
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
