"""Searching without the index: the same hits and scores as the index has."""

import asyncio
import random
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from uuid import UUID

import numpy as np
import pytest

from memory.index import KINDS, Point, Question, Rankings
from memory.index.embedded.index import EmbeddedIndex
from memory.index.schema import DENSE, LANES
from memory.index.searching import entry_of, rank

NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)
PEOPLE = ["user:anna", "user:ben", "place:acme/general", "global"]
WORDS = "dog cat skiing Lyon Paris guitar dentist שלום 猫が好き 🎸 birthday".split()


@pytest.fixture
async def index(tmp_path: Path) -> AsyncIterator[EmbeddedIndex]:
    space: Any = SimpleNamespace(name="one", dimension=4)
    index = EmbeddedIndex(tmp_path / "index", space, lambda: asyncio.sleep(0, "any"))
    yield index
    await index.close()


def a_world(chance: random.Random) -> list[Point]:
    return [a_point(chance, number) for number in range(1, chance.randint(2, 60))]


def a_point(chance: random.Random, number: int) -> Point:
    text = " ".join(chance.choices(WORDS, k=chance.randint(0, 12)))
    kind: Any = chance.choice(sorted(KINDS))
    window = f"{text} {chance.choice(WORDS)}" if kind == "message" else None
    return Point(
        id=str(UUID(int=number)),
        kind=kind,
        owners=frozenset(chance.sample(PEOPLE, chance.randint(1, 2))),
        text=text,
        dense=a_vector(chance),
        created_at=NOW - timedelta(hours=chance.randint(0, 99)),
        expires_at=chance.choice([None, None, NOW + timedelta(hours=1)]),
        subjects=tuple(chance.sample(WORDS, chance.randint(0, 2))),
        window_text=window,
        window_dense=a_vector(chance) if window else None,
    )


def a_vector(chance: random.Random) -> np.ndarray[Any, Any]:
    vector = np.array([chance.uniform(-1, 1) for _ in range(4)], dtype=np.float32)
    return vector / np.linalg.norm(vector)


def a_question(chance: random.Random) -> Question:
    asked = Question(
        audience=frozenset(chance.sample(PEOPLE, chance.randint(1, 3))),
        now=NOW,
        dense=chance.choice([None, a_vector(chance)]),
        text=" ".join(chance.choices(WORDS, k=chance.randint(1, 4))),
        limit=100,
    )
    return chance.choice(
        [
            asked,
            replace(asked, kinds=frozenset({"memory"})),
            replace(asked, subjects=frozenset(chance.sample(WORDS, 3))),
            replace(asked, since=NOW - timedelta(hours=50), until=NOW - timedelta(hours=5)),
        ]
    )


def scores(found: Rankings) -> dict[str, dict[str, float]]:
    return {name: {hit.id: hit.score for hit in getattr(found, name)} for name in LANES}


async def test_without_the_index_the_same_is_found_with_the_same_scores(index: EmbeddedIndex) -> None:
    for seed in range(8):
        chance = random.Random(seed)
        world = a_world(chance)
        await index.put(world)
        entries = [entry_of(point) for point in world]
        for _ in range(10):
            question = a_question(chance)
            there, here = scores(await index.search(question)), scores(rank(entries, question))
            for name in LANES:
                rounded = 1e-3 if name in DENSE else 1e-4  # an index keeps numbers of two bytes
                assert here[name] == pytest.approx(there[name], abs=rounded), (name, question)
        await index.remove([point.id for point in world])
