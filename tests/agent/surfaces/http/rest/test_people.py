"""What is known of a person, over REST. What the services do is tested with them."""

from datetime import timedelta
from typing import Any
from urllib.parse import quote

import pytest
import pytest_asyncio

from memory.people import check_ins


class Ana:
    """Asks for herself."""

    def __init__(self, site: Any, user: str, headers: dict[str, str]) -> None:
        self.pet = site.pet
        self.user = user
        self._client = site.client
        self._headers = headers

    async def __call__(
        self, method: str, path: str, json: Any = None, status: int = 200, **query: Any
    ) -> Any:
        at = f"/api/users/{self.user}{path}"
        answer = await self._client.request(method, at, json=json, params=query, headers=self._headers)
        assert answer.status_code == status, answer.text
        return answer.json() if answer.content else None


@pytest_asyncio.fixture(loop_scope="session")
async def ana(site: Any, request: pytest.FixtureRequest) -> Ana:
    user = f"ana-{request.node.originalname}"
    return Ana(site, user, await site.headers(user))


async def test_memories_are_added_found_changed_undone_and_deleted(ana: Ana) -> None:
    made = await ana("POST", "/memories", {"content": "Ana lives in Paris", "subjects": ["ana"]}, 201)
    again = await ana("POST", "/memories", {"content": "Ana lives in Paris"})  # 200: nothing was made
    assert again["action"] == "ignore"
    assert (made["action"], made["reason"]) == ("add", "new")
    error = await ana("POST", f"/memories/{made['id']}/undo", status=404)  # nothing was replaced
    assert error["error"]["type"] == "not_found_error"

    moved = await ana("PATCH", f"/memories/{made['id']}", {"content": "Ana lives in Lyon", "importance": 0.9})
    assert (moved["content"], moved["importance"], moved["subjects"]) == ("Ana lives in Lyon", 0.9, ["ana"])
    [hit] = await ana("GET", "/memories/search", query="where does Ana live?", subjects="ana")
    assert (hit["id"], hit["kind"], hit["excerpt"]) == (moved["id"], "memory", [])
    assert await ana("GET", "/memories/search", query="where does Ana live?", subjects="work") == []
    assert await ana("GET", "/memories/search", query="\x00'\"%_ 𐍈 {}", subjects="work") == []
    await ana("GET", "/memories", status=400, offset=5)  # no such parameter
    for id in (moved["id"], moved["id"][:8], made["id"]):  # the first one leads to the new wording
        assert (await ana("GET", f"/memories/{id}"))["id"] == moved["id"]

    [step] = await ana("GET", f"/memories/{moved['id']}/history")
    assert (step["old_content"], step["new_content"]) == ("Ana lives in Paris", "Ana lives in Lyon")
    assert (await ana("POST", f"/memories/{moved['id']}/undo"))["old_content"] == "Ana lives in Lyon"
    [paris] = await ana("GET", "/memories")
    assert paris["content"] == "Ana lives in Paris"
    await ana("DELETE", f"/memories/{paris['id']}", status=204)
    assert await ana("GET", "/memories") == []


async def test_what_is_forgotten_is_told_and_brought_back(ana: Ana) -> None:
    said = {"author": "Ana", "text": "my bank PIN is 4711", "sent_at": ana.pet.clock()}
    await ana.pet.conversations.import_messages([said], user=ana.user)
    made = await ana("POST", "/memories", {"content": "Ana's bank PIN is 4711"}, 201)
    told = await ana("POST", f"/memories/{made['id']}/forget")
    assert (told["memories"], told["messages"], told["replies"]) == ([made["id"]], 0, 0)
    [offered] = told["near"]
    assert (offered["kind"], offered["content"]) == ("message", "my bank PIN is 4711")
    assert (await ana("POST", f"/forgotten/{told['undo_id']}/undo"))["memories"] == [made["id"]]
    await ana("POST", f"/forgotten/{told['undo_id']}/undo", status=404)
    task = await ana("POST", "/tasks", {"description": "Call the bank"}, 201)
    for kind, id in (("task", task["id"]), (offered["kind"], offered["id"])):
        gone = await ana("POST", "/forget", {"id": id, "kind": kind})
        assert (gone["tasks"], gone["messages"]) == (int(kind == "task"), int(kind == "message"))
        await ana("POST", "/forget", {"id": id, "kind": kind}, 404)
        await ana("POST", f"/forgotten/{gone['undo_id']}/undo")
    await ana("POST", "/forget", {"id": task["id"], "kind": "chat"}, 400)
    [line] = await ana("GET", "/messages", limit=1)
    assert (await ana("DELETE", f"/messages/{line['id']}"))["messages"] == 1
    assert await ana("GET", "/messages", before=line["id"]) == []
    await ana("DELETE", f"/messages/{line['id']}", status=404)


async def test_conversations_are_read_in_pages_and_forgotten_whole(ana: Ana) -> None:
    chats = [f"chat:a%2F{at} b:{ana.user}" for at in range(3)]
    for chat in chats:
        await ana.pet.respond(f"I said it in {chat}", user=ana.user, conversation=chat)
    await ana.pet.respond("a secret", user="ben", conversation=chats[0])
    assert [one["id"] for one in await ana("GET", "/conversations")] == chats[::-1]
    [newest] = await ana("GET", "/conversations", limit=1)
    cursor = (await ana.pet.conversations.list(user=ana.user, limit=1)).next
    [next_one, _] = await ana("GET", "/conversations", cursor=cursor)
    assert (newest["id"], next_one["id"]) == (chats[2], chats[1])
    at = f"/conversations/{quote(chats[0], safe='')}"
    one = await ana("GET", at)
    assert (one["title"], one["messages"], one["place"]) == (f"I said it in {chats[0]}", 2, "dm")
    lines = await ana("GET", "/messages", conversation=chats[0])
    assert [line["role"] for line in lines] == ["assistant", "user"]

    told = await ana("DELETE", at)
    assert (told["messages"], told["replies"]) == (1, 1)
    for method in ("GET", "DELETE"):
        await ana(method, at, status=404)
    assert len(await ana.pet.conversations.messages(user="ben", conversation=chats[0])) == 2
    await ana("POST", f"/forgotten/{told['undo_id']}/undo")
    assert await ana("GET", at) == one
    assert (await ana("POST", "/forget", {"id": chats[0], "kind": "conversation"}))["messages"] == 1
    for id in ("dm:ben", "chat:\x00", "a/b"):
        await ana("DELETE", f"/conversations/{quote(id, safe='')}", status=404)
    of_ben = (await ana.pet.conversations.get(chats[0], user="ben")).newest
    for cursor in ("x", "\x00", of_ben):
        await ana("GET", "/conversations", cursor=cursor, status=404)


async def test_tasks_are_added_changed_and_done(ana: Ana) -> None:
    await ana("PUT", "/context/timezone", {"value": "Europe/Paris"})
    made = await ana("POST", "/tasks", {"description": "Call the dentist", "due": "2026-11-27T09:00"}, 201)
    assert (made["action"], made["status"], made["due"]) == ("made", "open", "2026-11-27T08:00:00Z")
    assert (await ana("POST", "/tasks", {"description": "call the dentist"}))["action"] == "unchanged"
    changed = await ana("PATCH", f"/tasks/{made['id'][:4]}", {"due": "never", "status": "in_progress"})
    assert (changed["due"], changed["status"]) == (None, "in_progress")
    assert [task["id"] for task in await ana("GET", "/tasks")] == [made["id"]]
    await ana("PATCH", f"/tasks/{made['id']}", {"status": "done"})
    assert await ana("GET", "/tasks") == []
    assert [task["status"] for task in await ana("GET", "/tasks", all=True)] == ["done"]
    await ana("DELETE", f"/tasks/{made['id'][:8]}", status=204)
    assert await ana("GET", "/tasks", all=True) == []
    await ana("DELETE", f"/tasks/{made['id']}", status=404)


@pytest.mark.parametrize(
    ("method", "path", "body", "status"),
    [
        ("POST", "/tasks", {"description": " "}, 400),
        ("PATCH", "/tasks/0000", {"status": "done"}, 404),
        ("PATCH", "/memories/00000000", {"content": "x"}, 404),
        ("POST", "/tasks", {"description": "Call", "priority": 1}, 400),
        ("DELETE", "/knowledge/00000000-0000-0000-0000-000000000000", None, 404),
    ],
)
async def test_wrong_requests_get_a_typed_error(ana, method, path, body, status) -> None:
    error = (await ana(method, path, body, status=status))["error"]
    assert error.keys() == {"message", "type", "param", "code"}
    assert error["message"]
    assert "`hachi " not in error["message"]


async def test_whoever_may_talk_is_reached_by_their_id(site: Any) -> None:
    service, names = await site.headers(), ("نیم\u200cفاصله", "👩\u200d🚀")
    for user in names:  # both have a joiner, which prints nothing
        await site.say("I row on Fridays", service, user=user, conversation=user)
        for address in (f"/api/users/{quote(user)}/messages", f"/api/sessions/{quote(user)}/memories"):
            assert "I row on Fridays" in (await site.client.get(address, headers=service)).text
    for nobody in ("%20", "a%0Ab"):
        refused = await site.client.get(f"/api/users/{nobody}/messages", headers=service)
        assert (refused.status_code, "printable text" in refused.text) == (400, True)


async def test_a_person_is_exported_and_erased(ana: Ana) -> None:
    await ana("POST", "/memories", {"content": "Ana rows on Fridays"}, 201)
    await ana.pet.remember("Ben rows on Fridays", user="ben")
    whole = await ana("GET", "/export")
    assert [memory["content"] for memory in whole["memories"]] == ["Ana rows on Fridays"]
    receipt = await ana("DELETE", "")
    assert (receipt["user"], receipt["verified"]) == (ana.user, True)
    assert await ana.pet.memories.list(user=ana.user) == []
    assert len(await ana.pet.memories.list(user="ben")) == 1


async def test_a_list_and_a_search_are_narrowed_and_read_page_by_page(site: Any) -> None:
    headers = await site.headers("pia")
    for fact in ("Pia rows", "Pia sails", "Pia swims"):
        await site.pet.remember(fact, user="pia", subjects=[fact.split()[1]])
    for address in ("/api/users/pia/memories", "/api/users/pia/memories/search"):

        async def ask(address: str = address, **given: Any) -> Any:
            return await site.client.get(address, params=given, headers=headers)

        first = await ask(limit=2)
        rest = await ask(limit=2, cursor=first.headers["x-next-cursor"])
        assert len({one["content"] for one in (*first.json(), *rest.json())}) == 3
        assert "x-next-cursor" not in rest.headers
        assert [one["content"] for one in (await ask(subjects="sails")).json()] == ["Pia sails"]
        assert (await ask(until="2001-01-01")).json() == []
        for wrong in ({"since": "soon"}, {"cursor": "?"}, {"kind": "thing"}):
            refused = await ask(**wrong)
            assert (refused.status_code, refused.json()["error"]["param"]) == (400, *wrong)


async def test_a_person_says_whether_they_are_asked_how_things_went_and_sees_what_is_planned(
    ana: Ana,
) -> None:
    assert await ana("GET", "/check-ins") == {"wanted": False, "planned": []}
    assert (await ana("PUT", "/check-ins", {"wanted": True}))["wanted"]
    await ana("PUT", "/check-ins", {"wanted": "often"}, 400)
    reply = await ana.pet.respond("My exam is today", user=ana.user)
    said, *_ = [one for one in await ana.pet.conversations.messages(user=ana.user) if one.role == "user"]
    now = ana.pet.clock()
    async with ana.pet.components.database.write() as connection:
        after = now + timedelta(hours=1)
        await check_ins.plan(connection, ana.user, "her exam", after, [said.id], reply.conversation, now)
    [planned] = (await ana("GET", "/check-ins"))["planned"]
    assert (planned["about"], planned["messages"]) == ("her exam", [said.id])
    assert await ana("PUT", "/check-ins", {"wanted": False}) == {"wanted": False, "planned": []}


async def test_accounts_are_linked_by_a_code_listed_parted_and_erased(ana: Ana, site: Any) -> None:
    chat = Ana(site, f"chat:{ana.user}", await site.headers())
    code = await ana("POST", "/accounts/code", status=201)
    assert await chat("POST", "/accounts", code) == [ana.user]
    assert await ana("GET", "/accounts") == [chat.user]
    refused = await chat("POST", "/accounts", code, 409)
    assert (refused["error"]["code"], "used" in refused["error"]["message"]) == ("not_linked", True)
    await chat("POST", "/accounts", {"code": ""}, 400)
    await chat("POST", "/memories", {"content": "Ana's boat is called Gull"}, 201)
    assert [one["user"] for one in await ana("GET", "/memories")] == [chat.user]
    assert await ana("DELETE", "/accounts") == [chat.user]
    assert await ana("GET", "/memories") == []
    await chat("POST", "/accounts", await ana("POST", "/accounts/code", status=201))
    assert (await ana("DELETE", "", linked="true"))["verified"]
    assert await chat("GET", "/memories") == []


async def test_a_services_key_alone_says_which_places_its_user_can_read(site: Any) -> None:
    service, own = await site.headers(), await site.headers("ana-8")
    refused = await site.say("Hello", own, reads=["acme/general"])
    assert (refused.status_code, "service's key" in refused.text) == (403, True)
    off = await site.say("Hello", service, user="ana-8", reads=["acme/general"])
    assert (off.status_code, "HACHI_READ_PLACES" in off.text) == (400, True)
    wrong = await site.say("Hello", service, user="ana-8", reads=["dm"])
    assert wrong.status_code == 400
    assert (await site.say("Hello", service, user="ana-8", reads=[])).status_code == 200
    body = {"input": "Hello", "user": "ana-8", "reads": ["acme/general"]}
    answer = await site.client.post("/v1/responses", json=body, headers=service)
    assert (answer.status_code, "HACHI_READ_PLACES" in answer.text) == (400, True)
