"""What happens to a fact: random stories of two tellers in two places, against the model of what holds."""

import os
from collections.abc import Awaitable, Collection
from dataclasses import dataclass, field
from datetime import timedelta
from itertools import count, product
from typing import Any, NamedTuple

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from memory.audience import Audience, Place
from memory.errors import NotFound
from memory.forgetting.hiding import replace_messages, restore_messages
from memory.index import Rankings
from memory.sql.memories.replacements import unexpired
from memory.sql.readable import memories_readable
from tests.memory.conftest import Stack, on_both
from tests.memory.fact_model import ALWAYS, PAST, WHILE, Fact, Model
from tests.memory.forgetting.test_erasure import erasure_of

PEOPLE, PLACES = ("anna", "ben"), (None, "acme", "home")
WORDS = ("one", "two")


class Step(NamedTuple):
    kind: str
    person: str = "anna"
    place: str | None = "acme"
    which: int = 0
    """Of those that there are to choose from."""
    ttl: str | None = None
    on_purpose: bool = False
    again: bool = False
    """In words that were told before."""


OFTEN = ("tell", "tell", "correct", "correct", "correct", "forget", "forget", "undo", "undo_forgetting")
KINDS = (
    *OFTEN,
    "forget_message",
    "edit",
    "branch_back",
    "make_private",
    "back_date",
    "wait",
    "days",
    "erase",
)
STEP = st.builds(
    Step,
    kind=st.sampled_from((*OFTEN, *KINDS)),
    person=st.sampled_from(("anna", "anna", "anna", "ben")),
    place=st.sampled_from((None, None, "acme", "acme", "acme", "home")),
    which=st.integers(0, 3),
    ttl=st.sampled_from((None, None, "2d")),
    on_purpose=st.booleans(),
    again=st.booleans(),
)
STORY = st.lists(STEP, min_size=6, max_size=16)
_worlds = count()


@dataclass
class World:
    """What people do, and the model of it; each world has names of its own."""

    stack: Stack
    number: int = field(default_factory=lambda: next(_worlds))

    def __post_init__(self) -> None:
        self.model = Model(lambda: self.stack.clock.now)

    def person(self, name: str) -> str:
        return f"{name}-{self.number}"

    def place(self, name: str | None) -> str | None:
        return name and f"{name}-{self.number}"

    async def check(self) -> None:
        for name, at in product(PEOPLE, PLACES):
            person, place = self.person(name), self.place(at)
            known = sorted(memory.content for memory in await self.stack.memories(person, place))
            expected = sorted(self.text(fact.word) for fact in self.model.readable(person, place))
            assert known == expected, (name, at)
            if at is None:
                page = await self.stack.transcript.page(Audience.of(person), 99)
                assert {line.id for line in page} == {*self.model.visible(person)}, ("messages", name)

    def text(self, word: str) -> str:
        return f"Somebody in world {self.number} has {word}"

    async def remember(self, word: str, step: Step, ttl: str | None, **given: Any) -> tuple[Fact, str]:
        """Say it in a message that states it."""
        content, person, place = self.text(word), step.person, step.place
        message = await self.stack.receive(f"{content}, {next(_worlds)}", person, place)
        self.model.messages[message] = (person, place)
        given |= {"message_id": message, "said": content, "ttl": ttl}
        decision = await self.stack.remember(content, person, place, **given)
        until = self.stack.clock.now + timedelta(days=2) if ttl else None
        return Fact(
            word, person, until, given.get("said_at", self.stack.clock.now), str(decision.id)
        ), message

    async def tell(self, step: Step) -> None:
        word = WORDS[step.which % 2] if step.ttl is None else f"another {next(_worlds)}"
        fact, message = await self.remember(word, step, step.ttl, live=True)
        self.model.tell(fact, step.place, message)
        await self.find_ids()

    async def find_ids(self) -> None:
        """What a decision does not tell those present: the ids of rows in the same words."""
        for fact, owner in [(one, owner) for one in self.model.facts for owner in self.model.owners(one)]:
            held = memories_readable(Audience(frozenset({owner}))) & unexpired()
            rows = await self.stack.store.where(held, self.stack.clock.now)
            fact.id = next((row.id for row in rows if row.content == self.text(fact.word)), fact.id)

    def chosen(self, step: Step) -> Fact | None:
        known = self.model.readable(step.person, step.place)
        return known[step.which % len(known)] if known else None

    async def correct(self, step: Step) -> None:
        """By a person on purpose or by a model, in new words or in those of a fact that nobody has now."""
        if old := self.chosen(step):
            word = f"another {next(_worlds)}"
            if step.again and (free := [fact for fact in self.model.facts if self.is_free(fact.word)]):
                word = free[step.which % len(free)].word
            by_model = {"live": True, "confirmed": {old.id}}
            how: dict[str, Any] = {"for_good": True} if step.on_purpose else by_model
            fact, message = await self.remember(word, step, step.ttl, replaces=old.id, **how)
            self.model.correct(fact, old, step.place, PAST if step.on_purpose else WHILE, message)
            await self.find_ids()

    def is_free(self, word: str) -> bool:
        same = [fact for fact in self.model.facts if fact.word == word]
        return not any(self.model.owners(fact) for fact in same)

    async def back_date(self, step: Step) -> None:
        """An import brings a statement from before the one that took its place."""
        if newer := self.chosen(step):
            at = newer.created - timedelta(seconds=1)
            word = f"another {next(_worlds)}"
            fact, message = await self.remember(word, step, None, replaces=newer.id, said_at=at)
            self.model.correct(fact, newer, step.place, ALWAYS, message)
            await self.find_ids()

    async def undo(self, step: Step) -> None:
        if new := self.chosen(step):
            audience = Audience.of(step.person, Place.parse(step.place))
            act = self.stack.history.undo(new.id, audience, step.person, self.stack.clock.now)
            await self.agree(act, self.model.undo(step.person, step.place, new))

    async def agree(self, act: Awaitable[Any], expected: bool) -> Any:
        """Do it; it is refused where the model says so."""
        try:
            done = await act
        except NotFound:
            assert not expected
        else:
            assert expected
            return done

    async def forget(self, step: Step) -> None:
        if fact := self.chosen(step):
            until = self.stack.clock.now + timedelta(minutes=10)
            act = self.stack.forgetting.forget("memory", fact.id, step.person, Place.parse(step.place))
            if done := await self.agree(act, bool(self.model.lost([fact], step.person))):
                self.model.forget(str(done[0].undo_id), step.person, fact, until)

    async def forget_message(self, step: Step) -> None:
        if said := self.model.visible(step.person):
            message = said[step.which % len(said)]
            receipt, _ids = await self.stack.forgetting.forget("message", message, step.person)
            until = self.stack.clock.now + timedelta(minutes=10)
            self.model.forget_message(str(receipt.undo_id), step.person, message, until)

    async def undo_forgetting(self, step: Step) -> None:
        now = self.stack.clock.now
        open = [(id, one) for id, one in self.model.forgettings.items() if one.until and one.until > now]
        if open:
            id, one = open[step.which % len(open)]
            await self.stack.forgetting.undo(id, one.person)
            del self.model.forgettings[id]

    async def edit(self, step: Step) -> None:
        if said := self.model.visible(step.person):
            message = said[step.which % len(said)]
            async with self.stack.database.write() as connection:
                await replace_messages(connection, [message], step.person, self.stack.clock.now)
            self.model.forget_message(message, step.person, message, None)

    async def branch_back(self, step: Step) -> None:
        edits = sorted(self.model.forgettings.keys() & self.model.messages.keys())
        if edits:
            message = edits[step.which % len(edits)]
            edit = self.model.forgettings.pop(message)
            async with self.stack.database.write() as connection:
                await restore_messages(connection, [message], edit.person, self.stack.clock.now)

    async def make_private(self, step: Step) -> None:
        if fact := self.chosen(step):
            there = Audience.of(step.person, Place.parse(step.place))
            memory = await self.stack.store.get(fact.id, there, self.stack.clock.now)
            private = self.model.make_private(f"private {next(_worlds)}", step.person, fact)
            await self.agree(self.stack.make_private(memory, step.person), private)

    async def erase(self, step: Step) -> None:
        await erasure_of(self.stack).erase(step.person)
        self.model.erase(step.person)

    async def wait(self, _: Step, **duration: float) -> None:
        self.stack.clock.advance(**duration or {"minutes": 15})
        await self.stack.expire()
        for id in await self.stack.purge.due():
            await self.stack.purge.delete(id)
        self.model.purge()

    async def days(self, step: Step) -> None:
        await self.wait(step, days=2)


async def live(stack: Stack, story: Collection[Step]) -> None:
    world = World(stack)
    for step in (Step("tell"), *story):
        stack.clock.advance(minutes=1)
        step = step._replace(person=world.person(step.person), place=world.place(step.place))
        await getattr(world, step.kind)(step)
        await world.check()


@pytest.fixture(autouse=True)
def without_search(stack: Stack, monkeypatch: pytest.MonkeyPatch) -> None:
    """Facts are named by their ids, and nothing is looked for."""

    async def nothing(*_: Any, **__: Any) -> Rankings:
        return Rankings()

    monkeypatch.setattr(stack.similar, "search_index", nothing)


CASES = {
    "made private in one place while a later one stands in another": "correct, correct alone, make_private",
    "corrected in private, which the channel does not feel": "correct alone, forget alone, wait",
    "told by two, one of whom corrects it": "tell ben, correct, forget ben, wait",
    "undone while what it came after is hidden": "correct, correct, edit 1, undo, branch_back",
    "told again while it is forgotten": "forget, tell, undo_forgetting, forget_message -1",
    "told again after it was replaced by what is then forgotten": "correct, tell, forget_message 1, wait",
    "imported behind another": "back_date, forget_message, undo_forgetting, forget, wait",
    "corrected for a time by what was corrected": "correct, correct 2d, days",
    "corrected on purpose by what has expired": "correct 2d purposely, days",
    "forgotten in private, where the channel still has what it replaced": "correct 2d purposely, tell alone, "
    "forget alone 1, wait, forget_message 1, days, forget",
    "taken back, and what holds then is replaced": "correct, undo, correct, undo",
}


def read(step: str) -> Step:
    kind, *how = step.split()
    which = next((int(word) for word in how if word.removeprefix("-").isdigit()), 0)
    person, place = "ben" if "ben" in how else "anna", None if "alone" in how else "acme"
    return Step(kind, person, place, which, "2d" if "2d" in how else None, "purposely" in how)


@on_both
@pytest.mark.parametrize("story", CASES.values(), ids=CASES)
async def test_so_it_is_where_a_fact_is(stack: Stack, story: str) -> None:
    await live(stack, [read(step) for step in story.split(", ")])


@on_both
@settings(
    max_examples=int(os.environ.get("WORLDS", "12")),
    derandomize="WORLDS" not in os.environ,  # `make test-worlds` looks for new ones
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
    phases=(Phase.explicit, Phase.generate, Phase.shrink),
    report_multiple_bugs=False,
)
@given(story=STORY)
async def test_what_holds_for_whom_is_as_the_model_says(stack: Stack, story: list[Step]) -> None:
    await live(stack, story)
