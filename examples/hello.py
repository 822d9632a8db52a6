"""The whole in miniature: tell, ask, change, keep private, let expire, take away.

    python examples/hello.py

It runs in a folder of its own that is gone afterwards, and its clock is moved on by hand.
"""

import asyncio
from datetime import UTC, datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory

from hachi import Companion, Settings

now = datetime(2026, 1, 12, 9, tzinfo=UTC)


async def main(home: Path) -> None:
    global now
    settings = Settings.load(home=home)
    async with Companion.open(settings, clock=lambda: now, periodic_jobs=False) as pet:
        reply = await pet.respond("I live in Paris", user="mickael")
        print(reply.message)
        print((await pet.respond("where do I live?", user="mickael")).message)

        now += timedelta(days=30)
        [told] = reply.memories
        moved = await pet.remember("Mickael moved to Lyon", user="mickael", replaces=told.id)
        await pet.remember("Mickael's train leaves at 9:15", user="mickael", ttl="1d")
        print(f"{moved.action}: {moved.content} ({moved.reason})")

        in_the_channel = await pet.memories.list(user="mickael", place="acme/general")
        print(f"private: {len(await pet.memories.list(user='mickael'))}, in a channel: {len(in_the_channel)}")

        now += timedelta(days=2)
        print(f"expired: {[memory.content for memory in await pet.admin.purge()]}")
        for memory in await pet.memories.list(user="mickael"):
            await pet.memories.forget(memory.id, user="mickael")
        print(f"left: {await pet.memories.list(user='mickael')}")


if __name__ == "__main__":
    with TemporaryDirectory() as folder:
        asyncio.run(main(Path(folder)))
