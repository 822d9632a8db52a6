"""How well are documents found? Recall of the right file on a folder of documentation.

    python benchmarks/knowledge.py FOLDER QUESTIONS.jsonl [--embedder NAME] [--json]

FOLDER is added as it is; QUESTIONS has a line a question, {"question", "file"}, the file relative to FOLDER,
and optionally "half" to report groups apart. Reported: the share of questions with a passage of the right
file among the first 5 and 10, for BM25 alone, vectors alone and Hachi's own search, and how long that takes.
No model and no network take part. Without arguments it says what it lacks.

`benchmarks/data/knowledge_django.jsonl` asks in people's words about the folder docs/ of Django 5.2.19
(`pip download --no-deps --no-binary :all: django==5.2.19`). The weights of the default reranker were chosen
on its tuning half alone; the size of a passage was chosen with both in sight.
"""

import argparse
import asyncio
import json
import statistics
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import Progress
from rich.table import Table

from hachi import Companion, Settings
from memory.audience import Audience
from memory.documents.ingest import IngestProgress
from memory.documents.store import DocumentStore
from memory.index import Question

DEPTHS = (5, 10)
READER = "reader"
LACKS = (
    "skipped: it needs a folder of documentation and questions about it, such as docs/ of Django's source "
    "and benchmarks/data/knowledge_django.jsonl; see --help"
)


async def ranked(pet: Companion, question: str) -> tuple[dict[str, list[str]], float]:
    """The files that each ranker finds, best first, and the milliseconds of Hachi's own search."""
    parts, audience = pet.components, Audience.of(READER)
    [vector] = await parts.embedder.embed([question])
    wanted = Question(
        audience.keys, pet.clock(), vector, question, kinds=frozenset({"chunk"}), limit=max(DEPTHS)
    )
    lanes = await parts.index.search(wanted)
    rows = await DocumentStore(parts.database).chunks({hit.id for hit in lanes.words + lanes.dense}, audience)
    started = time.perf_counter()
    chunks = await pet.documents.search(question, user=READER, limit=max(DEPTHS))
    took = 1000 * (time.perf_counter() - started)
    return {
        "BM25 alone": [rows[hit.id].path for hit in lanes.words],
        "vectors alone": [rows[hit.id].path for hit in lanes.dense],
        "Hachi": [chunk.source for chunk in chunks],
    }, took


async def measure(folder: Path, asked: Sequence[Mapping[str, str]], embedder: str) -> dict[str, Any]:
    halves: dict[str, dict[str, list[list[bool]]]] = defaultdict(lambda: defaultdict(list))
    milliseconds = []
    with tempfile.TemporaryDirectory() as home, Progress(console=Console(stderr=True)) as bar:
        task = bar.add_task("files", total=None)

        def show(step: IngestProgress) -> None:
            bar.update(task, completed=step.done, total=step.total)

        settings = Settings.load(home=Path(home), embedder=embedder)
        async with Companion.open(settings, upkeep=False) as pet:
            started = time.perf_counter()
            done = await pet.documents.add_files([folder], progress=show)
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


def show(result: Mapping[str, Any]) -> None:
    console = Console()
    console.print("{files} files, {chunks} passages in {ingest_s:.1f} s, {unread} left out".format(**result))
    for half, rankers in result["halves"].items():
        table = Table(half, "recall@5", "recall@10", "questions")
        for name, figures in rankers.items():
            table.add_row(name, *(f"{figures[f'recall@{d}']:.3f}" for d in DEPTHS), str(figures["questions"]))
        console.print(table)
    console.print(
        "a search, embedding included: {p50:.1f} ms p50, {max:.1f} ms at most".format(**result["search_ms"])
    )


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path, nargs="?")
    parser.add_argument("questions", type=Path, nargs="?")
    parser.add_argument("--embedder", default="bundled")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    if options.folder is None or options.questions is None:
        print(LACKS)
        return 0
    asked = [json.loads(line) for line in options.questions.read_text(encoding="utf-8").splitlines() if line]
    gone = [line["file"] for line in asked if not (options.folder / line["file"]).is_file()]
    if gone or not asked:
        print(f"{options.folder} has no {gone[0] if gone else 'questions'}; see --help", file=sys.stderr)
        return 2
    result = asyncio.run(measure(options.folder, asked, options.embedder))
    print(json.dumps(result, indent=2)) if options.json else show(result)
    return 0


if __name__ == "__main__":
    sys.exit(main())
