"""How well are documents found? Recall of the right file on a folder of documentation.

    python benchmarks/knowledge.py FOLDER QUESTIONS.jsonl [--embedder NAME] [--json]

FOLDER is added as it is; QUESTIONS has a line a question, {"question", "file"}, the file relative to FOLDER,
and optionally "half" to report groups apart. Reported: the share of questions with a chunk of the right file
among the first 5 and 10, for BM25 alone and vectors alone over the same chunks and for Hachi's own search,
and how long that takes. No model and no network take part. Without arguments it says what it lacks.

`benchmarks/data/knowledge_django.jsonl` asks in people's words about the folder docs/ of Django 5.2.19
(`pip download --no-deps --no-binary :all: django==5.2.19`). The weights of the default reranker were chosen
on its tuning half alone; the size of a chunk was chosen with both in sight.
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
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import Progress
from rich.table import Table

from memory.audience import GLOBAL, Audience
from memory.documents.ingest import IngestProgress, IngestResult
from memory.documents.library import DocumentLibrary
from memory.documents.rerank.fused import FusedReranker
from memory.documents.store import DocumentStore
from memory.index import Question
from memory.index.embedded.index import EmbeddedIndex
from memory.index.embedders import Embedder, open_embedder
from memory.index.sync import IndexSync
from memory.sql.engine import Database
from memory.sql.memories import MemoryStore
from memory.sql.messages import Transcript
from memory.sql.summaries import ConversationSummaries

DEPTHS = (5, 10)
EVERYBODY = Audience(frozenset({GLOBAL}))
LACKS = (
    "skipped: it needs a folder of documentation and questions about it, such as docs/ of Django's source "
    "and benchmarks/data/knowledge_django.jsonl; see --help"
)


def now() -> datetime:
    return datetime.now(UTC)


async def ingest(knowledge: DocumentLibrary, folder: Path) -> IngestResult:
    with Progress(console=Console(stderr=True)) as bar:
        task = bar.add_task("files", total=None)

        def show(step: IngestProgress) -> None:
            bar.update(task, completed=step.done, total=step.total)

        return await knowledge.add([folder], progress=show)


async def lanes(
    question: str, index: EmbeddedIndex, embedder: Embedder, documents: DocumentStore
) -> dict[str, list[str]]:
    """The files of what each lane of the index finds alone."""
    [vector] = await embedder.embed([question])
    found = await index.search(Question(EVERYBODY.keys, now(), vector, question, limit=max(DEPTHS)))
    rows = await documents.chunks({hit.id for hit in found.words + found.dense}, EVERYBODY)
    return {
        "BM25 alone": [rows[hit.id].path for hit in found.words],
        "vectors alone": [rows[hit.id].path for hit in found.dense],
    }


async def measure(folder: Path, asked: Sequence[Mapping[str, str]], embedder_name: str) -> dict[str, Any]:
    embedder = open_embedder(embedder_name)
    halves: dict[str, dict[str, list[list[bool]]]] = defaultdict(lambda: defaultdict(list))
    milliseconds = []
    with tempfile.TemporaryDirectory() as name:
        home = Path(name)
        database = await Database.open(None, home)
        index = EmbeddedIndex(home / "index", embedder, database.number)
        rows = (MemoryStore(database), Transcript(database), index, embedder, now)
        sync = IndexSync(*rows, ConversationSummaries(database))
        knowledge = DocumentLibrary(database, sync, embedder, now, FusedReranker())
        start = time.perf_counter()
        done = await ingest(knowledge, folder)
        took = time.perf_counter() - start
        for line in asked:
            found = await lanes(line["question"], index, embedder, DocumentStore(database))
            start = time.perf_counter()
            chunks = await knowledge.search(line["question"], EVERYBODY, max(DEPTHS))
            milliseconds.append(1000 * (time.perf_counter() - start))
            found["Hachi"] = [chunk.source for chunk in chunks]
            right = str((folder / line["file"]).absolute())
            for ranker, files in found.items():
                halves[line.get("half", "all")][ranker].append([file == right for file in files])
        await sync.stop()
        await index.close()
        await database.close()
    await embedder.close()
    return {
        "files": len(done.added),
        "unread": len(done.unread),
        "chunks": done.chunks,
        "ingest_s": took,
        "search_ms": {"p50": statistics.median(milliseconds), "max": max(milliseconds)},
        "halves": {half: {name: row(hits) for name, hits in of.items()} for half, of in halves.items()},
    }


def row(hits: Sequence[Sequence[bool]]) -> dict[str, float]:
    recalls = {f"recall@{depth}": statistics.fmean(any(h[:depth]) for h in hits) for depth in DEPTHS}
    return recalls | {"questions": len(hits)}


def show(result: Mapping[str, Any]) -> None:
    console = Console()
    console.print(
        f"{result['files']} files, {result['chunks']} chunks in {result['ingest_s']:.1f} s, "
        f"{result['unread']} files left out"
    )
    for half, rankers in result["halves"].items():
        table = Table(half, "recall@5", "recall@10", "questions")
        for name, figures in rankers.items():
            table.add_row(
                name,
                f"{figures['recall@5']:.3f}",
                f"{figures['recall@10']:.3f}",
                str(figures["questions"]),
            )
        console.print(table)
    times = result["search_ms"]
    console.print(f"a search, embedding included: {times['p50']:.1f} ms p50, {times['max']:.1f} ms at most")


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
