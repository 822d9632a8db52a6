"""Hachi serves a model's file by a child process of its own, which never outlives it."""

import asyncio
import os
import re
import signal
import sys
from asyncio.subprocess import DEVNULL, PIPE
from pathlib import Path
from typing import Any

import pytest

import agent.models.local.server as local
from agent.errors import ModelUnavailable, SettingsError
from agent.models.local.server import LocalServer, threads
from hachi import Companion, Settings

DOUBLES = Path(__file__).parents[3] / "doubles" / "llamacpp"


@pytest.fixture
def package(monkeypatch) -> None:
    monkeypatch.syspath_prepend(DOUBLES)


@pytest.fixture
def file(tmp_path, package) -> Path:
    path: Path = tmp_path / "Tiny-1B.Q4.gguf"
    path.write_bytes(b"GGUF and a model")
    return path


@pytest.fixture
def pet_of(open_pet):
    async def opened(file: Path, **settings: Any) -> Companion:
        companion: Companion = await open_pet(model=str(file), model_retries=0, **settings)
        return companion

    return opened


def _child(pet: Companion) -> Any:
    answering: Any = pet.components.models._answering
    return answering.client._server._child


def _gone(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    return Path(f"/proc/{pid}/stat").read_text().split(")")[1].split()[0] == "Z"


async def _goes(pid: int) -> bool:
    for _ in range(150):
        if _gone(pid):
            return True
        await asyncio.sleep(0.1)
    return False


async def test_the_file_answers_and_its_process_ends_with_the_companion(pet_of, file, caplog):
    caplog.set_level("INFO", "hachi.models")
    pet = await pet_of(file)
    assert pet.settings.chosen_embedder == "bundled"
    reply = await pet.respond("hello", user="ana")
    assert (reply.message, reply.model) == ("Hello from the file.", "Tiny-1B.Q4")
    stream = pet.stream("hello again", user="ana")
    assert "".join([piece async for piece in stream]) == "Hello from the file."
    assert re.search(
        r"Tiny-1B.Q4.gguf is served at http://127.0.0.1:\d+ after .* s: a window of 4,096 tokens, tools, "
        r"50 tokens a second by \d+ thread",
        caplog.text,
    )
    child = _child(pet)
    assert child.returncode is None
    await pet.close()
    assert child.returncode is not None


async def test_a_crash_is_a_model_that_does_not_answer_and_is_started_again(pet_of, file, caplog):
    pet = await pet_of(file, judge=False)
    with pytest.raises(ModelUnavailable, match=f"the model at {re.escape(str(file))} was lost"):
        await pet.respond("please crash", user="ana")
    first = _child(pet).pid
    reply = await pet.respond("hello", user="bob")
    assert reply.message == "Hello from the file."
    assert _child(pet).pid != first
    assert "the process of the model Tiny-1B.Q4.gguf ended (exit 9); it is started again" in caplog.text


async def test_what_cannot_be_loaded_is_told_in_its_words_and_left_alone(pet_of, file, clock):
    file.write_bytes(b"GGUF but damaged")
    pet = await pet_of(file)
    for _ in range(3):
        with pytest.raises(ModelUnavailable, match=r"llama\.cpp cannot serve it: gguf_init: the tensor data"):
            await pet.respond("hello", user="ana")
    child = _child(pet)
    with pytest.raises(ModelUnavailable, match="not tried again before"):
        await pet.respond("hello", user="ana")
    assert _child(pet) is child, "the breaker's pauses hold for starts too"


def test_what_is_no_model_is_told_in_one_line(tmp_path, package, monkeypatch):
    (tmp_path / "notes.txt").write_text("notes")
    (tmp_path / "a.gguf").write_bytes(b"GGUF")
    for name, told in (
        ("gone.gguf", "cannot be read"),
        ("notes.txt", "is no GGUF file"),
        ("", "cannot be read"),
    ):
        with pytest.raises(SettingsError, match=rf"HACHI_MODEL: .*{told}"):
            Settings.load(model=f"{tmp_path}/{name}").chosen_model  # noqa: B018
    assert Settings.load(model=f"{tmp_path}/a.gguf").chosen_model == "a"
    monkeypatch.setattr("agent.types.model_address.find_spec", lambda name: None)
    with pytest.raises(SettingsError, match=r"run `pip install -e '\.\[local\]'`"):
        Settings.load(model=f"{tmp_path}/a.gguf").chosen_model  # noqa: B018


def test_a_file_that_a_server_has_is_its_servers():
    there = Settings.load(model="a.gguf", openai_base_url="http://127.0.0.1:9/v1")
    assert (there.model_file, there.chosen_model) == (None, "a.gguf")


async def test_no_turn_names_a_file_to_serve(pet_at, first_way, file):
    pet = await pet_at(first_way, openai_base_url=None)
    with pytest.raises(Exception, match="cannot be named"):
        await pet.respond("hello", user="ana", model=str(file))


async def test_two_at_once_listen_at_ports_of_their_own_each_with_its_key(file):
    servers = [LocalServer(file, None, None) for _ in range(2)]
    urls = await asyncio.gather(*(server.url() for server in servers))
    assert len(set(urls)) == len({server.key for server in servers}) == 2
    for server in servers:
        await server.close()


async def test_it_is_started_once_for_all_who_wait_and_goes_on_where_one_leaves(file):
    file.write_bytes(b"GGUF slow")
    server = LocalServer(file, None, None)
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.3):
            await server.url()
    first, second = await asyncio.gather(server.url(), server.url())
    assert first == second
    await server.close()


async def test_the_end_of_a_start_is_awaited(file):
    file.write_bytes(b"GGUF slow")
    server = LocalServer(file, None, None)
    asking = asyncio.create_task(server.url())
    await asyncio.sleep(0.5)
    await server.close()
    assert server._child.returncode is not None
    asking.cancel()


PARENT = """
import asyncio, signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)  # who runs in the background ignores it
sys.path.insert(0, {doubles!r})
from pathlib import Path
from agent.models.local.server import LocalServer
async def main():
    server = LocalServer(Path({file!r}), None, None)
    await server.url()
    print(server._child.pid, flush=True)
    await asyncio.sleep(60)
asyncio.run(main())
"""


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT], ids=lambda how: how.name)
async def test_the_child_ends_by_itself_when_its_parent_is_gone(file, how):
    code = PARENT.format(doubles=str(DOUBLES), file=str(file))
    parent = await asyncio.create_subprocess_exec(sys.executable, "-c", code, stdout=PIPE, stderr=DEVNULL)
    assert parent.stdout is not None
    pid = int(await parent.stdout.readline())
    assert not _gone(pid)
    parent.send_signal(how)
    await parent.wait()
    assert await _goes(pid)


def test_few_or_busy_cores_compute_in_one_thread(monkeypatch):
    for cores, load, expected in ((2, 0.0, 1), (8, 7.5, 1), (8, 0.0, 4), (1, 0.0, 1)):
        monkeypatch.setattr(local.os, "cpu_count", lambda cores=cores: cores)
        monkeypatch.setattr(local.os, "getloadavg", lambda load=load: (load, load, load))
        assert threads() == expected
