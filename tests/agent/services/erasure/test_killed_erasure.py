"""An erasure goes on where it was killed, and nothing of the person is left in any byte of the home."""

import asyncio
import signal
import subprocess
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from hachi import Companion, Settings

OpenPet = Callable[..., Awaitable[Companion]]
Rows = Callable[..., list[dict[str, Any]]]

ERASE_AND_DIE = """
import asyncio, importlib, os, signal, sys
from pathlib import Path
import pytest

from hachi import Companion, Settings

module, _, path = sys.argv[2].partition(":")
owner = importlib.import_module(module)
*classes, name = path.split(".")
for one in classes:
    owner = getattr(owner, one)
real = getattr(owner, name)

def die():
    os.kill(os.getpid(), signal.SIGKILL)

if asyncio.iscoroutinefunction(real):
    async def killed(*given, **named):
        await real(*given, **named)
        die()
else:
    def killed(*given, **named):
        die()

async def main():
    async with Companion.open(Settings(home=Path(sys.argv[1]), embedder="bundled"), upkeep=False) as pet:
        setattr(owner, name, killed)
        await pet.people.erase(user="anna.q")

asyncio.run(main())
"""

ERASURE = "memory.forgetting.person:Erasure"
OUTSIDE = "agent.services.erasure.outside_sql:ErasureOutsideSql"
STAGES = (
    "memory.forgetting.purge:Purge.delete",  # first: what is hidden is purged when the next process starts
    f"{ERASURE}._hide",
    f"{OUTSIDE}.clean",
    f"{ERASURE}._purge",
    f"{ERASURE}._delete_rows",
    f"{ERASURE}._delete_documents",
    "memory.index.embedded.index:EmbeddedIndex.remove",
    "memory.index.embedded.index:files.settle",  # the copy is complete, and not in its place yet
    f"{ERASURE}._clean_index",
    "memory.sql.engine:Database.vacuum",
)
SECRETS = (b"zebrafish", b"anna.q", b"Otto", b"lighthouse")


async def fill(pet: Companion) -> None:
    for number in range(3):
        await pet.respond(f"my zebrafish number {number} is called Otto", user="anna.q", settle=True)
        await pet.remember(f"Anna's zebrafish {number} lives in a bowl", user="anna.q", place="acme")
        await pet.respond("hello", user="ben", place="acme")
    await pet.remember("Ben rows on Sundays", user="ben")
    await pet.documents.add("lights.md", "# Lights\n\nThe lighthouse is green.", user="anna.q")
    await pet.search_memories("zebrafish", user="anna.q")
    await pet.documents.search("lighthouse", user="anna.q")
    await pet.settle()


def holding(home: Path) -> dict[str, list[bytes]]:
    found = {
        str(path.relative_to(home)): [one for one in SECRETS if one in path.read_bytes()]
        for path in home.rglob("*")
        if path.is_file()
    }
    return {path: secrets for path, secrets in found.items() if secrets}


@pytest.mark.slow
async def test_an_erasure_that_is_killed_at_every_stage_finishes(
    open_pet: OpenPet, home: Path, rows: Rows
) -> None:
    async with Companion.open(Settings(home=home, embedder="bundled"), upkeep=False) as before:
        await fill(before)
    assert "hachi.db" in holding(home)

    for stage in STAGES:
        command = [sys.executable, "-W", "ignore", "-c", ERASE_AND_DIE, str(home), stage]
        ran = await asyncio.to_thread(subprocess.run, command, capture_output=True, timeout=60, check=False)
        assert ran.returncode == -signal.SIGKILL, (stage, ran.stderr)
        assert [row["user_id"] for row in rows("SELECT user_id FROM erasures")] == ["anna.q"], stage

    pet = await open_pet()
    receipt = await pet.people.erase(user="anna.q")

    assert receipt.verified, receipt.left
    assert receipt.removed["messages"] == 6
    assert receipt.removed["memories"] >= 3
    assert rows("SELECT * FROM erasures") == []
    assert holding(home) == {}
    assert [memory.content for memory in await pet.memories.list(user="ben")] == ["Ben rows on Sundays"]
    assert len(rows("SELECT id FROM messages")) == 6
    assert (await pet.people.erase(user="anna.q")).removed == {}
