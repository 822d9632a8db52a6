"""What stories of conversations share: a companion that is closed and opened again, the command beside it,
and what of a prompt is in our own words."""

import io
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from scripted_server import ScriptedServer

from agent import Companion, Settings
from agent.surfaces.cli import main

Opened = Callable[..., AbstractAsyncContextManager[Companion]]


@dataclass(frozen=True)
class Ran:
    code: int
    out: str
    err: str


@pytest.fixture
def opened(home: Path, clock: Callable[[], Any], light_embedder: None) -> Opened:
    """`async with opened(**settings) as pet`: a companion in `home`, closed at the end of the block. With no
    setting the offline stand-in answers; `given` is a model that answers in its place."""

    @asynccontextmanager
    async def open_it(given: Any = None, **settings: Any) -> AsyncIterator[Companion]:
        chosen = Settings.load(**{"home": home, "embedder": "bundled", **settings})
        async with Companion.open(chosen, clock=clock, model=given, upkeep=False) as pet:
            yield pet

    return open_it


@pytest.fixture
def scripted(opened: Opened, server: ScriptedServer) -> Opened:
    """The same, and the scripted server is the model."""

    def open_it(**settings: Any) -> AbstractAsyncContextManager[Companion]:
        return opened(**{"openai_base_url": server.url, "model": "tiny", "api": "chat", **settings})

    return open_it


@pytest.fixture
def hachi(
    home: Path, light_embedder: None, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Callable[..., Ran]:
    """`hachi("chat", "-m", "hello")`: the command itself, on the same `home`, for Ana."""
    monkeypatch.setenv("HACHI_HOME", str(home))
    monkeypatch.setenv("LOGNAME", "ana")
    monkeypatch.setenv("COLUMNS", "200")

    def run(*args: str) -> Ran:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(), encoding="utf-8"))
        capsys.readouterr()
        code = main(args)
        out, err = capsys.readouterr()
        return Ran(code, out, err)

    return run


@pytest.fixture
def our_words() -> Callable[[str], list[str]]:
    """The lines of a prompt that are not quoted, without what the two lines hold that name who speaks and
    where: what a model may take for instructions."""

    def lines(system: str) -> list[str]:
        own = [line for line in system.splitlines() if not line.startswith(">")]
        valued = ("Speaking now: ", "Where: ")
        return [next((start for start in valued if line.startswith(start)), line) for line in own]

    return lines
