"""Measure how well past messages are found: evidence recall on conversations, through the public API.

    python benchmarks/recall.py PATH… [--into PATH…] [--part first|second|all] [--embedder NAME] [--json]

PATH is a folder of conversations, one of its files, or a file of cues, which are inserted into the
conversations of `--into` (`recall_sets` describes the formats). `--part` takes half of the cues. Each
conversation belongs to its own user, and each question is a call of `search_memories`. For each set and class
of question, and for BM25 alone and vectors alone, it reports recall@5, recall@10, nDCG@10, and the share of
ten hits that follow or precede another. `seen` is the share of the evidence whose whole text is in the first
1,200 tokens of the tool's result, by the tokenizer of the bundled embedder (Llama 2's). `again` is the share
that is among the first ten hits of a question or of the set's second search. For questions without an answer
it reports the number of hits. No model and no network take part. Exit 1 if a set's recall@10 is under
`--bar`.
"""

import asyncio
import json
import math
import statistics
import sys
import time
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from harness import arguments, finish, lanes, new_companion, percentile, tool_turn
from recall_sets import Question, Talk, neighbours, read_sets

from hachi import Companion
from memory.index.embedders import bundled
from tools.registry import TOOLS

DEPTH = 10
ALONE = {"BM25 alone": "words", "vectors alone": "dense"}
RESULT_TOKENS = 1_200
"""Tokens at the beginning of a tool's result that count as seen."""


@dataclass(frozen=True, slots=True)
class Asked:
    """The results of one question by ranker: ids, best first."""

    question: Question
    found: Mapping[str, Sequence[str]]
    beside: Mapping[str, float]
    """The share of each ranker's ten hits that follow or precede another hit."""
    milliseconds: float
    seen: float
    again: frozenset[str]
    """The hits of the question and of its second search."""


async def measure(sets: Mapping[str, Sequence[Talk]], embedder: str) -> dict[str, Any]:
    asked: dict[str, list[Asked]] = defaultdict(list)
    async with new_companion({"embedder": embedder}) as pet:
        for name, talks in sets.items():
            for talk in talks:
                await pet.conversations.import_messages(talk.messages, user=talk.name)
                await pet.admin.catch_up()
                asked[name] += [await ask(pet, talk, question) for question in talk.questions]
    return {name: figures(of_set) for name, of_set in asked.items()}


async def ask(pet: Companion, talk: Talk, question: Question) -> Asked:
    start = time.perf_counter()
    hits = await pet.search_memories(question.text, user=talk.name, limit=DEPTH)
    milliseconds = 1000 * (time.perf_counter() - start)
    rankings = await lanes(pet, talk.name, question.text, kinds=frozenset({"message"}), limit=10 * DEPTH)
    texts = {message["id"]: message["text"] for message in talk.messages if message["role"] == "user"}
    found = {"hachi": [hit.id for hit in hits]}
    for name, lane in ALONE.items():
        found[name] = [hit.id for hit in getattr(rankings, lane) if hit.id in texts][:DEPTH]
    pairs = neighbours(talk.messages)
    beside = {name: share_beside(ids, pairs) for name, ids in found.items()}
    seen, again = math.nan, {hit.id for hit in hits}
    if question.again:
        again |= {hit.id for hit in await pet.search_memories(question.again, user=talk.name, limit=DEPTH)}
    if question.evidence:
        result = await tool_result(pet, talk.name, question.text)
        seen = share_seen(result, [texts[id] for id in question.evidence])
    return Asked(question, found, beside, milliseconds, seen, frozenset(again))


def figures(asked: Sequence[Asked]) -> dict[str, Any]:
    """Return the figures of a set."""
    by_kind: dict[str, list[Asked]] = defaultdict(list)
    for one in asked:
        by_kind[one.question.kind].append(one)
    answered = [one for one in asked if one.question.evidence]
    rankers = ("hachi", *ALONE)
    return {
        "questions": len(answered),
        "rankers": {ranker: row(answered, ranker) for ranker in rankers},
        "classes": {
            kind: {ranker: recall(of_kind, ranker, DEPTH) for ranker in rankers} | {"questions": len(of_kind)}
            for kind, of_kind in sorted(by_kind.items())
            if of_kind[0].question.evidence
        },
        "hits where nothing answers": {
            kind: {ranker: statistics.median(len(one.found[ranker]) for one in of_kind) for ranker in rankers}
            for kind, of_kind in sorted(by_kind.items())
            if not of_kind[0].question.evidence
        },
        "seen": mean(one.seen for one in answered),
        "again": mean(
            len(one.question.evidence & one.again) / len(one.question.evidence) for one in answered
        ),
        "search_ms": {
            f"p{share}": percentile([one.milliseconds for one in asked], share) for share in (50, 95)
        },
    }


def row(asked: Sequence[Asked], ranker: str) -> dict[str, float]:
    return {
        "recall@5": recall(asked, ranker, 5),
        "recall@10": recall(asked, ranker, DEPTH),
        "ndcg@10": mean(ndcg(one.found[ranker], one.question.evidence) for one in asked),
        "neighbours": mean(one.beside[ranker] for one in asked),
    }


def recall(asked: Iterable[Asked], ranker: str, depth: int) -> float:
    """Return the mean share of a question's evidence among the first hits."""
    return mean(
        len(one.question.evidence.intersection(one.found[ranker][:depth])) / len(one.question.evidence)
        for one in asked
    )


def ndcg(found: Sequence[str], evidence: Collection[str]) -> float:
    gained = sum(1 / math.log2(place + 2) for place, id in enumerate(found[:DEPTH]) if id in evidence)
    return gained / sum(1 / math.log2(place + 2) for place in range(min(DEPTH, len(evidence))))


def share_beside(found: Sequence[str], pairs: Collection[frozenset[str]]) -> float:
    """Return the share of the hits that follow or precede another hit."""
    near = [id for id in found if any(frozenset((id, other)) in pairs for other in found)]
    return len(near) / len(found) if found else 0.0


def mean(values: Iterable[float]) -> float:
    return statistics.fmean([*values] or [math.nan])


async def tool_result(pet: Companion, user: str, question: str) -> str:
    """Return the result of the tool `search_memories` as a model gets it."""
    [tool] = [tool for tool in TOOLS if tool.name == "search_memories"]
    return (await tool.call(tool_turn(pet, user, question), json.dumps({"query": question}))).text


def share_seen(result: str, evidence: Sequence[str]) -> float:
    """Return the share of the texts that are whole in the first 1,200 tokens of the result."""
    ends = [end for _, end in tokenizer().encode(result, add_special_tokens=False).offsets]
    seen = result[: ends[RESULT_TOKENS - 1]] if len(ends) > RESULT_TOKENS else result
    written = (json.dumps(text.strip(), ensure_ascii=False)[1:-1] for text in evidence)
    return mean(text in seen for text in written)


@cache
def tokenizer() -> Any:
    return bundled._load().tokenizer


def main() -> int:
    parser = arguments(__doc__)
    parser.add_argument("paths", type=Path, nargs="+")
    parser.add_argument("--into", type=Path, nargs="+", default=[])
    parser.add_argument("--part", choices=("first", "second", "all"), default="all")
    parser.add_argument("--embedder", default="bundled")
    parser.add_argument("--bar", type=float, default=0.0)
    options = parser.parse_args()
    sets = {
        name: talks for name, talks in read_sets(options.paths, options.into, options.part).items() if talks
    }
    if not sets:
        print(f"no conversations in {', '.join(map(str, options.paths))}", file=sys.stderr)
        return 2
    result = asyncio.run(measure(sets, options.embedder))
    reached = {name: of_set["rankers"]["hachi"]["recall@10"] for name, of_set in result.items()}
    low = {name: share for name, share in reached.items() if share < options.bar}
    return finish(
        options, result, [f"{name}: recall@10 is {low[name]:.3f}, not {options.bar}" for name in low]
    )


if __name__ == "__main__":
    sys.exit(main())
