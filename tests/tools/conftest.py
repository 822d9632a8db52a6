"""A turn in which tools can be called as a model calls them."""

import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

import pytest

from hachi import Companion
from memory.audience import PRIVATE, Place
from tools.context import TurnContext
from tools.registry import TOOLS


@dataclass
class Turn:
    pet: Companion
    context: TurnContext

    async def call(self, tool: str, /, **arguments: Any) -> dict[str, Any]:
        """What the model gets back; its `ok` says whether the tool did what it is for."""
        return await self.write(tool, json.dumps(arguments))

    async def write(self, tool: str, written: str) -> dict[str, Any]:
        [called] = [known for known in TOOLS if known.name == tool]
        result = await called.call(self.context, written)
        return {**json.loads(result.text), "ok": result.ok}


@pytest.fixture
async def pet(open_pet: Callable[..., Awaitable[Companion]]) -> Companion:
    return await open_pet()


@pytest.fixture
def turn(pet: Companion) -> Turn:
    return make(pet)


@pytest.fixture
def turn_of(pet: Companion) -> Callable[..., Turn]:
    """`turn_of(user, place=…, text=…)`: another turn with the same companion."""
    return lambda user, **other: make(pet, user, **other)


def make(pet: Companion, user: str | None = "ana", place: Place = PRIVATE, **other: Any) -> Turn:
    given = {"text": "", "message_id": None, "shown": frozenset()} | other
    context = TurnContext(
        user=user,
        place=place,
        clock=pet.clock,
        recall=pet.components.recall,
        writer=pet.components.writer,
        tasks=pet.components.tasks,
        knowledge=pet.components.documents,
        **given,
    )
    return Turn(pet, context)
