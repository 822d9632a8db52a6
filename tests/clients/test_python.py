"""LiteLLM, LangChain and pydantic-ai against `hachi serve`, each in a process of its own."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from scripted_server import Call, Say, ScriptedServer, answer

HERE = Path(__file__).parent / "python"
PYTHON = HERE / ".venv" / "bin" / "python"

pytestmark = pytest.mark.skipif(not PYTHON.exists(), reason="to install the clients: make test-clients")


def installed(package: str) -> Any:
    there = any((HERE / ".venv").glob(f"lib/python*/site-packages/{package}/__init__.py"))
    return pytest.mark.skipif(not there, reason=f"there is no {package}; to install it: make test-clients")


async def seen(serve: Callable[..., Any], task: str) -> Any:
    async with serve() as ask:
        return await ask(str(PYTHON), str(HERE / "client.py"), task)


@pytest.mark.parametrize(
    "client",
    [
        pytest.param("litellm", marks=installed("litellm")),
        pytest.param("langchain", marks=installed("langchain_openai")),
        pytest.param("pydantic_ai", marks=installed("pydantic_ai")),
    ],
)
async def test_its_tools_are_called_and_its_stream_is_read(
    serve: Any, server: ScriptedServer, client: str
) -> None:
    server.script(Call("weather", {"town": "Lyon"}), answer("Sunny in Lyon."))
    server.script(Say('{"name": "Lyon", "people": 500000}'), answer("A yak."), answer("A zebu."))
    saw = await seen(serve, client)
    assert (saw["call"], saw["given"], saw["text"]) == ("weather", {"town": "Lyon"}, "Sunny in Lyon.")
    assert saw.get("pets", ["A yak.", "A zebu."]) == ["A yak.", "A zebu."]
    assert saw.get("town", {"name": "Lyon", "people": 500000}) == {"name": "Lyon", "people": 500000}
    assert server.asked[1].json["temperature"] == 0.2
    assert server.asked[1].results == ["sunny"]
