"""Open WebUI, as its package installs it, before `hachi serve`, with a scripted model behind.

People chat as its front end does: with the same bodies, and what is answered is heard from the socket."""

import json
import os
import re
import socket
import subprocess
import sys
import time
from base64 import b64decode, b64encode
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any
from uuid import uuid4

import httpx
import pytest
from scripted_server import Call, Hang, Say, ScriptedServer, answer
from websockets.sync.client import connect

OPEN_WEBUI = Path(__file__).parent / "openwebui" / ".venv" / "bin" / "open-webui"
HACHI = (sys.executable, "-c", "import sys; from agent.surfaces.cli import main; sys.exit(main())")
ALWAYS = {"stream": True, "model": "hachi", "params": {}, "tool_ids": [], "features": {"memory": True}}
"""With each message; the front end adds `variables` and `model_item`, which change nothing of it here."""
TASKS = ("title_generation", "tags_generation", "follow_up_generation")
HEADERS = {
    "x-hachi-task": "{{TASK}}",
    "x-hachi-question": "{{USER_MESSAGE_ID}}",
    "x-hachi-follows": "{{USER_MESSAGE_PARENT_ID}}",
    "x-hachi-browser": "{{USER_AGENT}}",
}
OWN_TEMPLATE = "Which two words name this?"
"""An admin's, with nothing of Open WebUI's own in it."""
CHORES = {"title": "Nuts", "tags": ["food"], "follow_ups": ["And almonds?"], "queries": ["trains"]}
"""What the model answers to all that Open WebUI asks for itself."""
DOT = b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)

missing = pytest.mark.skipif(not OPEN_WEBUI.exists(), reason="to install Open WebUI: make test-openwebui")
pytestmark = [pytest.mark.slow, missing]  # it starts within a minute


def eventually(look: Callable[[], Any], seconds: float = 20) -> Any:
    """What `look` gives, once that is true."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        with suppress(httpx.TransportError):
            if found := look():
                return found
        time.sleep(0.1)
    raise AssertionError("it never came")


@contextmanager
def running(log: Path, *command: str, until: Callable[[], Any], **env: str) -> Iterator[Any]:
    """A process with this environment alone, until the block ends; what `until` gives once it is up."""
    env = {"PATH": os.environ["PATH"], "HOME": str(log.parent), **env}
    with log.open("wb") as out:
        process = subprocess.Popen(command, env=env, cwd=log.parent, stdout=out, stderr=out)

    def up() -> Any:
        assert process.poll() is None, log.read_text()[-2000:]
        return until()

    try:
        yield eventually(up, 300)
    finally:
        process.kill()
        process.wait()


class Site:
    """Open WebUI at `url`, with the token of its admin; `hachi` asks the server behind it."""

    def __init__(self, folder: Path, model: ScriptedServer, stack: ExitStack) -> None:
        self.model = model
        env = {
            "HACHI_HOME": str(folder),
            "PYTHONPATH": str(Path(__file__).parents[2]),
            "HACHI_EMBEDDER": "bundled",
            "HACHI_MODEL_RETRIES": "0",
            "HACHI_IMAGES": "true",
        }
        env |= {"HACHI_MODEL": "tiny", "OPENAI_BASE_URL": model.url, "OPENAI_API_KEY": "sk-1"}
        command, log = [*HACHI, "keys", "create", "open-webui", "--service"], folder / "serve.txt"
        key = subprocess.check_output(command, env=os.environ | env, text=True).split()[0]
        listening = lambda: re.search(r"listening on (http://\S+);", log.read_text())  # noqa: E731
        address = stack.enter_context(running(log, *HACHI, "serve", "--port", "0", until=listening, **env))[1]
        named = {"authorization": f"Bearer {key}"}
        self.hachi = stack.enter_context(httpx.Client(base_url=address, headers=named))
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = str(free.getsockname()[1])
        self.url = f"http://127.0.0.1:{port}"
        env = {"OPENAI_API_BASE_URL": f"{address}/v1", "OPENAI_API_KEY": key}
        env |= {"RAG_OPENAI_API_BASE_URL": f"{address}/v1", "RAG_OPENAI_API_KEY": key}
        env |= {"RAG_EMBEDDING_ENGINE": "openai", "RAG_EMBEDDING_MODEL": "hachi"}
        env |= {"ENABLE_FORWARD_USER_INFO_HEADERS": "true", "BYPASS_MODEL_ACCESS_CONTROL": "true"}
        env |= {"OPENAI_API_CONFIGS": json.dumps({"0": {"headers": HEADERS}})}
        env |= {"TITLE_GENERATION_PROMPT_TEMPLATE": f"{OWN_TEMPLATE} {{{{MESSAGES:END:2}}}}"}
        env |= {"ENABLE_CONTEXT_COMPACTION": "true", "ENABLE_SUBAGENTS": "true"}
        env |= {"USER_PERMISSIONS_FEATURES_AUTOMATIONS": "true"}
        env |= {"ENABLE_CHANNELS": "true", "OFFLINE_MODE": "true", "ENABLE_OLLAMA_API": "false"}
        env |= {"DATA_DIR": str(folder / "webui"), "WEBUI_SECRET_KEY": "secret"}
        command = [str(OPEN_WEBUI), "serve", "--host", "127.0.0.1", "--port", port]
        up = lambda: httpx.get(f"{self.url}/health").is_success  # noqa: E731
        stack.enter_context(running(folder / "webui.txt", *command, until=up, **env))
        admin = {"name": "Root", "email": "root@example.com", "password": "secret-1"}
        self.token = httpx.post(f"{self.url}/api/v1/auths/signup", json=admin).json()["token"]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    chores = Say(json.dumps(CHORES))
    with ExitStack() as stack:
        model = stack.enter_context(ScriptedServer.on_a_thread())
        model.aside = lambda asked: chores if not (asked.tools or asked.consolidates) else None
        yield Site(tmp_path_factory.mktemp("openwebui"), model, stack)


@pytest.fixture
def model(site: Site) -> ScriptedServer:
    site.model.clear()
    return site.model


class Person:
    def __init__(self, site: Site, name: str, stack: ExitStack) -> None:
        self.hachi = site.hachi
        self.http = stack.enter_context(httpx.Client(base_url=site.url, timeout=60))
        self.http.headers["authorization"] = f"Bearer {site.token}"
        form = {"name": name, "email": f"{uuid4()}@example.com", "password": "secret-1", "role": "user"}
        made = self.post("/api/v1/auths/add", **form)
        self.id, token = made["id"], made["token"]
        self.http.headers["authorization"] = f"Bearer {token}"
        address = site.url.replace("http", "ws") + "/ws/socket.io/?EIO=4&transport=websocket"
        self.socket = stack.enter_context(connect(address))
        self.socket.recv()
        self.socket.send("40" + json.dumps({"token": token}))
        self.session = json.loads(str(self.socket.recv())[2:])["sid"]

    def post(self, path: str, **body: Any) -> Any:
        return self.http.post(path, json=body).raise_for_status().json()

    def hear(self, message: str, until: str = "") -> dict[str, Any]:
        """The last event of each kind, once the answer and what is asked beside it are complete, or one has
        the words `until`."""
        heard: dict[str, Any] = {"chat:active": {"active": True}}
        while heard["chat:active"]["active"] and not (until and until in json.dumps(heard)):
            frame = str(self.socket.recv(timeout=60))
            if frame == "2":
                self.socket.send("3")
            name, *event = json.loads(frame[2:]) if frame.startswith("42") else ("",)
            if name == "events" and event[0].get("message_id") == message:
                heard[event[0]["data"]["type"]] = event[0]["data"].get("data")
        return heard

    def transcript(self) -> list[str]:
        """What Hachi has of what was said and answered, and holds."""
        newest_first = self.hachi.get(f"/api/users/{self.id}/messages").raise_for_status().json()
        return [one["text"] for one in reversed(newest_first)]

    def memories(self) -> list[str]:
        found = self.hachi.get(f"/api/users/{self.id}/memories").raise_for_status().json()
        return [one["content"] for one in found]


@pytest.fixture
def person(site: Site) -> Iterator[Callable[[str], Person]]:
    with ExitStack() as stack:
        yield lambda name: Person(site, name, stack)


class Chat:
    """A page of the front end. A temporary one sends its messages; of others Open WebUI has them."""

    def __init__(self, person: Person, temporary: bool = False) -> None:
        self.person, self.temporary = person, temporary
        self.id = f"temporary:{person.session}" if temporary else ""
        self.shown: list[dict[str, Any]] = []
        self.answered: str | None = None

    def say(self, text: str, *files: dict[str, Any], **more: Any) -> str:
        self.asked = {"id": str(uuid4()), "parentId": self.answered, "role": "user", "content": text}
        self.asked |= {"files": files, "models": ["hachi"], "childrenIds": []}
        self.shown.append(self.asked)
        return self.regenerate(files=files, **more)

    def edit(self, text: str) -> str:
        self.asked = self.asked | {"id": str(uuid4()), "content": text, "childrenIds": []}
        return self.regenerate()

    def go_on(self) -> str:
        return self.regenerate(self.answered, assistant_message_id=self.answered)

    def shorten(self) -> str:
        told = {"regeneration_prompt": "Make it more concise.", "regeneration_message_id": self.answered}
        return self.regenerate(**told)

    def save(self, message: str, text: str) -> None:
        """Change the words of a message, and ask nothing."""
        chat = self.person.http.get(self.page).json()["chat"]
        changed = chat["history"]["messages"][message]
        said = {"content": [{"type": "output_text", "text": text}]}
        changed |= {"content": text, "output": [one | said for one in changed.get("output", [])]}
        self.person.post(self.page, chat=chat)

    def compact(self) -> None:
        assert self.person.post(f"{self.page}/compact")["compacted"]

    @property
    def page(self) -> str:
        return f"/api/v1/chats/{self.id}"

    def regenerate(self, id: str | None = None, *, stop_at: str = "", **more: Any) -> str:
        self.answered = id or str(uuid4())
        self.asked["childrenIds"] = list({*self.asked["childrenIds"], self.answered})
        entry = {"model_id": "hachi", "message_id": self.answered, "modelIdx": 0}
        body = ALWAYS | {"session_id": self.person.session, "id": self.answered, "message_ids": [entry]}
        body |= {"parent_id": self.asked["parentId"], "user_message": self.asked} | more
        body |= {"background_tasks": dict.fromkeys(TASKS[2 * bool(self.id) :], True)}
        body |= {"chat_id": self.id} if self.id else {}
        body |= {"messages": self.shown} if self.temporary else {}
        self.id = self.person.post("/api/chat/completions", **body)["chat_id"]
        if stop_at:
            self.person.hear(self.answered, until=stop_at)
            self.person.post(f"/api/tasks/chat/{self.id}/stop")
        self.heard = self.person.hear(self.answered)
        if stop_at:
            return stop_at
        assert "chat:message:error" not in self.heard, self.heard["chat:message:error"]
        self.output = self.heard["chat:completion"]["output"]
        self.shown.append({"role": "assistant", "model": "hachi", "output": self.output})
        return "".join(part["text"] for part in self.output[-1]["content"])


def test_a_chat_is_answered_and_gets_its_title_and_tags(person: Any, model: ScriptedServer) -> None:
    model.script(answer("Hello Zoë."))
    zoe = person("Zoë")
    chat = Chat(zoe)
    assert chat.say("Hello!") == "Hello Zoë."
    assert "Zoë" in model.asked[0].text
    both = {"search_memories", "update_task", "client_search_memories", "client_update_task"}
    assert both <= model.asked[0].tools.keys()
    assert chat.heard["chat:message:follow_ups"]["follow_ups"] == CHORES["follow_ups"]
    assert chat.heard["chat:tags"] == CHORES["tags"]
    eventually(lambda: zoe.http.get(f"/api/v1/chats/{chat.id}").json()["title"] == CHORES["title"])
    assert (len(model.asides), zoe.transcript()) == (3, ["Hello!", "Hello Zoë."])


def test_a_fact_is_found_in_a_new_chat_and_by_nobody_else(person: Any, model: ScriptedServer) -> None:
    ana, ben = person("Ana"), person("Ben")
    model.script(answer("Noted.", {"content": "Lucie is allergic to nuts"}))
    Chat(ana).say("My sister Lucie is allergic to nuts.")
    eventually(ana.memories)
    for who in (ana, ben):
        model.script(Call("search_memories", {"query": "Lucie nuts"}), answer("I looked."))
        Chat(who).say("What can Lucie not eat?")
    assert ["allergic to nuts" in asked.results[0] for asked in model.asked[2::2]] == [True, False]
    assert ben.memories() == []


def test_an_answer_is_given_anew_and_continued(person: Any, model: ScriptedServer) -> None:
    model.script(answer("Peas."), answer("Nuts"), answer(", and almonds."), answer("Yes."))
    ana = person("Ana")
    chat = Chat(ana)
    chat.say("What can Lucie not eat?")
    assert chat.regenerate() == "Nuts"
    assert "Peas." not in model.asked[1].text
    assert ana.transcript() == ["What can Lucie not eat?", "Nuts"]
    assert chat.go_on() == "Nuts, and almonds."
    chat.say("Sure?")
    assert ("assistant", "Nuts, and almonds.") in model.asked[-1].conversation


def test_an_answer_is_shortened_and_the_first_question_edited(person: Any, model: ScriptedServer) -> None:
    model.script(
        answer("Nuts, and all that is made of them."), answer("Nuts."), answer("Milk."), answer("Yes.")
    )
    ana = person("Ana")
    chat = Chat(ana)
    chat.say("What can Lucie not eat?")
    assert chat.shorten() == "Nuts."
    assert ana.transcript() == ["What can Lucie not eat?", "Nuts."]
    chat.edit("What can Lea not drink?")
    assert ana.transcript() == ["What can Lea not drink?", "Milk."]
    chat.say("Sure?")
    assert ana.transcript() == ["What can Lea not drink?", "Milk.", "Sure?", "Yes."]


def test_an_answer_is_continued_right_after_a_compaction(person: Any, model: ScriptedServer) -> None:
    model.script(*map(answer, ("Nice.", "A zebu", ", too.", "Bye.")))
    ana = person("Ana")
    chat = Chat(ana)
    chat.say("I have a yak.")
    chat.say("What else?")
    chat.compact()
    assert chat.go_on() == "A zebu, too."
    chat.say("Thank you.")
    assert ana.transcript() == ["I have a yak.", "Nice.", "What else?", "A zebu, too.", "Thank you.", "Bye."]


def test_a_picture_of_a_tool_is_no_question(site: Site, person: Any, model: ScriptedServer) -> None:
    picture = f"data:image/png;base64,{b64encode(DOT).decode()}"
    code = (
        f'class Tools:\n    def draw(self) -> str:\n        """Draw a dot."""\n        return "{picture}"\n'
    )
    everybody = [{"principal_type": "user", "principal_id": "*", "permission": "read"}]
    made = {"id": "draw", "name": "Draw", "content": code, "meta": {}, "access_grants": everybody}
    headers = {"authorization": f"Bearer {site.token}"}
    httpx.post(f"{site.url}/api/v1/tools/create", json=made, headers=headers).raise_for_status()
    model.script(Call("draw", {}), answer("A dot."), answer("Bye."))
    ana = person("Ana")
    chat = Chat(ana)
    assert chat.say("Draw a dot.", tool_ids=["draw"]) == "A dot."
    assert "data:image/png" in str(model.asked[-1].json)
    chat.say("Thank you.")
    assert ana.transcript() == ["Draw a dot.", "A dot.", "Thank you.", "Bye."]


def test_a_sub_agent_and_an_automation_read_and_leave_nothing(
    site: Site, person: Any, model: ScriptedServer
) -> None:
    ana = person("Ana")
    ana.hachi.post(f"/api/users/{ana.id}/memories", json={"content": "Ana plays the oboe", "importance": 0.9})
    model.script(Call("delegate_task", {"task": "Find out about yaks."}), answer("They eat grass."))
    model.script(answer("Grass."), answer("Good morning."))
    assert Chat(ana).say("What do yaks eat?") == "Grass."
    assert ["oboe" in asked.text for asked in model.asked] == [True, False, True]
    data = {"prompt": "Say good morning.", "model_id": "hachi", "rrule": "FREQ=DAILY"}
    made = ana.post("/api/v1/automations/create", name="Morning", data=data)
    ana.post(f"/api/v1/automations/{made['id']}/run")
    eventually(lambda: len(model.asked) == 4)
    assert "oboe" not in model.asked[-1].text
    assert ana.transcript() == ["What do yaks eat?", "Grass."]


def test_an_answer_that_was_stopped_and_words_that_were_saved_are_stored_as_shown(
    person: Any, model: ScriptedServer
) -> None:
    story = Hang('{"message": "Once upon a time there was a yak", "memories": []}', pieces=6)
    nuts = answer("Noted.", {"content": "Lucie is allergic to nuts"})
    model.script(nuts, story, answer("Rice."), answer("Bread."))
    ana = person("Ana")
    chat = Chat(ana)
    chat.say("Lucie is allergic to nuts.")
    asked = chat.asked["id"]
    eventually(ana.memories)
    chat.save(str(chat.answered), "Noted, with care.")
    chat.say("Tell me a story.", stop_at="Once")
    chat.say("What does she eat?")
    chat.save(asked, "Lucie is allergic to milk.")
    chat.say("And for breakfast?")
    lucie = ["Lucie is allergic to milk.", "Noted, with care.", "Tell me a story."]
    told = [*lucie, model.asked[-1].conversation[3][1], "What does she eat?", "Rice."]
    assert told[3].startswith("Once")
    assert [text for _, text in model.asked[-1].conversation] == [*told, "And for breakfast?"]
    assert ana.transcript() == [*told, "And for breakfast?", "Bread."]
    eventually(lambda: not ana.memories())


def test_a_compacted_chat_goes_on_with_all_that_was_said(person: Any, model: ScriptedServer) -> None:
    ana = person("Ana")
    chat = Chat(ana)
    for pet in ("a yak", "a zebu"):
        model.script(answer("Nice.", {"content": f"Ana has {pet}"}))
        chat.say(f"I have {pet}.")
    eventually(lambda: len(ana.memories()) == 2)
    chat.compact()
    model.script(answer("A dog?", {"content": "Ana has a dog"}), answer("A dog!"), answer("A cat."))
    chat.say("I have a dog.")
    assert "[CONVERSATION SUMMARY]" in model.asked[-1].text
    assert "a yak" not in model.asked[-1].text.partition("[CONVERSATION SUMMARY]")[2]
    assert chat.regenerate() == "A dog!"
    chat.edit("I have a cat.")
    told = ["I have a yak.", "Nice.", "I have a zebu.", "Nice.", "I have a cat.", "A cat."]
    assert ana.transcript() == told
    eventually(lambda: sorted(ana.memories()) == ["Ana has a yak", "Ana has a zebu"])


def test_a_long_question_is_edited_at_once(person: Any, model: ScriptedServer) -> None:
    nuts = {"content": "Lucie is allergic to nuts"}
    model.script(answer("Hello."), answer("Noted.", nuts), answer("Milk, then."))
    ana, more = person("Ana"), "She likes pears and plums. " * 2_000
    chat = Chat(ana)
    chat.say("Good evening.")
    chat.say(f"Lucie is allergic to nuts. {more}")
    eventually(ana.memories)
    began = time.monotonic()
    chat.edit(f"Lucie is allergic to milk. {more}")
    assert time.monotonic() - began < 5
    assert "nuts" not in model.asked[2].text
    milk = ["Lucie is allergic to milk. ", "Milk, then."]
    assert [text[:27] for text in ana.transcript()] == ["Good evening.", "Hello.", *milk]
    eventually(lambda: not ana.memories())


def test_its_own_tools_are_called_by_their_own_names(person: Any, model: ScriptedServer) -> None:
    model.script(Call("get_current_timestamp"), Call("client_search_memories", {"query": "nuts"}))
    model.script(Call("search_memories", {"query": "nuts"}), answer("It is late."), answer("Bye."))
    ana = person("Ana")
    chat = Chat(ana)
    assert chat.say("How late is it?") == "It is late."
    called = [one["name"] for one in chat.output if one["type"] == "function_call"]
    assert called == ["get_current_timestamp", "search_memories"]
    assert "current_iso" in model.asked[1].results[0]
    chat.say("Thank you.")
    assert ana.transcript() == ["How late is it?", "It is late.", "Thank you.", "Bye."]


def test_our_calls_and_its_own_of_the_same_moment_have_their_results(
    person: Any, model: ScriptedServer
) -> None:
    yak = Call("remember", {"content": "Ana has a yak", "subjects": ["ana"]})
    model.script([yak, Call("get_current_timestamp")], answer("It is late."))
    ana = person("Ana")
    assert Chat(ana).say("I have a yak. How late is it?") == "It is late."
    remembered, time_of_day = model.asked[-1].results
    assert ("Ana has a yak" in remembered, "current_iso" in time_of_day) == (True, True)
    assert ana.memories() == ["Ana has a yak"]


def test_a_link_to_forget_is_shown_and_comes_back_to_no_model(person: Any, model: ScriptedServer) -> None:
    ana = person("Ana")
    ana.hachi.post(f"/api/users/{ana.id}/memories", json={"content": "Ana has a yak"})
    asks = {"message": "Confirm it.", "memories": [], "forget": ["Ana has a yak"]}
    model.script(Say(json.dumps(asks)), answer("Fine."), answer("Bye."))
    chat = Chat(ana)
    assert "/enter?link=" in chat.say("Forget that I have a yak.")
    chat.say("Thank you.")
    chat.compact()
    chat.say("Good night.")
    assert not any("link=" in asked.text for asked in (*model.asked, *model.asides))
    asked, confirm, *more = ana.transcript()
    assert ("- Ana has a yak" in confirm, "link=" in confirm) == (True, False)
    assert [asked, *more] == ["Forget that I have a yak.", "Thank you.", "Fine.", "Good night.", "Bye."]


def test_a_picture_is_shown_and_named_later(person: Any, model: ScriptedServer) -> None:
    model.script(answer("A dot."), answer("Another."))
    ana = person("Ana")
    made = ana.http.post("/api/v1/files/?process=false", files={"file": ("dot.png", DOT, "image/png")}).json()
    chat = Chat(ana)
    for text in ("What is this?", "And this?"):
        chat.say(text, {"type": "image", "id": made["id"], "url": made["id"], "content_type": "image/png"})
        assert str(model.asked[-1].json).count(f"data:image/png;base64,{b64encode(DOT).decode()}") == 1
    assert ("user", "What is this?\n[an image]") in model.asked[-1].conversation
    assert ana.transcript() == ["What is this?", "A dot.", "And this?", "Another."]


def test_a_file_is_shown_and_the_question_alone_is_kept(person: Any, model: ScriptedServer) -> None:
    model.script(answer("On Mondays [1]."), answer("To Lyon [1]."))
    ana = person("Ana")
    file = {"file": ("travel.md", b"# Travel\n\nThe office pays for trains to Lyon on Mondays.")}
    now = "process=true&process_in_background=false"
    made = ana.http.post(f"/api/v1/files/?{now}", files=file).raise_for_status().json()
    chat = Chat(ana)
    chat.say("Which day?", {"type": "file", "file": made, "id": made["id"], "url": made["id"]})
    assert "trains to Lyon on Mondays" in model.asked[0].text
    chat.say("And where to?")
    assert ana.transcript() == ["Which day?", "On Mondays [1].", "And where to?", "To Lyon [1]."]


def test_a_temporary_chat_reads_and_leaves_nothing(person: Any, model: ScriptedServer) -> None:
    ana = person("Ana")
    ana.hachi.post(f"/api/users/{ana.id}/memories", json={"content": "Ana plays the oboe"})
    model.script(Call("remember", {"content": "Ana's number is 4711"}))
    model.script(answer("Noted.", {"content": "Ana has a number"}), answer("4711."))
    chat = Chat(ana, temporary=True)
    assert [chat.say("My number is 4711."), chat.say("What is it?")] == ["Noted.", "4711."]
    assert ("user", "My number is 4711.") in model.asked[-1].conversation
    assert not any("oboe" in asked.text for asked in model.asked)
    assert (ana.transcript(), ana.memories()) == ([], ["Ana plays the oboe"])


def test_a_channel_is_a_place_where_each_is_named(person: Any, model: ScriptedServer) -> None:
    ana, zoe = person("Ana"), person("Zoë")
    ana.hachi.post(f"/api/users/{ana.id}/memories", json={"content": "Ana looks for another job"})
    made = ana.post("/api/v1/channels/create", name="team", type="group", user_ids=[zoe.id])
    messages = f"/api/v1/channels/{made['id']}/messages"

    def mention(who: Person, text: str) -> str:
        posted = who.post(f"{messages}/post", content=f"<@M:hachi|hachi> {text}", data={"files": []})["id"]
        thread = lambda: who.http.get(f"{messages}/{posted}/thread").json()  # noqa: E731
        done = lambda: [one for one in thread() if (one["meta"] or {}).get("done")]  # noqa: E731
        return str(eventually(done)[0]["content"])

    model.script(answer("Lovely.", {"content": "Ana brings the cake"}))
    assert mention(ana, "I bring the cake.") == "Lovely."
    eventually(lambda: len(ana.memories()) == 2)
    model.script(Call("search_memories", {"query": "Ana cake job"}), answer("Ana does."))
    assert mention(zoe, "Who brings the cake?") == "Ana does."
    asked = model.asked[-1].text + model.asked[-1].results[0]
    assert ("Zoë: " in asked, "Ana brings the cake" in asked, "another job" in asked) == (True, True, False)
    assert zoe.memories() == []
