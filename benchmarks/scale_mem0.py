"""mem0 in the same made-up world, for `scale.py`. Run by a Python that has `mem0ai` and `wordllama`:

    pip install mem0ai wordllama
    python benchmarks/scale_mem0.py SIZE SEARCHES ADDS

One JSON object on stdout. Its local vector store as it comes, and the vectors that Hachi's bundled embedder
makes, computed in the same process so that no network is between; no model is called (``infer=False``), and
its telemetry is off. What it holds beforehand goes in by its own `add` too.
"""

import json
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from scale_world import Fact, facts, new_facts, questions

DIMENSION = 256


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


def timed(todo: Callable[[Fact], Any], over: Sequence[Fact]) -> list[float]:
    """Milliseconds of each."""
    took = []
    for fact in over:
        started = time.perf_counter()
        todo(fact)
        took.append(1000 * (time.perf_counter() - started))
    return took


def measure(size: int, searches: int, adds: int) -> dict[str, float]:
    with tempfile.TemporaryDirectory() as home:
        memory = opened(Path(home))
        try:
            return _measured(memory, size, searches, adds)
        finally:
            memory.close()
            memory.vector_store.client.close()


def _measured(memory: Any, size: int, searches: int, adds: int) -> dict[str, float]:
    found = 0

    def add(fact: Fact) -> None:
        memory.add(fact.text, user_id=fact.user, infer=False)

    def search(fact: Fact) -> None:
        nonlocal found
        hits = memory.search(fact.question, top_k=10, filters={"user_id": fact.user})["results"]
        found += any(hit["memory"] == fact.text for hit in hits)

    started = time.perf_counter()
    for at, fact in enumerate(facts(size), 1):
        add(fact)
        if at % 100 == 0:
            print(at, file=sys.stderr, flush=True)
    filled = time.perf_counter() - started
    asked = questions(size, searches + 10)
    timed(search, asked[:10])
    found = 0
    took = timed(search, asked[10:])
    added = timed(add, new_facts(size, adds))
    return {
        "fill_seconds": filled,
        "search_p50": statistics.median(took),
        "search_p95": sorted(took)[int(0.95 * len(took))],
        "found": found / len(took),
        "remember_p50": statistics.median(added),
        "remember_p95": sorted(added)[int(0.95 * len(added))],
    }


if __name__ == "__main__":
    size, searches, adds = map(int, sys.argv[1:])
    print(json.dumps(measure(size, searches, adds)))
