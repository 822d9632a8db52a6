"""Only its owner may read the data folder."""

import stat
from collections.abc import Awaitable, Callable
from pathlib import Path

from agent.services.transfer.backup import back_up, restore
from agent.wiring.home import make_private
from hachi import Companion

OpenPet = Callable[..., Awaitable[Companion]]


def readable_by_others(home: Path) -> list[str]:
    return [str(path) for path in (home, *home.rglob("*")) if stat.S_IMODE(path.lstat().st_mode) & 0o077]


async def test_files_of_a_home_are_private_when_they_are_made_and_when_they_are_opened(
    open_pet: OpenPet, home: Path
) -> None:
    pet = await open_pet()
    await pet.respond("I ski", user="ana", settle=True)
    await pet.admin.catch_up()  # or the index makes files meanwhile
    assert [path for path in readable_by_others(home) if "hachi.db" in path] == []
    for path in (home, *home.rglob("*")):  # noqa: ASYNC240 - of a test
        path.chmod(0o755 if path.is_dir() else 0o644)
    await open_pet()
    assert readable_by_others(home) == []


def test_files_of_somebody_else_are_left_alone(tmp_path: Path) -> None:
    notes = tmp_path / "notes.txt"
    notes.write_text("not Hachi's")
    notes.chmod(0o644)
    tmp_path.chmod(0o755)
    make_private(tmp_path)
    assert stat.S_IMODE(tmp_path.stat().st_mode) == 0o755, "nothing in it is Hachi's"
    (tmp_path / "hachi.db").write_text("")
    (tmp_path / "hachi.log").symlink_to(notes)
    make_private(tmp_path)
    assert stat.S_IMODE(tmp_path.stat().st_mode) == 0o700
    assert stat.S_IMODE(notes.stat().st_mode) == 0o644


async def test_the_indexes_of_an_earlier_version_are_deleted(open_pet: OpenPet, home: Path) -> None:
    for name in ("1/segments/one", "1.lock", "2.lock"):
        (home / "index" / name).parent.mkdir(parents=True, exist_ok=True)
        (home / "index" / name).touch()
    await open_pet()
    assert not (home / "index").exists()


OTHERS = (
    "knowledge/notes.md",
    "embeddings.sqlite3",
    "hachi.db.mine",
    "hachi.logbook",
    "decisions.jsonl.gz",
    "index.html",
    "index/edge_config.json",
    "index/page.html",
    "index/1/page.html",
    "index/2024/january.md",
    "index/2024/segments/one",
)
"""Somebody else's files in a folder that Hachi is told to use."""


async def test_nothing_that_opens_purges_forgets_or_restores_touches_the_files_of_somebody_else(
    open_pet: OpenPet, home: Path, tmp_path: Path
) -> None:
    def others() -> dict[str, tuple[int, str]]:
        found = {path for name in OTHERS for path in (home / name, *(home / name).parents)}
        return {
            str(path): (stat.S_IMODE(path.stat().st_mode), path.read_text() if path.is_file() else "")
            for path in found
            if home in path.parents and path != home / "index"  # which both have
        }

    for name in OTHERS:
        (home / name).parent.mkdir(parents=True, exist_ok=True)
        (home / name).write_text('{"decisions": 1}\nana\n')
        (home / name).chmod(0o644)
    before = others()
    pet = await open_pet()
    await pet.respond("I ski", user="ana", settle=True)
    await pet.admin.catch_up()
    assert await pet.search_memories("ski", user="ana")
    await pet.admin.purge()
    await pet.people.erase(user="ana")
    back_up(home, home / "hachi.db", tmp_path / "copy")
    await pet.close()
    restore(home, home / "hachi.db", tmp_path / "copy", replace=True)
    assert others() == before
