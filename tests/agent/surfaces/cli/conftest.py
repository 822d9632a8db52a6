"""The command, a home for it, and a model."""

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from command import Hachi, Ran, use_home
from prompt_toolkit.application import create_app_session
from prompt_toolkit.input import create_pipe_input
from prompt_toolkit.output import DummyOutput
from scripted_server import Say, ScriptedServer


@pytest.fixture
def home(empty_home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A data folder in which nothing has been said, for processes too."""
    folder = Path(shutil.copytree(empty_home, tmp_path / "home"))
    use_home(monkeypatch, folder)
    return folder


@pytest.fixture
def hachi(home: Path) -> Hachi:
    return Hachi(home)


@pytest.fixture(scope="module")
def shared(empty_home: Path, tmp_path_factory: pytest.TempPathFactory) -> Hachi:
    """With one data folder for all tests of a module."""
    return Hachi(Path(shutil.copytree(empty_home, tmp_path_factory.mktemp("shared") / "home")))


@pytest.fixture
def model(home: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ScriptedServer]:
    """The model `tiny`, which answers in plain text."""
    with ScriptedServer.on_a_thread() as server:
        server.then = Say("Hello there, how are you?")
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        monkeypatch.setenv("HACHI_MODEL", "tiny")
        monkeypatch.setenv("HACHI_MODEL_RETRIES", "0")
        yield server


@pytest.fixture
def talk(hachi: Hachi) -> Callable[..., Ran]:
    """`talk("hello")` types each line at the prompt of the chat, and leaves."""

    def run(*lines: str, leave: str = "exit\r", **options: Any) -> Ran:
        with create_pipe_input() as keys, create_app_session(input=keys, output=DummyOutput()):
            keys.send_text("".join(f"{line}\r" for line in lines) + leave)
            return hachi("chat", typed=True, screen=True, **options)

    return run
