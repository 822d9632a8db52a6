"""mem0 in the same made-up world, for `scale.py`. Run by a Python that has `mem0ai` and `wordllama`:

    pip install mem0ai wordllama
    python benchmarks/scale_mem0.py SIZE SEARCHES ADDS

One JSON object on stdout. Its local vector store as it comes, and the vectors that Hachi's bundled embedder
makes, computed in the same process: an embedder behind a socket would add what has nothing to do with mem0.
No model is called (``infer=False``), its telemetry is off, and of its optional parts, which make a search
find more and take longer, none is needed. What is known beforehand goes in by a side door, straight into its
vector store, with the payload that its own `add` writes; `add` and `search` are then timed.
"""

import hashlib
import json
import logging
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any
from uuid import uuid4

from scale_world import Fact, facts, new_facts, questions

DIMENSION = 256
WARM_UP = 50
BATCH = 500


class Embedding:
    """What mem0 asks of an embedder."""

    def __init__(self) -> None:
        import wordllama

        folder = Path(wordllama.__file__).parent
        self._model = wordllama.WordLlama.load(cache_dir=folder, dim=DIMENSION, disable_download=True)

    def embed(self, text: str, memory_action: str | None = None) -> list[float]:
        ids = self._model.tokenizer.encode(text, add_special_tokens=False).ids
        mean = self._model.embedding[ids].mean(axis=0)
        length = float((mean @ mean) ** 0.5)
        vector: list[float] = (mean / length).tolist()
        return vector

    def embed_batch(self, texts: Sequence[str], memory_action: str | None = None) -> list[list[float]]:
        return [self.embed(text) for text in texts]


def opened(home: Path) -> Any:
    os.environ |= {"MEM0_TELEMETRY": "False", "MEM0_DIR": str(home), "HF_HUB_OFFLINE": "1"}
    logging.disable(logging.WARNING)  # it tells of every insert
    from mem0 import Memory

    unused = {"provider": "openai", "config": {"api_key": "none"}}
    store = {"path": str(home / "qdrant"), "embedding_model_dims": DIMENSION, "on_disk": True}
    memory = Memory.from_config(
        {
            "vector_store": {"provider": "qdrant", "config": store},
            "history_db_path": str(home / "history.db"),
            "llm": unused,
            "embedder": unused,
        }
    )
    memory.embedding_model = Embedding()
    return memory


def measure(size: int, searches: int, adds: int) -> dict[str, float]:
    with tempfile.TemporaryDirectory() as home:
        memory = opened(Path(home))
        try:
            started = time.perf_counter()
            fill(memory, list(facts(size)))
            filled = time.perf_counter() - started
            return {"fill_seconds": filled, **_searched(memory, size, searches), **_added(memory, size, adds)}
        finally:
            memory.close()
            memory.vector_store.client.close()


def fill(memory: Any, world: Sequence[Fact]) -> None:
    for at in range(0, len(world), BATCH):
        batch = world[at : at + BATCH]
        payloads = [
            {
                "user_id": fact.user,
                "role": "user",
                "data": fact.text,
                "hash": hashlib.md5(fact.text.encode()).hexdigest(),
                "created_at": fact.said_at.isoformat(),
                "updated_at": fact.said_at.isoformat(),
                "text_lemmatized": fact.text,
            }
            for fact in batch
        ]
        vectors = memory.embedding_model.embed_batch([fact.text for fact in batch])
        memory.vector_store.insert(vectors, payloads, [str(uuid4()) for _ in batch])
        print(f"\rmem0: {at + len(batch):,} of {len(world):,}", end="", file=sys.stderr, flush=True)
    print("\r\033[K", end="", file=sys.stderr, flush=True)


def _searched(memory: Any, size: int, searches: int) -> dict[str, float]:
    found = []

    def search(fact: Fact) -> None:
        hits = memory.search(fact.question, top_k=10, filters={"user_id": fact.user})["results"]
        found.append(any(hit["memory"] == fact.text for hit in hits))

    took = timed(search, questions(size, WARM_UP + searches))
    return {**percentiles("search", took), "found": statistics.fmean(found)}


def _added(memory: Any, size: int, adds: int) -> dict[str, float]:
    def add(fact: Fact) -> None:
        memory.add(fact.text, user_id=fact.user, infer=False)

    return percentiles("remember", timed(add, new_facts(size, WARM_UP + adds)))


def timed(todo: Callable[[Fact], Any], over: Sequence[Fact]) -> list[float]:
    """Milliseconds of each but the first ones, which warm up."""
    took = []
    for fact in over:
        started = time.perf_counter()
        todo(fact)
        took.append(1000 * (time.perf_counter() - started))
    return took[WARM_UP:]


def percentiles(name: str, took: Sequence[float]) -> dict[str, float]:
    ordered = sorted(took)
    return {f"{name}_p50": statistics.median(ordered), f"{name}_p95": ordered[int(0.95 * len(ordered))]}


if __name__ == "__main__":
    size, searches, adds = map(int, sys.argv[1:])
    print(json.dumps(measure(size, searches, adds)))
