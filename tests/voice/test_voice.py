"""Real speech, heard by a real whisper model behind a server of its own: see `make test-voice`."""

import os
import subprocess
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path

import pytest
from scripted_server import ScriptedServer, answer

from agent.surfaces.bots.attachments.attachment import Attachment, Unreadable
from agent.surfaces.bots.attachments.transcriber import NO_WORDS, Transcriber
from agent.surfaces.bots.conversations import Conversations
from agent.surfaces.bots.platform import Content, IncomingMessage
from hachi import Companion
from memory.audience import PRIVATE
from tests.agent.surfaces.bots.conftest import FakePlatform

HERE = Path(__file__).parent
PYTHON = Path(os.environ.get("VOICE_VENV") or HERE / ".venv") / "bin" / "python"
TEXT = "Please remind me to buy milk and bread on Friday."


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    installed = [*PYTHON.parents[1].glob("lib/python3*/site-packages/faster_whisper")]
    if not (PYTHON.exists() and installed):
        pytest.skip("faster-whisper is not installed; `make test-voice` installs it")
    with subprocess.Popen([PYTHON, str(HERE / "serve.py")], stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout
        yield f"http://127.0.0.1:{server.stdout.readline().strip()}/v1"
        server.terminate()


def recording(file: Path, text: str) -> bytes:
    subprocess.run([PYTHON, str(HERE / "speak.py"), str(file), text], check=True, timeout=60)
    return file.read_bytes()


@pytest.mark.parametrize("name", ["talk.wav", "voice-message.ogg"])
async def test_what_is_said_is_heard_with_how_long_it_takes(url: str, tmp_path: Path, name: str) -> None:
    data = recording(tmp_path / name, TEXT)
    words, seconds = await Transcriber("whisper", url, "k", 120.0).hear(data, name)
    assert {"remind", "milk", "bread", "friday"} <= set(words.lower().strip(".").split())
    assert seconds is not None
    assert 2 < seconds < 8


async def test_a_silent_recording_has_no_words_and_a_damaged_one_a_reason(url: str, tmp_path: Path) -> None:
    hears = Transcriber("whisper", url, "k", 120.0)
    with pytest.raises(Unreadable, match=NO_WORDS):
        await hears.hear(recording(tmp_path / "silent.wav", "3"), "silent.wav")
    with pytest.raises(Unreadable, match="refuses it"):
        await hears.hear(b"OggS" + bytes(1_000), "damaged.ogg")


async def test_a_voice_message_is_answered_like_what_is_written(
    url: str, tmp_path: Path, open_pet: Callable[..., Awaitable[Companion]], server: ScriptedServer
) -> None:
    data = recording(tmp_path / "voice-message.ogg", TEXT)

    async def fetch(_: int) -> bytes:
        return data

    given = {"openai_base_url": server.url, "openai_api_key": "k", "model": "tiny", "api": "chat"}
    pet = await open_pet(**given, transcriber=f"whisper@{url}", model_timeout=120)
    platform = FakePlatform()
    conversations = Conversations(pet, platform, burst_seconds=0.002)
    voice = Attachment("voice-message.ogg", "audio/ogg", len(data), fetch, is_voice=True, seconds=3.6)
    said = IncomingMessage("chat:ana", PRIVATE, source=Content("Ana", "", [voice]), origin="chat:1")
    server.script(answer("I will remind you."))
    await conversations.receive(said, "mentions")
    await conversations.settle()
    [(_, asked)] = server.asked[0].conversation
    assert asked.startswith("(spoken, 0:04) ")
    assert ("milk" in asked, platform.said) == (True, ["I will remind you."])
    await conversations.stop(0)
