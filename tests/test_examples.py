"""Every example runs as it is, with the network shut, and README shows what is there."""

import asyncio
import json
import re
import runpy
import subprocess
import sys
from collections.abc import Callable
from itertools import count
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import httpx
import httpx2
import pytest
from agents.mcp import MCPServerStdio

from hachi import Companion
from hachi.testing import AnsweringModel, temporary_companion, tool_call

HERE = Path(__file__).resolve().parent.parent
EXAMPLES = HERE / "examples"
README = (HERE / "README.md").read_text(encoding="utf-8")

SAYS = {
    "hello": [
        r"You told me on 12 January 2026: “I live in Paris”",
        r"replace: Mickael moved to Lyon \(corrected on purpose\)",
        r"private: 2, in a channel: 0",
        r"expired: \[\"Mickael's train leaves at 9:15\"\]",
        r"left: \[\]",
    ],
    "ten_lines": [
        r"You told me on \d+ \w+ \d{4}: “I broke my shoulder on January 10”",
        r"\d\.\d\d memory: Mickael has the flu",
    ],
    "import_transcript": [
        r"4 messages taken over",
        r"\d\.\d\d 2026-03-02 Ana: The dentist moved me to Friday\.",
    ],
    "own_model": [
        r"No nuts, noted\. And a good trip to Rome!",
        r"add: Ana is allergic to nuts",
        r"add: Ana is in Rome, until \d{4}-\d\d-\d\d",
        r"2 model calls, tools: \['remember'\]",
    ],
    "own_tool": [r"\S.*"],
}
"""Lines that an example prints, in this order and perhaps with others between them."""


@pytest.fixture
def run(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    light_embedder: None,
) -> Callable[..., list[str]]:
    def run(name: str, *arguments: str) -> list[str]:
        monkeypatch.setenv("HACHI_HOME", str(tmp_path / "home"))
        script = EXAMPLES / f"{name}.py"
        monkeypatch.setattr(sys, "argv", [str(script), *arguments])
        runpy.run_path(str(script), run_name="__main__")
        return capsys.readouterr().out.splitlines()

    return run


def test_every_example_is_run_here() -> None:
    others = {"fastapi_service", "discord_pet", "nightly_import", "langgraph_agent", "telegram_like"}
    assert {path.stem for path in EXAMPLES.glob("*.py")} == SAYS.keys() | others
    told = Path(__file__).read_text(encoding="utf-8")
    assert all(f'"{name}.py"' in told for name in others)


@pytest.mark.parametrize("name", SAYS)
def test_an_example_says_what_it_promises(run: Callable[..., list[str]], name: str) -> None:
    lines = iter(run(name))
    for promised in SAYS[name]:
        assert any(re.fullmatch(promised, line) for line in lines), promised


def test_a_transcript_of_ones_own_is_taken_over(run: Callable[..., list[str]], tmp_path: Path) -> None:
    transcript = tmp_path / "transcript.json"
    transcript.write_text(
        '[{"author": "Zoé", "text": "My boat is called Pollux.", "sent_at": "2025-05-01T10:00:00+02:00"}]',
        encoding="utf-8",
    )
    said = run("import_transcript", str(transcript), "what is the boat called?")
    assert said[0] == "1 messages taken over"
    assert said[1].endswith("2025-05-01 Zoé: My boat is called Pollux.")


def test_hello_is_the_whole_in_under_50_lines() -> None:
    assert len((EXAMPLES / "hello.py").read_text(encoding="utf-8").splitlines()) < 50


def test_readme_shows_the_ten_lines_as_they_are() -> None:
    [shown] = re.findall(r"^```python\n(.*?)^```", README, re.MULTILINE | re.DOTALL)
    assert shown == (EXAMPLES / "ten_lines.py").read_text(encoding="utf-8")


def test_the_first_command_of_readme_is_make_chat() -> None:
    first = re.search(r"^```sh\n(.*)$", README, re.MULTILINE)
    assert first is not None
    assert first[1] == "make chat"


def test_the_tool_of_the_example_is_called_by_a_model(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], hachi_companion: Any
) -> None:
    example = runpy.run_path(str(EXAMPLES / "own_tool.py"))
    model = AnsweringModel(
        tool_call("find_order", number=7), {"message": "It is on its way.", "memories": []}
    )
    door = SimpleNamespace(open=lambda **options: hachi_companion(model=model, **options))
    monkeypatch.setitem(example["main"].__globals__, "Companion", door)
    asyncio.run(example["main"]())
    assert capsys.readouterr().out.splitlines() == [
        'find_order: {"state": "on its way"}',
        "It is on its way.",
    ]


async def test_the_service_answers_remembers_and_explains(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, light_embedder: None
) -> None:
    monkeypatch.setenv("HACHI_HOME", str(tmp_path / "home"))
    app = runpy.run_path(str(EXAMPLES / "fastapi_service.py"))["app"]
    async with app.router.lifespan_context(app):
        transport = httpx2.ASGITransport(app=app)
        async with httpx2.AsyncClient(transport=transport, base_url="http://service") as client:
            said = await client.post("/say", json={"user": "ana", "text": "I row on Fridays"})
            assert said.json().keys() == {"reply", "trace"}
            kept = await client.post("/facts", json={"user": "ana", "text": "Ana has a boat"})
            assert kept.json()["action"] == "add"
            found = await client.get("/facts", params={"user": "ana", "query": "boat"})
            assert "Ana has a boat" in found.json()
            refused = await client.post("/facts", json={"user": " ", "text": "x"})
    assert (refused.status_code, refused.json()["error"]) == (400, told_of_no_user)


told_of_no_user = "user: pass one line of printable text"


@pytest.mark.filterwarnings("ignore:'audioop':DeprecationWarning")
async def test_the_pet_goes_online_with_its_persona_and_its_tool(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, light_embedder: None
) -> None:
    example, met = runpy.run_path(str(EXAMPLES / "discord_pet.py")), {}

    async def run(pet: Companion, token: str) -> None:
        persona = pet.settings.persona
        met.update(token=token, persona=persona.read_text() if persona else "")
        met["tools"] = [one.name for one in pet.components.extensions.tools][-1]

    monkeypatch.setitem(example["main"].__globals__, "run", run)
    monkeypatch.setenv("HACHI_HOME", str(tmp_path / "home"))
    with pytest.raises(SystemExit, match="set DISCORD_TOKEN"):
        await example["main"](tmp_path)
    monkeypatch.setenv("DISCORD_TOKEN", "a.token")
    await example["main"](tmp_path)
    assert met == {"token": "a.token", "persona": example["PERSONA"], "tools": "roll_dice"}


class Connection:
    """What LangChain's adapters do of it: the command is the real one, and speaks MCP."""

    def __init__(self, servers: dict[str, Any]) -> None:
        self.server = {name: servers["hachi"][name] for name in ("command", "args", "env")}

    async def get_tools(self) -> list[Any]:
        async with MCPServerStdio(self.server, client_session_timeout_seconds=60) as memory:  # type: ignore[arg-type]
            kept = await memory.call_tool("remember", {"content": "Ana is allergic to nuts", "subjects": []})
            assert '"action": "add"' in str(kept.content[0].text)
            return await memory.list_tools()


def test_the_agent_of_langgraph_has_the_tools_of_the_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """LangGraph is in no environment of Hachi's: it brings an older `mcp`."""
    made: dict[str, Any] = {}

    class Agent:
        async def ainvoke(self, asked: dict[str, Any]) -> dict[str, Any]:
            return {"messages": [SimpleNamespace(content=f"heard: {asked['messages'][-1]['content']}")]}

    def create_agent(model: str, tools: list[Any], system_prompt: str) -> Agent:
        made.update(model=model, tools=[tool.name for tool in tools])
        return Agent()

    for name in ("langchain", "langchain_mcp_adapters"):
        monkeypatch.setitem(sys.modules, name, ModuleType(name))
    monkeypatch.setitem(sys.modules, "langchain.agents", SimpleNamespace(create_agent=create_agent))
    adapters = SimpleNamespace(MultiServerMCPClient=Connection)
    monkeypatch.setitem(sys.modules, "langchain_mcp_adapters.client", adapters)
    monkeypatch.setenv("HACHI_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("HACHI", str(Path(sys.executable).with_name("hachi")))
    asyncio.run(runpy.run_path(str(EXAMPLES / "langgraph_agent.py"))["main"]("openai:mine"))
    told = capsys.readouterr().out.splitlines()
    assert told[0] == f"tools: {', '.join(made['tools'])}"
    assert told[1] == "heard: I can't eat nuts."
    assert {"search_memories", "remember"} <= {*made["tools"]}


def test_the_nightly_import_brings_what_is_new(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], light_embedder: None
) -> None:
    monkeypatch.setenv("HACHI_HOME", str(tmp_path / "home"))
    file = tmp_path / "conversations.json"
    file.write_text('{"role": "user", "content": "I play the cello."}', encoding="utf-8")
    main = runpy.run_path(str(EXAMPLES / "nightly_import.py"))["main"]
    for new in (1, 0):
        main(file, "ana")
        told = capsys.readouterr().out.splitlines()
        assert told[0] == f"{new} messages and 0 facts are new"
        assert told[1].startswith("no model consolidates here")


async def test_a_chat_like_telegram_answers_once_quotes_reminds_and_deletes_what_is_forgotten(
    clock: Any, light_embedder: None
) -> None:
    chat = runpy.run_path(str(EXAMPLES / "telegram_like.py"))["Chat"]
    shown: dict[int, str] = {}
    ids = count(100)

    def telegram(request: httpx.Request) -> httpx.Response:
        method, given = request.url.path.rpartition("/")[2], json.loads(request.content)
        if method == "sendMessage":
            shown[id := next(ids)] = given["text"]
            return httpx.Response(200, json={"result": {"chat": {"id": given["chat_id"]}, "message_id": id}})
        shown.pop(given["message_id"])
        return httpx.Response(200, json={"result": True})

    def says(id: int, text: str, **other: Any) -> dict[str, Any]:
        ana = {"id": 42, "first_name": "Ana"}
        return {"message_id": id, "chat": {"id": 42, "type": "private"}, "from": ana, "text": text, **other}

    due = tool_call("update_task", id=None, description="call Ben", status="open", due="in 2 minutes")
    model = AnsweringModel("Lovely.", '{"message": "Shall I?", "forget": ["tea"]}', due, "I will.")
    http = httpx.AsyncClient(transport=httpx.MockTransport(telegram), base_url="http://telegram.test")
    async with http, temporary_companion(model=model, clock=clock) as pet:
        mine = chat(pet, http)
        pet.reminders.register("telegram:", mine.remind)
        quoted = says(0, "tea?") | {"from": {"id": 43, "first_name": "Ben"}}
        for _ in range(2):  # Telegram delivers it twice
            await mine.receive(says(1, "I love tea", reply_to_message=quoted))
        assert "> Ben: tea?" in model.shown()
        await mine.receive(says(2, "forget that I love tea"))
        assert list(shown.values()) == ["Lovely.", "Shall I?\n- I love tea\nTo forget this, write /yes"]
        await mine.receive(says(3, "/yes"))
        await pet.conversations.delete_forgotten("telegram:", mine.delete)
        assert list(shown.values()) == ["Forgotten: I love tea"]
        await mine.receive(says(4, "remind me to call Ben"))
        clock.advance(minutes=2)
        assert await pet.reminders.run() == 1
        assert "“call Ben”" in list(shown.values())[-1]


@pytest.mark.slow
def test_the_picture_of_readme_is_what_the_bot_posts(tmp_path: Path) -> None:
    drawn = tmp_path / "chat.svg"
    subprocess.run([sys.executable, HERE / "docs/chat_picture.py", drawn], check=True, cwd=tmp_path)
    assert drawn.read_text("utf-8") == (HERE / "docs/chat.svg").read_text("utf-8")
