"""A data folder that cannot be written can still be read."""

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

NOBODY = 65534


@pytest.fixture
def read_only(hachi: Any, home: Path) -> Iterator[Path]:
    """The home as a copy that may only be read."""
    hachi("memories", "add", "Ana keeps ferrets")
    hachi("tasks", "update", "new", "--description", "buy milk")
    folder = Path(tempfile.mkdtemp())
    shutil.copytree(home, folder / "home")
    for path in (folder, *folder.rglob("*")):
        path.chmod(0o555 if path.is_dir() else 0o444)
    try:
        yield folder / "home"
    finally:
        for path in (folder, *folder.rglob("*")):
            with suppress(OSError):
                path.chmod(0o700)
        shutil.rmtree(folder)


@contextmanager
def stepping_down() -> Iterator[None]:
    """Root may write anything, so it is nobody inside the block: in no step of pytest's or of coverage, which
    write files."""
    root = os.geteuid() == 0
    if root:
        os.seteuid(NOBODY)
    try:
        yield
    finally:
        if root:
            os.seteuid(0)


@stepping_down()
def test_what_only_reads_works_and_what_writes_says_that_it_cannot(hachi: Any, read_only: Path) -> None:
    for command, shown in (
        (("memories", "list"), "Ana keeps ferrets"),
        (("tasks", "list"), "buy milk"),
        (("memories", "export"), '"Ana keeps ferrets"'),
    ):
        ran = hachi(*command, HACHI_HOME=str(read_only))
        assert (ran.code, shown in ran.out) == (0, True), ran.complaint
    ran = hachi("memories", "add", "Bo skis", HACHI_HOME=str(read_only))
    assert (ran.code, "read-only" in ran.complaint) == (1, True)
    with tempfile.TemporaryDirectory() as folder:
        ran = hachi("backup", f"{folder}/copy", HACHI_HOME=str(read_only))
        assert ran.code == 0, ran.complaint
        assert hachi("restore", f"{folder}/copy", HACHI_HOME=f"{folder}/home").code == 0
