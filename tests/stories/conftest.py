"""What stories of conversations share: a companion that is closed and opened again, the command beside it."""

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from command import Hachi, Ran
from scripted_server import ScriptedServer

from hachi import Companion, Settings

Opened = Callable[..., AbstractAsyncContextManager[Companion]]


@pytest.fixture
def opened(home: Path, clock: Callable[[], Any], light_embedder: None) -> Opened:
    """`async with opened(**settings) as pet`: a companion in `home`, closed at the end of the block. With no
    setting the offline stand-in answers; `given` is a model that answers in its place."""

    @asynccontextmanager
    async def open_it(given: Any = None, **settings: Any) -> AsyncIterator[Companion]:
        chosen = Settings.load(**{"home": home, "embedder": "bundled", **settings})
        async with Companion.open(chosen, clock=clock, model=given, periodic_jobs=False) as pet:
            yield pet

    return open_it


@pytest.fixture
def scripted(opened: Opened, server: ScriptedServer) -> Opened:
    """The same, and the scripted server is the model."""

    def open_it(**settings: Any) -> AbstractAsyncContextManager[Companion]:
        return opened(**{"openai_base_url": server.url, "model": "tiny", "api": "chat", **settings})

    return open_it


@pytest.fixture
def hachi(home: Path) -> Callable[..., Ran]:
    """`hachi("chat", "-m", "hello")`: the command itself, on the same `home`, for Ana."""
    return partial(Hachi(home), LOGNAME="ana")
