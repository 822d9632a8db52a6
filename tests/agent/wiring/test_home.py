"""Only its owner may read the data folder."""

import stat
from collections.abc import Awaitable, Callable
from pathlib import Path

from agent.wiring.home import make_private, remove_obsolete
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


def test_the_embeddings_of_an_earlier_version_are_deleted(tmp_path: Path) -> None:
    for name in ("embeddings.sqlite3", "embeddings.sqlite3-wal", "hachi.db"):
        (tmp_path / name).touch()
    remove_obsolete(tmp_path)
    assert [file.name for file in tmp_path.iterdir()] == ["hachi.db"]
