"""Measure what remembering does with pairs of an existing and a new fact: ok, missed or harmful.

Without a model, each pair is stated by its own person. With rulings, one person states all existing facts,
and then each new one in a turn. If the prompt of the consolidation contains the existing fact, its scripted
model rules according to the pair's relation. So a miss is a fact that was not in the prompt, or a ruling that
was not applied. The answer stores every second fact; the consolidation finds the others.

    python benchmarks/fact_pairs.py PAIRS.jsonl [--json]

A line of the file is an object with `id`, `lang`, `relation`, `existing` and `new` (each with `content`,
`subjects` and `created_at`), `ok` (the outcomes that may happen) and `harmful` (those that lose or corrupt
something). With --json the outcome of each pair is printed too. Exit 1 if anything harmful happens, or if
more than 5 % are missed with rulings. Without a model, both facts stay active unless their words are the
same; with rulings, a contradiction must replace.
"""

import asyncio
import json
import re
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from agents.testing import assistant_message
from harness import Scripted, arguments, finish, new_companion

from hachi import Companion
from memory.records import Decision

ALLOWED_MISSES = 0.05
"""The share that may be missed with rulings. Without a model, misses are only reported."""
RULINGS = {
    "contradiction": "replaces",
    "stale_contradiction": "replaces",  # wrong: an older fact must not replace a newer one
    "refinement": "replaces",
    "paraphrase": "same",
    "exact": "same",
    "coarser": "ignore",
}
"""The scripted model's ruling by relation; other relations get none."""
TELLER = "ana"
OUTCOME = {"add": "added", "merge": "merged", "replace": "replaced", "ignore": "ignored"}
GRADES = ("ok", "missed", "harmful")
Pair = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Result:
    id: str
    lang: str
    relation: str
    outcome: str
    reason: str
    grade: str


class Ruling(Scripted):
    """A model that answers each turn, and rules in each consolidation according to the pair's relation."""

    def __init__(self) -> None:
        super().__init__(self._found)
        self.pair: Pair = {}
        self.in_answer = False
        """Whether the answer stores the new fact, and not the consolidation."""
        self.offered = False

    def _found(self, system: str, items: list[Any], _tools: list[Any]) -> Any:
        question, found = str(items[-1]["content"]), dict[str, Any](rulings=[])
        if system:
            draft = {name: self.pair["new"][name] for name in ("content", "subjects")}
            found = {"message": "I see.", "memories": [draft] if self.in_answer else []}
        elif "new_facts" in question:
            found = self._extraction(question)
        return assistant_message(json.dumps(found, ensure_ascii=False))

    def _extraction(self, question: str) -> dict[str, Any]:
        new, ruling = self.pair["new"], RULINGS.get(self.pair["relation"])
        fact = {"text": new["content"], "importance": "medium", "tags": new["subjects"], "ttl": None}
        old, stored = (_id_of(self.pair[which]["content"], question) for which in ("existing", "new"))
        self.offered = old is not None
        rulings = [{"new": stored or "#1", "old": old, "ruling": ruling}] if old and ruling else []
        return {"summary": "", "new_facts": [] if self.in_answer else [fact], "rulings": rulings}


def _id_of(content: str, prompt: str) -> str | None:
    shown = re.escape(" ".join(content.split()))
    found = re.search(rf"\] {shown} \([^)]*\) \[([^\]]+)\]", prompt)
    return found[1] if found else None


async def decide(pairs: Sequence[Pair]) -> list[Result]:
    """Return the outcome of each pair; its own person states the two facts, one after the other."""
    results = []
    async with new_companion({"judge": False}) as pet:
        for pair in pairs:
            await _tell(pet, pair["id"], pair["existing"])
            decision = await _tell(pet, pair["id"], pair["new"])
            results.append(_result(pair, OUTCOME[decision.action], decision.reason, set(pair["ok"])))
    return results


async def decide_with_rulings(pairs: Sequence[Pair]) -> list[Result]:
    """Return the outcome of each pair. One person states every existing fact, and then each new one in a turn
    with a consolidation."""
    now, model, stored, results = datetime(2000, 1, 1, tzinfo=UTC), Ruling(), dict[str, str](), []
    models: dict[str, Any] = {"model": model, "consolidation_model": model}
    async with new_companion({"trace_content": "off"}, clock=lambda: now, **models) as pet:

        async def tell_existing(pair: Pair) -> None:
            nonlocal now
            now = _said_at(pair["existing"])
            stored[pair["id"]] = str((await _tell(pet, TELLER, pair["existing"])).id)

        for pair in pairs:
            if not _stale(pair):
                await tell_existing(pair)
        for number, pair in enumerate(pairs):
            now = _said_at(pair["new"])
            model.pair, model.in_answer = pair, number % 2 == 0
            await pet.respond(pair["new"]["content"], user=TELLER, conversation=pair["id"])
            if _stale(pair):
                await tell_existing(pair)
            await pet.settle()
            outcome = await _outcome(pet, pair, stored[pair["id"]])
            reason = "" if model.offered else "the existing fact was not offered"
            ok = {"replaced"} if pair["relation"] == "contradiction" else set(pair["ok"])
            results.append(_result(pair, outcome, reason, ok))
    return results


def _said_at(fact: dict[str, Any]) -> datetime:
    return datetime.fromisoformat(fact["created_at"])


def _stale(pair: Pair) -> bool:
    """Return whether the new fact was said before the existing one. Its message then waits for the
    consolidation while the existing one is stated."""
    return _said_at(pair["new"]) < _said_at(pair["existing"])


async def _outcome(pet: Companion, pair: Pair, old: str) -> str:
    known = {memory.id: memory.content for memory in await pet.memories.list(user=TELLER)}
    kept = old in known
    added = pair["new"]["content"] in [content for id, content in known.items() if id != old]
    return {(False, False): "lost", (True, True): "added", (False, True): "replaced"}.get(
        (kept, added), "ignored"
    )


def _result(pair: Pair, outcome: str, reason: str, ok: set[str]) -> Result:
    harmful = outcome in {*pair["harmful"], "lost"}
    grade = "ok" if outcome in ok else "harmful" if harmful else "missed"
    return Result(pair["id"], pair["lang"], pair["relation"], outcome, reason, grade)


async def _tell(pet: Companion, user: str, fact: dict[str, Any]) -> Decision:
    return await pet.remember(fact["content"], user=user, subjects=fact["subjects"], said_at=_said_at(fact))


def _totals(results: Sequence[Result], allowed: float) -> dict[str, Any]:
    grades = Counter(result.grade for result in results)
    passed = not grades["harmful"] and grades["missed"] <= allowed * max(len(results), 1)
    by = Counter((f"{result.relation}, {result.lang}", result.grade) for result in results)
    groups = {name: {grade: by[name, grade] for grade in GRADES} for name in sorted({name for name, _ in by})}
    return {grade: grades[grade] for grade in GRADES} | {"passed": passed, "by relation": groups}


def main() -> int:
    parser = arguments(__doc__)
    parser.add_argument("pairs", type=Path, help="a file of pairs, one JSON object a line")
    options = parser.parse_args()
    try:
        lines = options.pairs.read_text(encoding="utf-8").splitlines()
        pairs = [json.loads(line) for line in lines if line.strip()]
    except (OSError, ValueError) as error:
        parser.error(f"{options.pairs} cannot be read: {error}")
    alone, ruled = asyncio.run(decide(pairs)), asyncio.run(decide_with_rulings(pairs))
    result = _totals(alone, 1.0) | {"ruled": _totals(ruled, ALLOWED_MISSES)}
    if options.json:
        result["pairs"] = list(map(asdict, alone))
        result["ruled"]["pairs"] = list(map(asdict, ruled))
    missed = ["harmful without a model"] if not result["passed"] else []
    missed += ["harmful, or too much missed, with rulings"] if not result["ruled"]["passed"] else []
    return finish(options, result, missed)


if __name__ == "__main__":
    sys.exit(main())
