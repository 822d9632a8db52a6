"""The fixtures of programs, of which making a data folder and loading an embedder take most of the time."""

import shutil
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

import pytest

from hachi import Companion
from tests.agent.conftest import first_way, pet_at

__all__ = ["first_way", "pet_at"]

Opened = Callable[..., AbstractAsyncContextManager[Companion]]


@pytest.fixture(autouse=True)
def _one_embedder(light_embedder: None) -> None: ...


@pytest.fixture
def hachi_companion(
    hachi_companion: Opened, empty_home: Path, tmp_path_factory: pytest.TempPathFactory
) -> Opened:
    def opened(**options: Any) -> AbstractAsyncContextManager[Companion]:
        home = tmp_path_factory.mktemp("own") / "home"
        return hachi_companion(**{"home": shutil.copytree(empty_home, home), **options})

    return opened
