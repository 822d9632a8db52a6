"""A process that talks with its companion until it is killed: `talkative.py HOME URL freeze|go on`.

It writes a line for each reply. With `freeze` it blocks after the first, so that nothing runs in the
background.
"""

import asyncio
import sys
import time
from itertools import count
from pathlib import Path

from hachi import Companion, Settings


async def main(home: str, url: str, manner: str) -> None:
    settings = Settings(home=Path(home), embedder="bundled", openai_base_url=url, model="tiny", api="chat")
    async with Companion.open(settings) as pet:
        for number in count():
            reply = await pet.respond(f"Story {number}", user="ana")
            sys.stdout.write(f"{number} {reply.message_id}\n")
            sys.stdout.flush()
            if manner == "freeze":
                time.sleep(60)  # noqa: ASYNC251 - nothing else is to run


asyncio.run(main(*sys.argv[1:]))
