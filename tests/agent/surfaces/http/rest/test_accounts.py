"""Linked accounts over REST, and the places that a program says its users can read."""

from typing import Any


async def test_accounts_are_linked_by_a_code_listed_parted_and_erased(site: Any) -> None:
    service, own = await site.headers(), await site.headers("ana-7")
    site.client.headers.clear()

    async def ask(method: str, user: str, path: str = "", status: int = 200, **given: Any) -> Any:
        headers = own if user == "ana-7" else service
        at = f"/api/users/{user}{path}"
        answer = await site.client.request(method, at, headers=headers, **given)
        assert answer.status_code == status, answer.text
        return answer.json() if answer.content else None

    foreign = await site.client.get("/api/users/chat:7/accounts", headers=own)
    assert foreign.status_code == 403, "a key links its own user alone"
    code = await ask("POST", "ana-7", "/accounts/code", 201)
    assert await ask("POST", "chat:7", "/accounts", json=code) == ["ana-7"]
    assert await ask("GET", "ana-7", "/accounts") == ["chat:7"]
    refused = await ask("POST", "chat:7", "/accounts", 409, json=code)
    assert (refused["error"]["code"], "used" in refused["error"]["message"]) == ("not_linked", True)
    await ask("POST", "chat:7", "/accounts", 400, json={"code": ""})
    await ask("POST", "chat:7", "/memories", 201, json={"content": "Ana's boat is called Gull"})
    assert [one["user"] for one in await ask("GET", "ana-7", "/memories")] == ["chat:7"]
    assert await ask("DELETE", "ana-7", "/accounts") == ["chat:7"]
    assert await ask("GET", "ana-7", "/memories") == []
    await ask("POST", "chat:7", "/accounts", json=await ask("POST", "ana-7", "/accounts/code", 201))
    assert (await ask("DELETE", "ana-7", params={"linked": "true"}))["verified"]
    assert await ask("GET", "chat:7", "/memories") == []


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
