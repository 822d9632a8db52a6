"""Draw docs/chat.svg: what the Discord bot posts in a talk, on the small Discord of the tests.

    python docs/chat_picture.py [FILE]

What people write and what the model answers is a script, below. The small print and the buttons are what the
bot made of it.
"""

import asyncio
import re
import sys
import textwrap
import warnings
from datetime import UTC, datetime
from html import escape
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "tests/doubles"))
warnings.simplefilter("ignore", DeprecationWarning)  # of audioop, for voice, which is not used

import discord  # noqa: E402
from discord_server import ANA, BEN, BOT, GENERAL, NAMES, TOKEN, DiscordServer  # noqa: E402

from agent.surfaces.bots.discord.bot import DiscordBot  # noqa: E402
from hachi.testing import AnsweringModel, temporary_companion, tool_call  # noqa: E402

ROOM = {"content": "The choir meets on Tuesdays at six, in room 4", "subjects": ["choir"], "importance": 0.8}
ONION = {"content": "Ben is allergic to onions", "subjects": ["ben"], "importance": 0.9}
TALK: list[tuple[int, str, list[Any]]] = [
    (
        ANA,
        "the choir meets on Tuesdays at six, in room 4",
        [{"message": "Noted: Tuesdays at six, room 4.", "memories": [ROOM]}],
    ),
    (
        BEN,
        "when is choir? and what shall I bring for supper? I'm allergic to onions",
        [
            tool_call("search_memories", query="when the choir meets"),
            {
                "message": "Tuesdays at six, in room 4, as Ana said. For supper: anything without onions.",
                "memories": [ONION],
            },
        ],
    ),
]
WIDTH, LEFT, LINE, SMALL = 760, 70, 22, 18
COLOURS = {ANA: "#e67e22", BEN: "#2e86c1", BOT: "#6b4f3a"}


async def talk() -> list[tuple[int, str, list[str]]]:
    """Hold the talk. Return who wrote what, with the labels of the buttons below."""
    shown: list[tuple[int, str, list[str]]] = []
    model = AnsweringModel(*(step for _, _, steps in TALK for step in steps))
    async with DiscordServer.running() as platform, temporary_companion(model=model) as pet:
        discord.http.Route.BASE = f"http://{platform.address}/api/v10"
        platform.flags = 1 << 18
        client = DiscordBot(pet, lambda _: None, guild_ready_timeout=0.02)
        running = asyncio.create_task(client.start(TOKEN))
        await client.online.wait()
        for who, text, _ in TALK:
            before = len(platform.posted(GENERAL))
            await platform.say(f"<@{BOT}> {text}", by=who, channel=GENERAL)
            await platform.until(lambda: len(platform.posted(GENERAL)) > before)  # noqa: B023 - awaited here
            await client.conversations.settle()
            shown.append((who, f"@Hachi {text}", []))
            for posted in platform.posted(GENERAL)[before:]:
                shown.append((BOT, posted.text, [button["label"] for button in posted.buttons]))
        await client.leave()
        await asyncio.gather(running, return_exceptions=True)
    return shown


def draw(shown: list[tuple[int, str, list[str]]]) -> str:
    parts, y = [], 20
    for who, text, buttons in shown:
        y += 18
        parts.append(f'<circle cx="38" cy="{y + 4}" r="18" fill="{COLOURS[who]}"/>')
        parts.append(f'<text x="38" y="{y + 10}" class="initial">{NAMES[who][0]}</text>')
        parts.append(f'<text x="{LEFT}" y="{y}" class="name" fill="{COLOURS[who]}">{NAMES[who]}</text>')
        for line in text.splitlines():
            small = line.startswith("-# ")
            for piece in textwrap.wrap(_plain(line.removeprefix("-# ")), 100 if small else 84):
                y += SMALL if small else LINE
                kind = "small" if small else "said"
                parts.append(f'<text x="{LEFT}" y="{y}" class="{kind}">{escape(piece)}</text>')
        x, y = LEFT, y + (10 if buttons else 0)
        for label in buttons:
            width = 9 * len(label) + 22
            parts.append(f'<rect x="{x}" y="{y}" width="{width}" height="28" rx="6" class="button"/>')
            parts.append(f'<text x="{x + width / 2}" y="{y + 19}" class="label">{escape(label)}</text>')
            x += width + 8
        y += (28 if buttons else 0) + 22
    style = (
        "text{font:15px sans-serif;fill:#2c2f33}.name{font-weight:bold}.small{font-size:12.5px;fill:#6d737a}"
        ".initial{font-weight:bold;fill:#fff;text-anchor:middle}.button{fill:#e3e5e8}"
        ".label{font-size:13px;text-anchor:middle}"
    )
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {y}" width="{WIDTH}" height="{y}">'
    title = "<title>What the bot posts in a channel, drawn by docs/chat_picture.py</title>"
    return "\n".join(
        [
            head,
            title,
            f"<style>{style}</style>",
            '<rect width="100%" height="100%" rx="8" fill="#fff"/>',
            *parts,
            "</svg>\n",
        ]
    )


def _plain(text: str) -> str:
    """The text as Discord shows it: times as dates, and no marks."""
    text = re.sub(
        r"<t:(\d+)(?::\w)?>", lambda found: f"{datetime.fromtimestamp(int(found[1]), UTC):%d %B %Y}", text
    )
    return re.sub(r"\\(?=\W)|\*\*", "", text)


if __name__ == "__main__":
    picture = Path(sys.argv[1]) if sys.argv[1:] else HERE / "chat.svg"
    picture.write_text(draw(asyncio.run(talk())), "utf-8")
