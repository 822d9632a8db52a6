"""Small random worlds: three people, private talks and one channel, and a model that repeats all it is shown.

Each fact has a word of its own. After every step each reader is shown what holds for them, everybody's live
facts are still there, and nothing forgotten is anywhere.
"""

import asyncio
import logging
import os
import re
import sqlite3
import zlib
from collections import defaultdict
from collections.abc import Iterator
from contextlib import AsyncExitStack, closing, suppress
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import product
from pathlib import Path
from shutil import copytree
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from hachi import Companion, Settings, TraceFilter
from hachi.testing import AnsweringModel, tool_call
from memory.audience import Audience, Place, owners_of, user_key
from memory.errors import NotFound
from memory.process.spans import Recording, Span, recording
from prompts import read

NO_LONGER = read("consolidation_no_longer").partition("{{")[0].strip()
PEOPLE, CHANNEL = ("anna", "ben", "cleo"), "acme/general"
WORD = re.compile(r"Z[aiou][bdfgmnprtv]avok")
WORD_BYTES = re.compile(WORD.pattern.encode())
WORDS = [f"Z{vowel}{letter}avok" for vowel, letter in product("aiou", "bdfgmnprtv")]
UNDO_FOR = timedelta(minutes=10)

who = st.sampled_from(PEOPLE)
where, which = st.sampled_from([None, CHANNEL]), st.integers(0, 20)
TELL = st.tuples(st.just("tell"), who, where, st.sampled_from([None, None, "1d"]), st.booleans())
CHANGE = st.tuples(
    st.sampled_from(
        ["correct", "correct_by_hand", "rule", "forget", "forget", "delete_message", "undo", "ask"]
    ),
    who,
    where,
    which,
)
READ = st.tuples(st.just("read"), who)
"""Somebody asks in private who planted what, and may read the channel."""
REST = st.tuples(st.sampled_from(["undo_forget", "wait", "wait", "day"])) | st.tuples(st.just("erase"), who)
STORY = st.lists(st.one_of(TELL, TELL, TELL, CHANGE, CHANGE, READ, REST), min_size=4, max_size=14)


@dataclass
class Fact:
    """What was told, and for whom it holds."""

    word: str
    teller: str
    place: str | None
    until: datetime | None
    owners: set[str]
    chain: set[str]
    """The words of all that it replaced or that replaced it, its own among them."""
    message: str | None = None
    replaced_for: set[str] = field(default_factory=set)
    forgotten: bool = False
    taken_at: datetime | None = None
    """When it was forgotten; it is kept for an undo for `UNDO_FOR`."""

    def holds_for(self, keys: frozenset[str], now: datetime) -> bool:
        current = self.until is None or self.until > now
        return not self.forgotten and current and bool((self.owners - self.replaced_for) & keys)


class Lines(logging.Handler):
    """All lines of the log."""

    def __init__(self) -> None:
        super().__init__(logging.DEBUG)
        self.text = ""

    def emit(self, record: logging.LogRecord) -> None:
        self.text += f"{record.getMessage()}\n"


def words_in(*shown: Any) -> set[str]:
    return set(WORD.findall(" ".join(map(str, shown))))


def note(word: str) -> str:
    """What else the message that told this word says: it stays where the fact alone is forgotten."""
    return f"Y{word[1:]}"


def sentence(person: str, word: str) -> str:
    return f"{person.capitalize()} planted a {word}"


class World:
    """What people do, and beside it what should hold for whom."""

    def __init__(
        self, pet: Companion, home: Path, model: AnsweringModel, consolidating: AnsweringModel
    ) -> None:
        self.pet, self.home, self.model, self.consolidating = pet, home, model, consolidating
        self.facts: dict[str, Fact] = {}
        self.wrote: set[str] = set()
        """Who wrote in the channel."""
        self.was_told: dict[str, set[str]] = defaultdict(set)
        """The words that a reply has told each person in private."""
        self.undo: list[tuple[str, str, set[str]]] = []
        self.deleted: set[str] = set()
        """The words that no undo can bring back."""
        self.messages_gone: set[str] = set()
        """The words of which the message itself was forgotten, or its author erased."""
        self.log = Lines()
        self.ruled: int | None = None
        """Which of the shown facts the next consolidation says to be replaced."""
        consolidating._then = self.consolidate

    @property
    def now(self) -> datetime:
        return self.pet.clock()

    def consolidate(self, asked: str) -> dict[str, Any]:
        """Summaries repeat all words that the prompt quotes and neither says to be over nor are ruled so, and
        the profile what else the person said. What has passed, a model sees by the dates."""
        quoted = "\n".join(line for line in asked.splitlines() if line.startswith(">"))
        over = words_in(asked.partition(NO_LONGER)[2].partition("\n- ")[0])
        over |= {fact.word for fact in self.facts.values() if fact.until and fact.until <= self.now}
        rulings = [*self.rulings(quoted, self.ruled)] if self.ruled is not None else []
        over |= {fact.word for fact in self.facts.values() if fact.replaced_for and rulings}
        words = " ".join(sorted(words_in(quoted) - over))
        found: dict[str, Any] = {"summary": f"They spoke of {words}.", "rulings": rulings}
        if said := re.findall(rf"I planted a ({WORD.pattern})", asked.partition("## What was said")[2]):
            found["new_preferences"] = [{"key": "other_notes", "value": f"likes {note(said[-1])}"}]
        if "memory_summary" in asked:
            found["memory_summary"] = f"All in all: {words}."
        return found

    def rulings(self, quoted: str, which: int) -> Iterator[dict[str, str]]:
        ids = dict(re.findall(rf"({WORD.pattern})[^\n]*?\[(\w{{8,}})\]", quoted))
        newest = max(self.facts.values(), key=lambda fact: WORDS.index(fact.word)).word
        if newest in ids and (others := sorted(set(ids) - {newest})):
            old = self.facts[others[which % len(others)]]
            yield {"new": ids[newest], "old": ids[old.word], "ruling": "replaces"}
            self.replaced(newest, old)

    # What happens.

    async def turn(self, name: str, place: str | None, text: str, reply: str, *memories: Any) -> None:
        self.model.answers = [{"message": reply, "memories": memories}]
        await self.pet.respond(text, user=name, author=name.capitalize(), place=place)
        may_hear = self.may_hear(name, place)
        self.wrote |= {name} if place else set()
        assert words_in(self.model.systems, self.model.inputs) <= may_hear, "the prompt"
        await self.pet.settle()

    def told(self, name: str, place: str | None, ttl: str | None = None) -> Fact:
        word = WORDS[len(self.facts)]
        owners = set(owners_of(name, Place.parse(place)))
        until = self.now + timedelta(days=1) if ttl else None
        self.facts[word] = fact = Fact(word, name, place, until, owners, {word})
        return fact

    async def read(self, name: str) -> None:
        """The reply tells all that a search has found."""
        found = set[str]()

        def told(_: str) -> dict[str, Any]:
            found.update(words_in(self.model.inputs[-1]))
            planted = [sentence(self.facts[word].teller, word) for word in sorted(found)]
            return {"message": ". ".join([*planted, "That is all."]), "memories": planted}

        self.model.answers = [tool_call("search_memories", query="who planted something?", limit=50), told]
        await self.pet.respond("Who planted what?", user=name, author=name.capitalize(), reads=[CHANNEL])
        channel = self.may_hear(name, CHANNEL) if name in self.wrote else set()
        assert found <= self.may_hear(name, None) | channel, "what was read"
        self.was_told[name] |= found
        await self.pet.settle()

    async def tell(
        self, name: str, place: str | None, ttl: str | None, repeats: bool, replaces: str | None = None
    ) -> None:
        fact = self.told(name, place, ttl)
        draft = {"content": sentence(name, fact.word), "ttl": ttl, "replaces": replaces}
        reply = f"You planted a {fact.word}, how nice!" if repeats else "I see."
        await self.turn(name, place, f"I planted a {fact.word}", reply, draft)
        said = await self.pet.conversations.messages(user=name, place=place, limit=5)
        fact.message = next(
            message.id for message in said if fact.word in message.text and message.role == "user"
        )

    async def ask(self, name: str, place: str | None, which: int) -> None:
        held = self.held(name, place)[which % 3 :][:3]
        reply = " ".join(f"{sentence(fact.teller, fact.word)}." for fact in held)
        await self.turn(name, place, "Who planted what?", reply or "Nobody.")

    async def correct(self, name: str, place: str | None, which: int) -> None:
        if old := await self.chosen(name, place, which):
            await self.tell(name, place, None, False, replaces=old[1])
            self.replaced(list(self.facts)[-1], old[0])

    async def correct_by_hand(self, name: str, place: str | None, which: int) -> None:
        if old := await self.chosen(name, place, which):
            fact, id = old
            word = WORDS[len(self.facts)]
            try:
                await self.pet.memories.update(id, sentence(name, word), user=name, place=place, ttl=None)
            except NotFound:
                assert fact.teller != name
                return
            self.told(name, fact.place)
            self.replaced(word, fact)

    async def rule(self, name: str, place: str | None, which: int) -> None:
        self.ruled = which
        await self.tell(name, place, None, False)
        self.ruled = None

    def replaced(self, word: str, old: Fact) -> None:
        """Nobody replaces what somebody else told, and only for those who hear the new fact."""
        new = self.facts[word]
        if old.teller == new.teller and (owners := old.owners & new.owners):
            old.replaced_for |= owners
            for each in (chain := old.chain | new.chain):
                self.facts[each].chain = chain

    async def forget(self, name: str, place: str | None, which: int) -> None:
        if chosen := await self.chosen(name, place, which):
            fact, id = chosen
            try:
                receipt = await self.pet.memories.forget(id, user=name, place=place)
            except NotFound:
                assert fact.teller != name
                return
            assert fact.teller == name
            words = words_in(*(memory.content for memory in receipt.memories))
            assert fact.word in words, "what was named is taken"
            assert words <= fact.chain, "nothing else is taken"
            await self.gone(name, words, receipt.undo_id)

    async def delete_message(self, name: str, place: str | None, which: int) -> None:
        said = [fact for fact in self.facts.values() if fact.teller == name and fact.message]
        if said := [fact for fact in said if not fact.forgotten]:
            fact = said[which % len(said)]
            receipt = await self.pet.conversations.forget(str(fact.message), user=name)
            words = words_in(*(memory.content for memory in receipt.memories)) | {fact.word}
            assert words == {fact.word}, "nothing else is taken"
            self.messages_gone |= words
            await self.gone(name, words, receipt.undo_id)

    async def gone(self, name: str, words: set[str], undo_id: str | None) -> None:
        for word in words:
            self.facts[word].forgotten, self.facts[word].taken_at = True, self.now
        if undo_id:
            self.undo.append((undo_id, name, words))
        await self.look_again(words)

    async def undo_forget(self) -> None:
        if self.undo:
            id, name, words = self.undo.pop()
            taken_at = self.facts[min(words)].taken_at
            try:
                await self.pet.memories.undo_forget(id, user=name)
            except NotFound:
                assert taken_at is None or self.now - taken_at >= UNDO_FOR
                return
            self.messages_gone -= words
            for word in words:
                self.facts[word].forgotten = False
            await self.look_again(words)

    async def undo_step(self, name: str, place: str | None, which: int) -> None:
        if chosen := await self.chosen(name, place, which):
            with suppress(NotFound):
                await self.pet.memories.undo(chosen[1], user=name, place=place)
            await self.look_again(chosen[0].chain)

    async def erase(self, name: str) -> None:
        receipt = await self.pet.people.erase(user=name)
        self.wrote.discard(name)
        self.was_told.pop(name, None)
        assert receipt.verified, receipt.left
        for fact in self.facts.values():
            if fact.teller == name:
                fact.forgotten = True
                self.messages_gone.add(fact.word)
                self.deleted.add(fact.word)
        self.undo.clear()  # an erasure ends the undos of replies that may repeat its person

    async def wait(self, **duration: float) -> None:
        self.pet.clock.advance(**duration or {"minutes": 15})  # type: ignore[attr-defined]
        await self.pet.admin.purge()
        for fact in self.facts.values():
            if fact.forgotten and fact.taken_at and self.now - fact.taken_at >= UNDO_FOR:
                self.deleted.add(fact.word)

    async def day(self) -> None:
        await self.wait(days=1)

    # What should hold.

    def held(self, name: str, place: str | None) -> list[Fact]:
        keys = Audience.of(name, Place.parse(place)).keys
        return [fact for fact in self.facts.values() if fact.holds_for(keys, self.now)]

    def may_hear(self, name: str, place: str | None) -> set[str]:
        keys = Audience.of(name, Place.parse(place)).keys
        told = set() if place else self.was_told[name]
        return {
            f.word for f in self.facts.values() if not f.forgotten and (f.owners & keys or f.word in told)
        }

    async def chosen(self, name: str, place: str | None, which: int) -> tuple[Fact, str] | None:
        known = await self.pet.memories.list(user=name, place=place)
        if not known:
            return None
        memory = known[which % len(known)]
        return self.facts[words_in(memory.content).pop()], memory.id

    async def look_again(self, words: set[str]) -> None:
        """Undoing and forgetting may bring back what was replaced, for some owners. Of each chain something
        still holds, if anything of it is left."""
        for chain in [self.facts[word].chain for word in words]:
            for word in chain:
                fact = self.facts[word]
                for key in fact.owners:
                    place = None if key == user_key(fact.teller) else CHANNEL
                    known = await self.pet.memories.list(user=fact.teller, place=place)
                    (set.discard if word in words_in(known) else set.add)(fact.replaced_for, key)
            left = [self.facts[word] for word in chain if not self.facts[word].forgotten]
            left = [fact for fact in left if fact.until is None or fact.until > self.now]
            assert not left or any(user_key(fact.teller) not in fact.replaced_for for fact in left), "lost"

    async def check(self) -> None:
        await self.pet.settle()
        with recording(
            Recording("", Span("check"))
        ):  # what is asked here names all words, and leaves no trace
            for name, place in product(PEOPLE, (None, CHANNEL)):
                await self.check_reader(name, place)
        forgotten = {fact.word for fact in self.facts.values() if fact.forgotten}
        shown = words_in(self.model.systems, self.model.inputs, self.consolidating.asked)
        assert not shown & forgotten, "the prompts of this step"
        for kept in (self.model.systems, self.model.inputs, self.model.asked, self.consolidating.asked):
            kept.clear()
        assert not words_in(*await self.traces()) & forgotten, "the traces"
        assert not words_in(self.tables()) & self.deleted, "the tables"
        assert not words_in(self.log.text), "the log"

    async def check_reader(self, name: str, place: str | None) -> None:
        pet, who = self.pet, {"user": name, "place": place}
        holds, may_hear = {fact.word for fact in self.held(name, place)}, self.may_hear(name, place)
        assert words_in(await pet.memories.list(**who)) == holds, ("memories", who)
        asked = " ".join([*self.facts, "planted"])
        hits = await pet.search_memories(asked, limit=50, **who)
        hits += await pet.search_memories(asked, limit=50, author="hachi", **who)
        assert words_in(*(hit.content for hit in hits)) <= may_hear, ("found", who)
        assert words_in(*(hit.content for hit in hits if hit.kind == "memory")) == holds, ("search", who)
        derived = [hit.content for hit in hits if hit.kind == "summary"]
        context = (await pet.people.context(**who)).to_json()
        assert words_in(derived, context) <= holds, ("derived", who)
        notes = set(re.findall(WORD.pattern.replace("Z", "Y"), str(context)))
        assert notes.isdisjoint(map(note, self.messages_gone)), ("notes", who)
        said = [message.text for message in await pet.conversations.messages(limit=100, **who)]
        assert words_in(said) <= may_hear, ("messages", who)
        if place is None:
            forgotten = {fact.word for fact in self.facts.values() if fact.forgotten}
            assert not words_in(await pet.conversations.export(user=name)) & forgotten, "export"
            own = {fact.word for fact in self.facts.values() if fact.teller == name and fact.message}
            assert own - forgotten <= words_in(said), "no message is lost"
        else:
            exported = await pet.conversations.export_place(place, user=name)
            assert words_in(exported) <= may_hear, ("export", who)

    async def traces(self) -> list[Any]:
        """All that may be read of traces."""
        listed = await self.pet.traces.list(TraceFilter(kinds=frozenset()), self.now, 500)
        shown = [one.id for one in listed if one.content not in ("hidden", "forgotten")]
        return [*listed, *[await self.pet.traces.get(id, self.now) for id in shown]]

    def tables(self) -> str:
        """All rows of all tables."""
        found = []
        with closing(sqlite3.connect(self.home / "hachi.db")) as connection:
            names = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()
            for (table,) in names:
                found += connection.execute(f'SELECT * FROM "{table}"').fetchall()
        return " ".join(_readable(value) for row in found for value in row)

    def check_files(self, forgotten: set[str]) -> None:
        """Look for what no undo can bring back."""
        for path in self.home.rglob("*"):
            if path.is_file():
                held = {word.decode() for word in WORD_BYTES.findall(path.read_bytes())}
                assert not held & forgotten, path


def _readable(value: Any) -> str:
    if isinstance(value, bytes):
        with suppress(zlib.error):
            return zlib.decompress(value).decode()
    return str(value)


@pytest.fixture(scope="module")
def home_with_index(empty_home: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Creating an index takes as long as some turns."""

    async def search() -> None:
        async with Companion.open(Settings.load(home=home, embedder="bundled"), periodic_jobs=False) as pet:
            await pet.search_memories("anything", user="anna")

    home = Path(copytree(empty_home, tmp_path_factory.mktemp("worlds") / "home"))
    asyncio.run(search())
    return home


async def live(story: list[tuple[Any, ...]], home_with_index: Path, clock: Any) -> None:
    async with AsyncExitStack() as closing:
        home = Path(closing.enter_context(TemporaryDirectory())) / "home"
        copytree(home_with_index, home)
        model, consolidating = AnsweringModel(), AnsweringModel()
        chosen = Settings.load(
            home=home, embedder="bundled", trace_content="full", context_budget="200", read_places=True
        )
        pet = await closing.enter_async_context(
            Companion.open(
                chosen, clock=clock, model=model, consolidation_model=consolidating, periodic_jobs=False
            )
        )
        world = World(pet, home, model, consolidating)
        log = logging.getLogger("hachi")
        log.addHandler(world.log)
        closing.callback(log.removeHandler, world.log)
        for kind, *details in story:
            await getattr(world, "undo_step" if kind == "undo" else kind)(*details)
            clock.advance(minutes=1)
            await world.check()
        await world.day()
        await world.check()
        forgotten = {fact.word for fact in world.facts.values() if fact.forgotten}
        assert not words_in(world.tables()) & forgotten, "all tables, when no undo is left"
        world.check_files(forgotten)


async def test_what_is_forgotten_is_nowhere_and_nothing_else_is_lost(
    home_with_index: Path, clock: Any, light_embedder: None
) -> None:
    """One world with every kind of step; random ones are slow."""
    story = [
        ("tell", "anna", None, None, True),
        ("tell", "ben", CHANNEL, "1d", True),
        ("ask", "cleo", CHANNEL, 0),
        ("read", "cleo"),
        ("correct", "anna", None, 0),
        ("rule", "ben", CHANNEL, 0),
        ("undo", "anna", None, 0),
        ("forget", "anna", None, 0),
        ("undo_forget",),
        ("correct_by_hand", "anna", None, 0),
        ("delete_message", "ben", CHANNEL, 1),
        ("wait",),
        ("erase", "anna"),
    ]
    await live(story, home_with_index, clock)


SEVERAL_AT_ONCE = [
    ("tell", "ben", None, "1d", True),
    ("tell", "cleo", None, "1d", True),
    ("tell", "ben", None, None, True),
    ("tell", "cleo", None, None, True),
    ("day",),
    ("tell", "ben", CHANNEL, "1d", True),
    ("forget", "cleo", None, 1),
    ("wait",),
]
TAKEN_BACK_FOR_WHAT_ENDS = [
    ("tell", "ben", None, "1d", False),
    ("correct", "ben", None, 0),
    ("undo", "ben", None, 0),
]
ASK = ("ask", "cleo", None, 0)
ASKED_BEFORE_IT_ENDS = (
    [("tell", "cleo", None, "1d", True), ASK],
    [("tell", "cleo", None, None, True), ASK, ("correct", "cleo", None, 0)],
    [("tell", "cleo", CHANNEL, "1d", True), ASK, ("day",), ("tell", "cleo", None, None, False)],
)


@pytest.mark.slow
@settings(
    max_examples=int(os.environ.get("WORLDS", "120")),
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(story=STORY)
@example(story=SEVERAL_AT_ONCE)
@example(story=TAKEN_BACK_FOR_WHAT_ENDS)
@example(story=ASKED_BEFORE_IT_ENDS[0])
@example(story=ASKED_BEFORE_IT_ENDS[1])
@example(story=ASKED_BEFORE_IT_ENDS[2])
async def test_so_it_is_in_many_worlds(
    story: list[tuple[Any, ...]], home_with_index: Path, clock: Any, light_embedder: None
) -> None:
    await live(story, home_with_index, clock)
