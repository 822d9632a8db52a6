"""How well are past messages found? Evidence recall on LoCoMo conversations, through the public API.

    python benchmarks/locomo.py PATH [--embedder NAME] [--json]

PATH is a folder of conversations (or one file): {"messages": [{"id", "author", "text", "sent_at"}],
"questions": [{"question", "evidence": [ids], "category"}]}. Each is imported as one user's transcript and
each question asked with `search_memories`. Reported: the share of a question's evidence among the first 5,
10 and 20, whether any of it is among the first 10, the same by category, and beside it what BM25 alone and
vectors alone would have found. Then what a model sees of it: the share of the evidence whose whole text is in
the result of the tool `search_memories`, cut after 1,200 tokens, and the tokens of that result, by the
tokenizer of the bundled embedder (Llama 2's). No model and no network take part. Exit 1 where recall@10 is
under 0.76.
"""

import asyncio
import json
import statistics
import sys
import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any

from harness import arguments, finish, lanes, new_companion, percentile, tool_turn

from hachi import Companion
from memory.audience import Audience
from memory.index import KINDS
from memory.index.embedders import bundled
from tools.registry import TOOLS

BAR = 0.76
DEPTHS = (5, 10, 20)
RESULT_TOKENS = 1_200
"""How much of one result of the tool counts as seen."""
CATEGORIES = {1: "several messages", 2: "time", 3: "inference", 4: "one message", 5: "adversarial"}


def sent_at(text: str) -> datetime:
    """ISO 8601, or as the data set writes it: ``1:56 pm on 8 May, 2023``."""
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        moment = datetime.strptime(f"{text} +0000", "%I:%M %p on %d %B, %Y %z")
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def row(asked: Sequence[tuple[Sequence[str], set[str]]]) -> dict[str, float]:
    """Recall over questions, each with what was found, best first, and its evidence."""
    found = {
        f"recall@{depth}": statistics.fmean(
            len(right & set(ids[:depth])) / len(right) for ids, right in asked
        )
        for depth in DEPTHS
    }
    hits = statistics.fmean(bool(right & set(ids[:10])) for ids, right in asked)
    return found | {"hit@10": hits, "questions": len(asked)}


async def ask(pet: Companion, user: str, question: str) -> tuple[dict[str, list[str]], float]:
    """What each ranker finds, and the seconds that Hachi's own search took."""
    start = time.perf_counter()
    hits = await pet.search_memories(question, user=user, limit=max(DEPTHS))
    seconds = time.perf_counter() - start
    alone = await lanes(pet, user, question, kinds=KINDS, limit=max(DEPTHS))
    return {
        "hachi": [hit.message_id or hit.id for hit in hits],
        "BM25 alone": [hit.id for hit in alone.words],
        "vectors alone": [hit.id for hit in alone.dense],
    }, seconds


async def tool_result(pet: Companion, user: str, question: str) -> str:
    """The result of the tool `search_memories` as a model gets it."""
    [tool] = [tool for tool in TOOLS if tool.name == "search_memories"]
    return (await tool.call(tool_turn(pet, user, question), json.dumps({"query": question}))).text


def token_ends(text: str) -> list[int]:
    """Where each token ends, in characters, by the tokenizer that comes with the bundled embedder."""
    return [end for _, end in tokenizer().encode(text, add_special_tokens=False).offsets]


@cache
def tokenizer() -> Any:
    return bundled._load().tokenizer


def share_seen(result: str, evidence: Sequence[str]) -> float:
    """The share of the texts that are in the first 1,200 tokens of the result, whole."""
    ends = token_ends(result)
    seen = result[: ends[RESULT_TOKENS - 1]] if len(ends) > RESULT_TOKENS else result
    written = (json.dumps(text.strip(), ensure_ascii=False)[1:-1] for text in evidence)
    return statistics.fmean(text in seen for text in written)


async def measure(paths: Sequence[Path], embedder: str) -> dict[str, Any]:
    rankers: dict[str, list[tuple[Sequence[str], set[str]]]] = defaultdict(list)
    categories: dict[str, list[tuple[Sequence[str], set[str]]]] = defaultdict(list)
    milliseconds: list[float] = []
    seen: list[float] = []
    sizes: list[int] = []
    async with new_companion({"embedder": embedder}) as pet:
        for path in paths:
            conversation = json.loads(path.read_text(encoding="utf-8"))
            ids = await take_in(pet, path.stem, conversation["messages"])
            texts = {message["id"]: message["text"] for message in conversation["messages"]}
            for question in conversation["questions"]:
                known = [id for id in question["evidence"] if id in ids]
                if not known:
                    continue
                evidence = {ids[id] for id in known}
                found, took = await ask(pet, path.stem, question["question"])
                milliseconds.append(1000 * took)
                for ranker, order in found.items():
                    rankers[ranker].append((order, evidence))
                category = CATEGORIES.get(question.get("category"), str(question.get("category")))
                categories[category].append((found["hachi"], evidence))
                result = await tool_result(pet, path.stem, question["question"])
                seen.append(share_seen(result, [texts[id] for id in known]))
                sizes.append(len(token_ends(result)))
    return {
        "embedder": embedder,
        "conversations": len(paths),
        "rankers": {name: row(asked) for name, asked in rankers.items()},
        "categories": {name: row(asked) for name, asked in sorted(categories.items())},
        "result": {"seen": statistics.fmean(seen), "tokens": statistics.fmean(sizes), "most": max(sizes)},
        "search_ms": {f"p{share}": percentile(milliseconds, share) for share in (50, 95)},
    }


async def take_in(pet: Companion, user: str, messages: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    """Import a conversation; its own ids to ours."""
    given = [{**message, "sent_at": sent_at(message["sent_at"])} for message in messages]
    await pet.conversations.import_messages(given, user=user)
    await pet.admin.catch_up()
    lines = await pet.components.transcript.last(f"dm:{user}", Audience.of(user), len(messages))
    return {message["id"]: line.id for message, line in zip(messages, lines, strict=True)}


def main() -> int:
    parser = arguments(__doc__)
    parser.add_argument("path", type=Path)
    parser.add_argument("--embedder", default="bundled")
    options = parser.parse_args()
    paths = sorted(options.path.glob("*.json")) if options.path.is_dir() else [options.path]
    if not paths or not paths[0].exists():
        print(f"no conversations in {options.path}", file=sys.stderr)
        return 2
    result = asyncio.run(measure(paths, options.embedder))
    recall = result["rankers"]["hachi"]["recall@10"]
    return finish(options, result, [f"recall@10 is {recall:.3f}, not {BAR}"] if recall < BAR else [])


if __name__ == "__main__":
    sys.exit(main())
