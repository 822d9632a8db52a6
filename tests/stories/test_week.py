"""A week of Ana and Ben with one companion on Discord and Slack, and the files that nobody should send."""

import json
import re
import wave
from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import UTC, datetime
from io import BytesIO
from pathlib import Path
from typing import Any

import mcp_weather
import pytest
from discord_server import ANA, BEN, BOT, DM, GENERAL, GUILD, RANDOM, DiscordServer, Posted
from PIL import Image
from scripted_server import CONSOLIDATES, Asked, Call, Fail, Say, ScriptedServer, answer
from slack_server import SlackServer, buttons_of

from agent.surfaces.bots.attachments.attachment import too_large
from agent.surfaces.bots.attachments.read import BROKEN
from agent.surfaces.bots.attachments.transcriber import NO_WORDS
from agent.turn.mcp_servers import connection
from hachi import Companion
from hachi.testing import FixedClock
from memory.audience import Place
from tests.agent.surfaces.bots.attachments.test_scale import bomb, written
from tests.agent.surfaces.bots.attachments.test_transcriber import Server as Transcriber
from tests.agent.surfaces.bots.attachments.test_transcriber import server as transcriber
from tests.agent.surfaces.bots.discord.conftest import go_online as on_discord
from tests.agent.surfaces.bots.discord.conftest import platform
from tests.agent.surfaces.bots.slack.conftest import go_online as on_slack
from tests.agent.surfaces.bots.slack.conftest import settings, slack

__all__ = ["on_discord", "on_slack", "platform", "settings", "slack", "transcriber"]

ANA_ID, BEN_ID, SLACK_ANA, SLACK_BEN = f"discord:{ANA}", f"discord:{BEN}", "slack:T1:UANA", "slack:T1:UBEN"
CHANNEL = Place(("discord", str(GUILD), str(GENERAL)))
CAT = "A grey cat asleep on a red sofa"
EXAM, TEST, SECRET = "My botany exam is on Monday", "My driving test is on Friday", "I plan to quit the choir"
PLANS = {
    EXAM: ("the botany exam", "2026-11-23T17:00"),
    TEST: ("the driving test", "2026-11-27T17:00"),
    "My interview is on Monday": ("the interview", "2026-11-23T17:00"),
}


def consolidated(asked: Asked) -> Say | None:
    """What a capable model answers to a consolidation: what people are about to do is to be asked about."""
    if CONSOLIDATES not in asked.text:
        return None
    plans = [
        {"about": about, "after": after, "messages": [int(found[1])]}
        for said, (about, after) in PLANS.items()
        if (found := re.search(rf"\((\d+)\) .*{said}", asked.text))
    ]
    return Say(json.dumps({"summary": "They talked.", "follow_ups": plans}))


def searches(words: str) -> Call:
    return Call("search_memories", {"query": words})


@dataclass
class World:
    pet: Companion
    clock: FixedClock
    server: ScriptedServer
    transcriber: Transcriber
    discord: Any
    slack: Any
    chat: DiscordServer
    workspace: SlackServer
    clouds: Path

    async def says(self, text: str, *answers: Any, by: int = ANA, channel: int = DM, **more: Any) -> str:
        """Somebody writes on Discord, and the model answers so. Returns what stands there then."""
        self.server.script(*answers)
        text = text if channel == DM else f"<@{BOT}> {text}"
        await self.discord.hears(text, by=by, channel=channel, **more)
        await self.pet.settle()
        assert self.server.unused == 0
        return self.chat.shown(channel)[-1]

    async def slacks(self, user: str, text: str, *answers: Any) -> str:
        """The same in direct messages on Slack."""
        self.workspace.epoch = int(self.clock().timestamp())
        self.server.script(*answers)
        await self.slack.hears(self.workspace.says(user, text, channel=f"D{user[1:]}"))
        await self.pet.settle()
        return self.workspace.in_channel(f"D{user[1:]}")[-1].text

    async def command(self, name: str, **options: str) -> str:
        return (await self.chat.answered(await self.chat.command(name, **options))).text

    async def pressed(self, label: str) -> Posted:
        """Ana presses the last button with this label in her direct messages on Discord."""
        on = next(one for one in reversed(self.chat.posted(DM)) if label in str(one.buttons))
        return await self.chat.answered(await self.chat.press(on, label))

    async def on_slack(self, payload: dict[str, Any]) -> dict[str, Any]:
        """The answer to a command or a button on Slack."""
        before = len(self.workspace.responses)
        await self.workspace.deliver(payload)
        await self.workspace.until(lambda: len(self.workspace.responses) > before)
        return self.workspace.responses[-1]

    async def asks(self, question: str) -> int:
        """How many questions are sent where the model would ask this."""
        self.server.script(answer(question))
        sent = await self.pet.check_ins.run()
        self.server.clear()
        return sent

    @property
    def shown(self) -> str:
        """What the tools gave the model for the last reply."""
        return "\n".join(self.server.asked[-1].results)


@pytest.fixture
async def second() -> AsyncIterator[ScriptedServer]:
    async with ScriptedServer.running() as running:
        yield running


@pytest.fixture
async def pet(open_pet: Any, server: Any, second: Any, transcriber: Any, tmp_path: Path) -> Companion:
    """With all switched on that a person may be glad of, and Ana as admin of a server of tools."""
    (clouds := tmp_path / "clouds").touch()
    sky = mcp_weather.BADLY | {"env": {"CLOUDS": str(clouds)}}
    servers = tmp_path / "servers.json"
    servers.write_text(json.dumps({"mcpServers": {"sky": sky}, "admins": [ANA_ID]}))
    model = {"openai_base_url": server.url, "openai_api_key": "sk-test", "model": "tiny", "api": "chat"}
    other = {"fallback_model": f"spare@{second.url}", "fallback_key": "sk-second", "model_retries": 0}
    senses = {"images": True, "transcriber": f"whisper@{transcriber.url}"}
    return await open_pet(**model, **other, **senses, read_places=True, mcp=servers)  # type: ignore[no-any-return]


@pytest.fixture
async def world(
    pet: Any, clock: Any, server: Any, transcriber: Any, on_discord: Any, on_slack: Any, tmp_path: Path
) -> World:
    server.refuses = consolidated
    bots = await on_discord(), await on_slack()
    return World(pet, clock, server, transcriber, *bots, bots[0].platform, bots[1].slack, tmp_path / "clouds")


async def saturday(here: World) -> None:
    """Ana shows her cat and tells of an exam; Ben tells of an interview, and did not ask to be asked."""
    cat = here.chat.attach("cat.png", "image/png", written(Image.new("RGB", (4_000, 3_000), "grey"), "PNG"))
    seen = Say(json.dumps({"message": "Fluffy!", "memories": [], "seen": CAT}))
    assert await here.says("look", seen, attachments=[cat]) == "Fluffy!"
    assert "image_url" in str(here.server.asked[-1].json["messages"][-1])
    await here.command("checkins", to="on")
    await here.says(EXAM, answer("Good luck!"))
    await here.slacks("UBEN", "My interview is on Monday", answer("I see."))
    noted = answer("Noted.", {"content": "The seminar is in room B12"})
    await here.says("The room is B12", noted, by=BEN, channel=GENERAL)
    await here.says("hello", answer("Hello."), channel=GENERAL)
    await here.says("a word of the board", answer("Yes."), by=BEN, channel=RANDOM)
    await here.says(SECRET, answer("I see.", {"content": "Ana plans to quit the choir"}))
    assert "the botany exam" in await here.command("checkins")


async def sunday(here: World) -> None:
    """A voice message is a task; then Ana links her account on Slack, where she is known at once."""
    here.clock.advance(days=1)
    here.transcriber.answers = [json.dumps({"text": "Remind me to buy milk in an hour."})]
    voice = here.chat.attach("voice-message.ogg", "audio/ogg", b"OggS")
    spoken = {"attachments": [voice | {"duration_secs": 3.6, "waveform": "AA=="}], "flags": 1 << 13}
    task = {"id": None, "description": "buy milk", "status": "open", "due": "in 1 hour"}
    assert "buy milk" in await here.says("", Call("update_task", task), answer("I will."), **spoken)
    assert here.server.asked[-1].conversation[-1][1] == "(spoken, 0:04) Remind me to buy milk in an hour."
    here.clock.advance(hours=1)
    assert await here.pet.reminders.run() == 1
    assert "⏰ “buy milk”" in here.chat.shown(DM)[-1]
    await here.pressed("Done")
    assert await here.pet.tasks.list(user=ANA_ID) == []

    [code] = set(re.findall(r"\b\w{5}-\w{5}\b", await here.command("link")))
    question = await here.on_slack(here.workspace.command("/hachi-link", code, user="UANA", channel="DANA"))
    yes = next(one for one in buttons_of(question["blocks"]) if code in one.get("value", ""))
    await here.on_slack(here.workspace.pressed(yes, user="UANA", channel="DANA"))
    assert await here.pet.people.accounts(user=SLACK_ANA) == [ANA_ID]
    await here.slacks("UANA", "what about the choir?", searches("choir"), answer("You plan to quit it."))
    assert SECRET in here.shown
    await here.slacks("UBEN", "what about the choir?", searches("choir"), answer("No idea."))
    assert "quit" not in here.shown


async def monday(here: World) -> None:
    """Ana is asked how her exam went, once; nobody else is asked anything."""
    here.clock.now = datetime(2026, 11, 23, 18, tzinfo=UTC)
    assert [await here.asks("How did the exam go?") for _ in range(3)] == [1, 0, 0]
    await here.says("I passed", answer("Well done!"))
    here.clock.advance(days=1)
    assert await here.asks("Any news?") == 0


async def tuesday(here: World) -> None:
    """What Ben told in the channel is known to Ana in private; what she told in private, nowhere else."""
    await here.says("which room?", searches("room of the seminar"), answer("B12."))
    assert "room B12" in here.shown
    assert "#general" in here.shown
    assert "board" not in here.shown, "Ana never wrote there"
    for by in (ANA, BEN):
        await here.says("the choir?", searches("choir"), answer("I do not know."), by=by, channel=GENERAL)
        assert "quit" not in here.shown
    assert "quit" not in str(await here.pet.memories.list(user=BEN_ID, place=CHANNEL))
    assert "quit" not in str(await here.pet.conversations.messages(user=BEN_ID, place=CHANNEL))


async def wednesday(here: World) -> None:
    """The first model is away, and the second answers."""
    assert await here.slacks("UBEN", "are you there?", Fail(503)) == "I stand in."
    here.clock.advance(hours=1)


async def thursday(here: World) -> None:
    """A server of tools hangs, which costs its call an error; a call that Ana confirms runs once."""
    await here.says("the sky?", Call("sky_hang"), answer("It does not answer."))
    assert here.shown == '{"error": "sky failed: it does not answer in time"}'
    await here.says("move the clouds", Call("sky_move_clouds", {"town": "Lyon"}), answer("I have asked you."))
    question = here.chat.posted(DM)[-1]
    assert ("town: Lyon" in question.text, here.clouds.read_text()) == (True, "")
    here.server.script(answer("The clouds are there."))
    pressed = [await here.chat.press(question, "Yes") for _ in range(2)]
    assert len({(await here.chat.answered(one)).text for one in pressed}) == 2, "the second comes too late"
    await here.chat.until(lambda: "The clouds are there." in here.chat.shown(DM)[-1])
    assert here.clouds.read_text().splitlines() == ['{"town": "Lyon"}']


async def friday(here: World) -> None:
    """What Ana would be asked about is forgotten a minute before; the cat of Saturday is still known."""
    await here.says(TEST, answer("Good luck!", {"content": "Ana's driving test is on Friday"}))
    assert "the driving test" in await here.command("checkins")
    here.clock.now = datetime(2026, 11, 27, 16, 59, tzinfo=UTC)
    asked = await here.pressed("Forget")
    await here.chat.answered(await here.chat.press(asked, asked.buttons[0]["label"]))
    assert "driving" not in str(await here.pet.memories.list(user=ANA_ID))
    here.clock.advance(minutes=2)
    assert await here.asks("Any news?") == 0
    await here.says("what was on my photo?", searches("photo of a cat"), answer("Your cat, asleep."))
    assert CAT in here.shown


async def test_a_week(world: World, second: ScriptedServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "CALL_SECONDS", 0.5)
    second.script(answer("I stand in."))
    for day in (saturday, sunday, monday, tuesday, wednesday, thursday, friday):
        await day(world)
    shown = [text.partition("\n")[0] for text in world.chat.shown(DM)]
    assert [*shown[:4], *shown[5:7]] == [
        *("Fluffy!", "Good luck!", "I see.", "I will.", "How did the exam go?", "Well done!")
    ]
    assert shown[7:10] == ["B12.", "It does not answer.", "I have asked you."]
    assert shown[11:] == ["The clouds are there.", "Your cat, asleep."]
    posted = [(one.channel, one.text) for one in world.workspace.messages]
    assert [text for channel, text in posted if channel == "DANA"] == ["You plan to quit it."]
    assert [text for channel, text in posted if channel == "DBEN"] == ["I see.", "No idea.", "I stand in."]
    texts = [one.text for one in await world.pet.conversations.messages(user=SLACK_ANA, limit=100)]
    assert f"look\n\n[picture cat.png]\n[the picture shows: {CAT}]" in texts, "on her other account, too"
    assert TEST not in texts
    assert await world.pet.memories.list(user=SLACK_BEN) == []
    assert world.chat.refused == []


def silence() -> bytes:
    out = BytesIO()
    with wave.open(out, "wb") as file:
        file.setparams((1, 2, 8_000, 8_000, "NONE", ""))
        file.writeframes(bytes(16_000))
    return out.getvalue()


@pytest.mark.parametrize(
    ("name", "kind", "content", "heard", "told"),
    [
        ("scan.tiff", "image/tiff", b"II*\0" + bytes(30_000_000), "", "image/tiff"),
        ("scan.png", "image/png", b"II*\0" + bytes(30_000_000), "", too_large(20_000_000)),
        ("scan.png", "image/png", written(Image.new("L", (4_000, 4_000)), "TIFF"), "", BROKEN),
        ("bomb.png", "image/png", bomb(60_000, 60_000), "", "too many pixels"),
        ("silent.wav", "audio/wav", silence(), '{"text": " "}', NO_WORDS),
        ("flood.wav", "audio/wav", silence(), "flood", "flood.wav"),
    ],
    ids=["tiff", "large", "disguised", "bomb", "silence", "flood"],
)
async def test_files_that_nobody_should_send_cost_a_line_in_the_reply(
    world: World, name: str, kind: str, content: bytes, heard: str, told: str
) -> None:
    world.transcriber.answers = [heard, heard]
    for size in (len(content), 1_000):  # as it is, and as who sends it claims
        file = world.chat.attach(name, kind, content) | {"size": size, "id": str(size)}
        shown = await world.says("what is it?", answer("I cannot tell."), attachments=[file])
        first, _, line = shown.partition("\n\n")
        assert (first, name in line, told in line) == ("I cannot tell.", True, True)
        assert told in world.server.asked[-1].conversation[-1][1], "the model knows why"
    assert await world.says("and now?", answer("All is well.")) == "All is well."
