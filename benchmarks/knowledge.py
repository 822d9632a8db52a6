"""Measure how well documents are found: recall of the right file in a folder of documentation.

    python benchmarks/knowledge.py FOLDER QUESTIONS.jsonl [--embedder NAME] [--json]

FOLDER is added unchanged. QUESTIONS has one line for each question, {"question", "file"}, with the file
relative to FOLDER, and optionally "half" to report groups separately. It reports the share of questions with
a passage of the right file among the first 5 and 10, for BM25 alone, vectors alone and Hachi's own search,
and how long a search takes. No model and no network take part.

`benchmarks/data/knowledge_django.jsonl` has questions in people's words about the folder docs/ of Django
5.2.19 (`pip download --no-deps --no-binary :all: django==5.2.19`). The weights of the ranking were chosen on
its tuning half only; the size of a passage was chosen on both halves.
"""

import asyncio
import json
import statistics
import sys
import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from harness import arguments, finish, lanes, new_companion

from hachi import Companion
from memory.audience import Audience
from memory.documents.store import DocumentStore

DEPTHS = (5, 10)
READER = "reader"
LACKS = (
    "skipped: it needs a folder of documentation and questions about it, such as docs/ of Django's source "
    "and benchmarks/data/knowledge_django.jsonl; see --help"
)


async def ranked(pet: Companion, question: str) -> tuple[dict[str, list[str]], float]:
    """Return the files of each ranker's hits, best first, and the milliseconds of Hachi's own search."""
    alone = await lanes(pet, READER, question, kinds=frozenset({"chunk"}), limit=max(DEPTHS))
    ids = {hit.id for hit in alone.words + alone.dense}
    store = DocumentStore(pet.components.database)
    rows = {row.id: row for row in await store.chunks(ids, Audience.of(READER))}
    started = time.perf_counter()
    chunks = await pet.documents.search(question, user=READER, limit=max(DEPTHS))
    took = 1000 * (time.perf_counter() - started)
    return {
        "BM25 alone": [rows[hit.id].path for hit in alone.words],
        "vectors alone": [rows[hit.id].path for hit in alone.dense],
        "Hachi": [chunk.source for chunk in chunks],
    }, took


async def measure(folder: Path, asked: Sequence[Mapping[str, str]], embedder: str) -> dict[str, Any]:
    halves: dict[str, dict[str, list[list[bool]]]] = defaultdict(lambda: defaultdict(list))
    milliseconds = []
    async with new_companion({"embedder": embedder}) as pet:
        started = time.perf_counter()
        done = await pet.documents.add_files([folder])
        await pet.admin.catch_up()
        seconds = time.perf_counter() - started
        for line in asked:
            found, took = await ranked(pet, line["question"])
            milliseconds.append(took)
            right = str((folder / line["file"]).absolute())
            for ranker, files in found.items():
                halves[line.get("half", "all")][ranker].append([file == right for file in files])
    return {
        "files": len(done.added),
        "unread": len(done.unread),
        "chunks": done.chunks,
        "ingest_s": seconds,
        "search_ms": {"p50": statistics.median(milliseconds), "max": max(milliseconds)},
        "halves": {half: {name: row(hits) for name, hits in of.items()} for half, of in halves.items()},
    }


def row(hits: Sequence[Sequence[bool]]) -> dict[str, float]:
    recalls = {f"recall@{depth}": statistics.fmean(any(h[:depth]) for h in hits) for depth in DEPTHS}
    return recalls | {"questions": len(hits)}


def main() -> int:
    parser = arguments(__doc__)
    parser.add_argument("folder", type=Path, nargs="?")
    parser.add_argument("questions", type=Path, nargs="?")
    parser.add_argument("--embedder", default="bundled")
    options = parser.parse_args()
    if options.folder is None or options.questions is None:
        print(LACKS)
        return 0
    asked = [json.loads(line) for line in options.questions.read_text(encoding="utf-8").splitlines() if line]
    gone = [line["file"] for line in asked if not (options.folder / line["file"]).is_file()]
    if gone or not asked:
        print(f"{options.folder} has no {gone[0] if gone else 'questions'}; see --help", file=sys.stderr)
        return 2
    return finish(options, asyncio.run(measure(options.folder, asked, options.embedder)))


if __name__ == "__main__":
    sys.exit(main())
