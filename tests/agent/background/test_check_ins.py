"""People who want it are asked how things went: once, in private, in their waking hours, and about nothing
that is over."""

import asyncio
import random
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from agent.background.check_ins import CheckInMessage, CheckInService
from agent.replay.replay import replay
from agent.tracing.store.filters import TraceFilter
from agent.types import TurnRequest
from hachi import BadInput, Companion, ModelUnavailable, Reply
from hachi.testing import AnsweringModel, FixedClock
from memory.audience import PRIVATE
from memory.people import check_ins
from memory.people.check_ins import MOST_PLANNED, TOO_LATE
from memory.process.spans import new_id
from memory.records import Message

ANA = "discord:1"
EXAM = "My exam in botany is on Monday"
EVENING = datetime(2026, 11, 23, 18, tzinfo=UTC)
HOW = {"message": "How did the exam go?", "memories": []}
SILENCE = {"message": "", "memories": []}
NOTHING = {"summary": "Ana told something."}


def planned(about: str = "her exam", after: str | None = "2026-11-23T18:00", **more: Any) -> dict[str, Any]:
    return NOTHING | {"follow_ups": [{"about": about, "after": after, "messages": [1], **more}]}


class Killed(BaseException):
    """The process ends here."""


@dataclass
class Messenger:
    """Writes down what it is given to send."""

    sent: list[CheckInMessage] = field(default_factory=list)

    async def __call__(self, asked: CheckInMessage) -> str:
        self.sent.append(asked)
        return f"discord:9:{len(self.sent)}"


@dataclass
class World:
    pet: Companion
    clock: FixedClock
    talker: AnsweringModel
    consolidator: AnsweringModel
    messenger: Messenger

    async def tells(self, text: str, *answers: Any, **given: Any) -> None:
        """Ana says something in private, and it is consolidated with these answers."""
        self.consolidator.answers += answers
        await self.pet.respond(text, user=ANA, author="Ana", **given)
        await self.pet.settle()

    async def asks(self, *answers: Any, at: datetime | None = None) -> int:
        """Let what is due be asked, after the model has these answers. Returns how many were sent."""
        self.clock.now = at or self.clock.now
        self.talker.answers[:] = answers
        return await self.pet.check_ins.run()

    async def planned(self) -> list[str]:
        return [one.about for one in await self.pet.check_ins.list(user=ANA)]


@pytest.fixture
def world(open_pet: Any, clock: FixedClock) -> Callable[..., Awaitable[World]]:
    """`await world()`: Ana wants to be asked, and has told of her exam."""

    async def opened(*answers: Any, wants: bool = True, **settings: Any) -> World:
        models = AnsweringModel(), AnsweringModel(then=NOTHING)
        pet = await open_pet(given=models[0], consolidating=models[1], **settings)
        made = World(pet, clock, *models, Messenger())
        pet.check_ins.register("discord:", made.messenger)
        if wants:
            await pet.check_ins.want(True, user=ANA)
        await made.tells(EXAM, *(answers or [planned()]), origins=["discord:7:1"])
        return made

    return opened


@pytest.fixture(params=[False, True], ids=["sqlite", "postgresql"])
async def stored_in(request, postgresql) -> dict[str, str]:
    """Settings for one of both databases."""
    return {"database_url": await postgresql.new()} if request.param else {}


async def test_the_person_is_asked_once_when_it_is_over_and_what_they_say_then_is_understood(
    world, stored_in
):
    here = await world(**stored_in)
    assert await here.planned() == ["her exam"]
    assert await here.asks(HOW) == 0
    assert await here.asks(HOW, at=EVENING) == 1
    assert await here.asks(HOW) == 0
    [sent] = here.messenger.sent
    assert (sent.user, sent.text) == (ANA, "How did the exam go?")
    asked = here.talker.inputs[-1][-1]["content"]
    assert "her exam" in asked
    assert f"] {EXAM}" in asked
    await here.tells("I passed!")
    assert "How did the exam go?" in here.talker.shown()


async def test_nobody_is_asked_who_did_not_say_so_and_their_prompts_are_no_longer(world):
    here = await world(wants=False)
    assert "follow_ups" not in here.consolidator.asked[-1]
    await here.pet.check_ins.want(True, user=ANA)
    assert await here.planned() == []
    assert await here.asks(HOW, at=EVENING) == 0
    await here.tells(EXAM)
    assert "follow_ups" in here.consolidator.asked[-1]


async def test_nothing_is_planned_from_a_channel(world):
    here = await world(NOTHING)
    await here.tells("My exam is on Tuesday", planned(), place="discord/1/2")
    assert "follow_ups" not in here.consolidator.asked[-1]
    assert await here.planned() == []


async def test_a_model_that_says_nothing_leaves_no_trace_in_the_talk_and_costs_no_turn_of_the_day(world):
    here = await world(planned())
    assert await here.asks(SILENCE, at=EVENING) == 0
    assert [one.role for one in await here.pet.conversations.messages(user=ANA)] == ["assistant", "user"]
    await here.tells("My driving test is tonight", planned("her test", "2026-11-23T19:00"))
    assert await here.asks(HOW, at=EVENING.replace(hour=19)) == 1


async def test_it_reads_and_writes_nothing_else(world):
    here = await world()
    noting = HOW | {"memories": [{"content": "Ana passed"}], "forget": ["exam"]}
    await here.asks(noting, at=EVENING)
    await here.pet.settle()
    assert await here.pet.memories.list(user=ANA) == []


CASES: dict[str, Callable[[World], Awaitable[object]]] = {}


def ends(case: Callable[[World], Awaitable[object]]) -> Callable[[World], Awaitable[object]]:
    CASES[case.__name__] = case
    return case


async def _exam(here: World) -> Any:
    return next(one for one in await here.pet.conversations.messages(user=ANA) if one.text == EXAM)


@ends
async def its_message_is_forgotten(here: World) -> None:
    await here.pet.conversations.forget((await _exam(here)).id, user=ANA)


@ends
async def its_message_is_edited(here: World) -> None:
    sent = await here.pet.conversations.sent("discord:7:1")
    assert sent
    await here.pet.conversations.reword(sent, "My exam in botany is over", again=False)


@ends
async def its_fact_is_forgotten(here: World) -> None:
    [fact] = await here.pet.memories.list(user=ANA)
    await here.pet.memories.forget(fact.id, user=ANA)


@ends
async def its_fact_is_corrected(here: World) -> None:
    [fact] = await here.pet.memories.list(user=ANA)
    await here.pet.memories.update(fact.id, "Ana's exam in botany is in May", user=ANA)


@ends
async def a_message_settles_it(here: World) -> None:
    [one] = await here.pet.check_ins.list(user=ANA)
    await here.tells("They let me off the exam", planned("", None, id=one.id[:8]))


@ends
async def they_write_when_it_is_over(here: World) -> None:
    here.clock.now = EVENING
    await here.tells("What a day")


@ends
async def they_write_on_a_linked_account_when_it_is_over(here: World) -> None:
    await here.pet.people.link(await here.pet.people.link_code(user=ANA), user="slack:T:1")
    here.clock.now = EVENING
    await here.pet.respond("What a day", user="slack:T:1", settle=True)


@ends
async def they_want_no_more(here: World) -> None:
    await here.pet.check_ins.want(False, user=ANA)


@ends
async def they_want_nothing_kept(here: World) -> None:
    await here.pet.people.keep(False, user=ANA)
    with pytest.raises(BadInput):
        await here.pet.check_ins.want(True, user=ANA)


@ends
async def they_are_erased(here: World) -> None:
    await here.pet.people.erase(user=ANA)


@ends
async def nobody_could_send_it_for_days(here: World) -> None:
    here.clock.now = EVENING + TOO_LATE


@pytest.mark.parametrize("case", CASES)
async def test_it_is_not_asked_when(world, case):
    exam = {"text": "Ana's exam in botany is on Monday", "messages": [1], "importance": "high"}
    here = await world(planned() | {"new_facts": [exam]})
    assert await here.planned() == ["her exam"]
    here.clock.now = EVENING.replace(hour=17, minute=59)
    await CASES[case](here)
    asked = len(here.talker.inputs)
    assert await here.asks(HOW, at=max(here.clock.now, EVENING)) == 0
    assert (here.messenger.sent, len(here.talker.inputs)) == ([], asked)
    if case != "they_want_nothing_kept":
        assert await here.planned() == []


async def test_a_new_time_moves_it(world, stored_in):
    here = await world(**stored_in)
    [one] = await here.pet.check_ins.list(user=ANA)
    moved = planned("", "2026-11-24T18:00", id=one.id[:8])
    await here.tells("It was moved to Tuesday", moved)
    assert await here.asks(HOW, at=EVENING) == 0
    assert await here.planned() == ["her exam"]
    assert await here.asks(HOW, at=EVENING.replace(day=24)) == 1


TOO_FAR = ("Friday or so", "", "2026-11-12T18:00", "2031-01-01T18:00", "9" * 300, "none")


@pytest.mark.parametrize("after", ["2026-11-23", *TOO_FAR])
async def test_a_day_is_asked_about_in_its_evening_and_a_time_that_is_none_or_too_far_off_never(world, after):
    here = await world(planned(after=after))
    assert [one.due for one in await here.pet.check_ins.list(user=ANA)] == [EVENING] * (after not in TOO_FAR)


async def test_one_new_thing_is_planned_a_consolidation_and_no_more_than_enough(world):
    two = planned()
    two["follow_ups"] *= 2
    here = await world(two)
    assert await here.planned() == ["her exam"]
    for number in range(MOST_PLANNED + 3):
        await here.tells(f"Thing {number}", planned(f"thing {number}"))
    assert len(await here.planned()) == MOST_PLANNED


async def test_it_waits_for_the_morning_of_the_person_and_a_day_between_two(world):
    here = await world(planned(after="2026-11-23T22:30"))
    await here.pet.people.set_context("timezone", "Asia/Tokyo", user=ANA)
    here.clock.now = datetime(2026, 11, 23, 20, 30, tzinfo=UTC)  # 05:30 in Tokyo
    await here.tells("Another thing", planned("another", "2026-11-24T06:00"))
    assert await here.asks(HOW, at=datetime(2026, 11, 23, 22, 30, tzinfo=UTC)) == 0

    assert await here.asks(HOW, at=datetime(2026, 11, 24, 0, 0, tzinfo=UTC)) == 1
    assert await here.asks(HOW, at=datetime(2026, 11, 24, 9, 0, tzinfo=UTC)) == 0
    [left] = await here.pet.check_ins.list(user=ANA)
    assert left.due == datetime(2026, 11, 25, 0, 0, tzinfo=UTC)
    assert await here.asks(HOW, at=left.due) == 1


async def test_after_two_without_a_word_none_is_sent_until_they_write(world):
    here = await world()
    for day in (24, 25, 26):
        await here.tells(f"Thing {day}", planned(f"thing {day}", f"2026-11-{day}T18:00"))
    sent = [await here.asks(HOW, at=EVENING.replace(day=day)) for day in (23, 24, 25)]
    assert sent == [1, 1, 0]
    here.clock.advance(hours=1)
    await here.tells("Hello again")
    assert await here.asks(HOW, at=EVENING.replace(day=26)) == 1


async def test_a_sender_for_one_whole_id_gets_nothing_of_longer_ids(world):
    here, other = await world(), Messenger()
    here.pet.check_ins.register("discord:", other)()
    here.pet.check_ins.register("", here.messenger)
    here.pet.check_ins.register("discord", other)
    assert await here.asks(HOW, at=EVENING) == 1
    assert (len(here.messenger.sent), other.sent) == (1, [])


SLACK = "slack:T:U"


async def link(here: World) -> None:
    """Ana's account on Slack is linked, and wants check-ins too."""
    here.pet.check_ins.register("slack:", here.messenger)
    await here.pet.check_ins.want(True, user=SLACK)
    await here.pet.people.link(await here.pet.people.link_code(user=ANA), user=SLACK)


async def test_linked_accounts_are_one_person_who_is_asked_about_a_thing_once(world, stored_in):
    here = await world(**stored_in)
    await link(here)
    await here.pet.respond("My exam is on Monday, you know", user=SLACK, author="Ana")
    await here.pet.settle()
    assert "her exam" in here.consolidator.asked[-1], "so that it is not planned again"
    [one] = await here.pet.check_ins.list(user=SLACK)
    here.consolidator.answers.append(planned("", "2026-11-24T18:00", id=one.id[:8]))
    await here.pet.respond("It was moved to Tuesday", user=SLACK, author="Ana")
    await here.pet.settle()
    assert await here.planned() == ["her exam"]
    assert await here.asks(HOW, at=EVENING) == 0
    assert await here.asks(HOW, at=EVENING.replace(day=24)) == 1
    assert [sent.user for sent in here.messenger.sent] == [SLACK], "where the new time was told"


async def test_linked_accounts_are_asked_once_a_day_and_no_third_time_without_an_answer(world, stored_in):
    here = await world(**stored_in)
    await link(here)
    for day, user in ((23, SLACK), (25, SLACK), (25, ANA)):
        here.consolidator.answers.append(planned(f"thing {day} {user}", f"2026-11-{day}T18:00"))
        await here.pet.respond(f"Thing {day}", user=user, author="Ana")
        await here.pet.settle()
    sent = [await here.asks(HOW, HOW, HOW, at=EVENING.replace(day=day)) for day in (23, 24, 25)]
    assert sent == [1, 1, 0]
    assert {one.user for one in here.messenger.sent} == {ANA, SLACK}


async def test_it_is_the_persons_cost_and_waits_where_they_have_none_left(world, rows):
    here = await world(consolidate_per_day=2)
    here.clock.now = EVENING
    await here.pet.components.consolidation_budget.spend(ANA)
    await here.pet.components.consolidation_budget.spend(ANA)
    assert await here.asks(HOW) == 0
    morning = datetime(2026, 11, 24, 9, tzinfo=UTC)
    assert await here.asks(HOW, at=morning) == 1
    assert {"value": 1} in rows("SELECT value FROM figures WHERE name = 'consolidation calls 2026-11-24'")


async def test_a_model_that_is_away_is_asked_again_and_nothing_is_counted(world):
    here = await world()
    assert await here.asks(ModelUnavailable("away"), at=EVENING) == 0
    assert await here.planned() == ["her exam"]
    assert await here.asks(HOW) == 0
    here.clock.advance(hours=1)
    assert await here.asks(HOW) == 1


async def test_a_killed_process_sends_nothing_twice(world, open_pet, end_claims):
    here = await world()

    async def dies(asked: CheckInMessage) -> str:
        here.messenger.sent.append(asked)
        raise Killed

    here.pet.check_ins.register("discord:", dies)
    with pytest.raises(Killed):
        await here.asks(HOW, at=EVENING)
    end_claims()
    second = await open_pet(given=here.talker, consolidating=here.consolidator)
    second.check_ins.register("discord:", here.messenger)
    assert await second.check_ins.run() == 0
    assert len(here.messenger.sent) == 1


async def test_what_is_forgotten_while_the_model_writes_is_not_asked(world):
    here = await world()
    here.talker._hold = "you planned to ask about"
    asking = asyncio.create_task(here.asks(HOW, at=EVENING))
    await here.talker.held.wait()
    await here.pet.conversations.forget((await _exam(here)).id, user=ANA)
    here.talker.release.set()
    assert (await asking, here.messenger.sent, await here.planned()) == (0, [], [])


async def test_several_processes_ask_once(world, open_pet):
    here = await world()
    other = await open_pet(given=here.talker)
    other.check_ins.register("discord:", here.messenger)
    here.clock.now = EVENING
    here.talker.answers[:] = [HOW, HOW]
    assert sum(await asyncio.gather(here.pet.check_ins.run(), other.check_ins.run())) == 1


async def test_a_question_that_was_sent_goes_with_the_message_that_it_follows(world):
    here = await world()
    await here.asks(HOW, at=EVENING)
    removed = list[str]()

    async def remove(post: str) -> None:
        removed.append(post)

    await here.pet.conversations.forget((await _exam(here)).id, user=ANA)
    await here.pet.conversations.delete_forgotten("discord:", remove)
    assert removed == ["discord:9:1"]
    assert "How did" not in str(await here.pet.conversations.messages(user=ANA))


async def test_the_reply_to_the_message_stays_the_one_that_an_edit_changes(world):
    here = await world()
    await here.asks(HOW, at=EVENING)
    sent = await here.pet.conversations.sent("discord:7:1")
    assert sent
    assert sent.reply
    assert sent.reply.text == "I see."


async def test_its_trace_is_shown_explained_and_replayed(world):
    here = await world()
    await here.asks(HOW, at=EVENING)
    await here.pet.components.recorder.flush()
    [trace] = await here.pet.traces.list(TraceFilter(user=ANA), here.clock.now, limit=1)
    assert (trace.said, trace.reply) == ("her exam", "How did the exam go?")
    whole = await here.pet.traces.get_with_jobs(trace.id, here.clock.now)
    assert (await replay(here.pet, whole)).differences == ()


COUNTED = list[str]()
WORLDS = [pytest.param(range(5)), pytest.param(range(5, 200), marks=pytest.mark.slow)]


@pytest.mark.parametrize("seeds", WORLDS)
async def test_in_random_worlds_nobody_is_written_to_who_did_not_ask_nor_too_often_nor_in_vain(
    open_pet, clock, seeds
):
    """Counted by what the people did, not by what is stored."""
    pet = await open_pet()
    for seed in seeds:
        await RandomWorld(pet, clock, random.Random(seed), f"w{seed}:").live()
    assert len(COUNTED) > len(seeds), "people were asked at all"
    COUNTED.clear()


@dataclass
class PlannedQuestion:
    id: str
    after: datetime
    forgotten: bool = False


@dataclass
class Human:
    user: str
    zone: ZoneInfo
    wants: bool = False
    questions: list[PlannedQuestion] = field(default_factory=list)
    sent: list[datetime] = field(default_factory=list)
    wrote: datetime = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass
class RandomWorld:
    """Three people live for some weeks, by chance; each message is judged when it is sent."""

    pet: Companion
    clock: FixedClock
    chance: random.Random
    prefix: str

    def __post_init__(self) -> None:
        zones = [ZoneInfo(name) for name in ("Europe/Paris", "Asia/Tokyo", "America/Lima")]
        self.people = {f"{self.prefix}{zone.key}": Human(f"{self.prefix}{zone.key}", zone) for zone in zones}
        self.service = CheckInService(self.pet.components, self._turn)

    async def live(self) -> None:
        stop = self.service.register(self.prefix, self._judge)
        for human in self.people.values():
            await self.pet.people.set_context("timezone", human.zone.key, user=human.user)
        acts = [self._want, self._tell, self._tell, self._tell, self._forget, self._write]
        for _ in range(40):
            self.clock.advance(minutes=self.chance.choice([1, 30, 200, 700, 1500]))
            await self.chance.choice(acts)(self.chance.choice([*self.people.values()]))
            self.clock.advance(minutes=1)
            await self.service.run()
        stop()

    async def _want(self, human: Human) -> None:
        human.wants = self.chance.random() < 0.8
        await self.service.want(human.wants, user=human.user)
        human.questions = human.questions if human.wants else []

    async def _say(self, human: Human, text: str) -> str:
        message, now = Message(new_id(), f"dm:{human.user}", "user", "Ana", text, self.clock()), self.clock()
        async with self.pet.components.database.write() as connection:
            append = self.pet.components.transcript.append
            await append(connection, message, user=human.user, place=PRIVATE, now=now)
        human.wrote = now
        return message.id

    async def _tell(self, human: Human) -> None:
        """As a consolidation does, of those who want it; later than they said it."""
        id, now = await self._say(human, f"Thing {self.chance.random()}"), self.clock()
        if await self.service.wanted(user=human.user):
            after = now + timedelta(minutes=self.chance.choice([1, 60, 600, 1440, 4000]))
            human.questions.append(PlannedQuestion(id, after))
            async with self.pet.components.database.write() as connection:
                await check_ins.plan(connection, human.user, id, after, [id], f"dm:{human.user}", now)

    async def _write(self, human: Human) -> None:
        await self._say(human, "Hello")

    async def _forget(self, human: Human) -> None:
        if human.questions:
            question = self.chance.choice(human.questions)
            if not question.forgotten:
                await self.pet.conversations.forget(question.id, user=human.user)
            question.forgotten = True

    async def _turn(self, request: TurnRequest) -> Reply:
        silent = self.chance.random() < 0.2
        reply = Reply("", (), (), "", "", 1, None if silent else new_id())
        if not silent:
            message = Message(reply.message_id, f"dm:{request.user}", "assistant", "hachi", "?", self.clock())
            async with self.pet.components.database.write() as connection:
                append = self.pet.components.transcript.append
                await append(connection, message, user=request.user, place=PRIVATE, now=self.clock())
        return reply

    async def _judge(self, asked: CheckInMessage) -> bool:
        human, now = self.people[asked.user], self.clock()
        [question] = [question for question in human.questions if question.id == asked.check_in.about]
        assert human.wants
        assert not question.forgotten
        assert question.after <= now
        assert human.wrote < question.after, "they have written since"
        local = now.astimezone(human.zone)
        assert 9 <= local.hour < 20
        assert all(now - last >= timedelta(days=1) for last in human.sent)
        assert local.date() not in [last.astimezone(human.zone).date() for last in human.sent]
        assert len([last for last in human.sent if last > human.wrote]) < 2
        human.sent.append(now)
        COUNTED.append(question.id)
        return True
