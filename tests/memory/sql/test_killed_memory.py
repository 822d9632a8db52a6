"""What was acknowledged survives the process being killed, and is there once."""

from __future__ import annotations

import asyncio
import random
import signal
import subprocess
import sys
from collections import Counter
from typing import TYPE_CHECKING

from memory.audience import Audience

if TYPE_CHECKING:
    from pathlib import Path

    from memory.index.embedders.bundled import BundledEmbedder
    from memory.sql.engine import Database
    from tests.memory.conftest import StackBuilder

REMEMBER_FOR_EVER = """
import asyncio, sys
from datetime import UTC, datetime
from itertools import count
from pathlib import Path
from uuid import uuid4
from memory.audience import PRIVATE
from memory.facts.candidate import Provenance
from memory.sql.messages.summaries import ConversationSummaries
from memory.sql.engine import Database
from memory.index.embedders.bundled import BundledEmbedder
from memory.index.embedded.index import EmbeddedIndex
from memory.index.sync import IndexSync
from memory.facts.similar import SimilarFacts
from memory.records import Draft, Message
from memory.facts.writer import FactWriter
from memory.sql.memories.store import MemoryStore
from memory.sql.messages.transcript import Transcript

def now():
    return datetime.now(UTC)

async def main():
    url, folder, begin = sys.argv[1], Path(sys.argv[2]), int(sys.argv[3])
    embedder = BundledEmbedder()
    database = await Database.open(url, Path())
    index = EmbeddedIndex(folder, embedder, database.number)
    store, transcript = MemoryStore(database), Transcript(database)
    indexing = IndexSync(database, index, embedder, now)
    similar = SimilarFacts(database, store, indexing.searching.search, embedder, None)
    remembering = FactWriter(database, store, similar, indexing, now, 0.3)
    for number in count(begin):
        message = Message(str(uuid4()), "dm:anna", "user", "anna", f"I saw bird {number}", now())
        async with database.write() as connection:
            await transcript.append(connection, message, user="anna", place=PRIVATE, now=now())
        print("message", number, flush=True)
        draft = Draft(f"Anna owns boat {number}", subjects=(f"boat-{number}",))
        await remembering.remember([draft], Provenance("anna", now(), message_id=message.id))
        print("memory", number, flush=True)
        if number % 7 == 0:
            await indexing.catch_up()

asyncio.run(main())
"""


def killed_while_remembering(url: str, folder: Path, begin: int) -> list[tuple[str, int]]:
    """What it acknowledged until then."""
    command = [sys.executable, "-W", "ignore", "-c", REMEMBER_FOR_EVER, url, str(folder), str(begin)]
    enough = random.randint(20, 80)  # any moment will do, and each run finds others
    acknowledged = []
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout
        for line in process.stdout:
            acknowledged.append(line)
            if len(acknowledged) == enough:
                process.send_signal(signal.SIGKILL)
        process.wait()
    assert process.returncode == -signal.SIGKILL
    whole = [line.split() for line in acknowledged if line.endswith("\n")]
    return [(kind, int(number)) for kind, number in whole]


async def test_everything_acknowledged_survives_a_kill_once(
    database: Database,
    database_url: str,
    build_stack: StackBuilder,
    bundled: BundledEmbedder,
    tmp_path: Path,
) -> None:
    told: list[tuple[str, int]] = []
    for round_ in (0, 1):
        told += await asyncio.to_thread(
            killed_while_remembering, database_url, tmp_path / "index", round_ * 1000
        )
    stack = await build_stack(database, bundled)
    anna = Audience.of("anna")
    facts = Counter(memory.content for memory in await stack.memories())
    said = Counter(message.text for message in await stack.transcript.last("dm:anna", anna, 10_000))
    assert set(facts.values()) == set(said.values()) == {1}
    wanted = {
        "memory": {f"Anna owns boat {number}" for kind, number in told if kind == "memory"},
        "message": {f"I saw bird {number}" for kind, number in told if kind == "message"},
    }
    assert wanted["memory"] <= facts.keys()
    assert wanted["message"] <= said.keys()
    for text in wanted["memory"] | wanted["message"]:
        hits = await stack.search(text, limit=10)
        assert [hit.content for hit in hits].count(text) == 1, text
    assert await stack.indexing.due() == 0
