"""The tests of HTTP and MCP run in one event loop and share servers: each test uses people of its own."""

import inspect
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from command import load_bundled_once

from memory.index.embedders import bundled

IN_ONE_LOOP = [Path(__file__).parent / folder for folder in ("http", "mcp")]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        asynchronous = inspect.iscoroutinefunction(getattr(item, "function", None))
        if asynchronous and any(folder in item.path.parents for folder in IN_ONE_LOOP):
            item.add_marker(pytest.mark.asyncio(loop_scope="session"), append=False)


@pytest.fixture(scope="module", autouse=True)
def _one_embedder() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(bundled, "_load", load_bundled_once)
        yield


@pytest.fixture(scope="module")
def shared_home(empty_home: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return Path(shutil.copytree(empty_home, tmp_path_factory.mktemp("shared") / "home"))
