"""Each request that may change something leaves a line that says who made it."""

import json
import logging


async def test_a_change_names_the_key_and_whom_it_acts_for_and_no_content(site, caplog) -> None:
    key, secret = await site.key()
    headers = {"authorization": f"Bearer {secret}", "x-openwebui-user-id": "ida"}
    with caplog.at_level(logging.INFO, "hachi.audit"):
        await site.client.get("/api/users/ida/memories", headers=headers)
        secret_body = {"content": "Ida's bank PIN is 4711"}
        await site.client.post("/api/users/ida/memories", json=secret_body, headers=headers)
        await site.client.delete("/api/users/ida/memories/00000000", headers=headers)
        await site.client.delete("/api/users/ida", headers={"authorization": "Bearer hachi-wrong"})
    lines = [record.getMessage() for record in caplog.records if record.name == "hachi.audit"]
    assert not any("4711" in line or secret in line for line in lines)
    path = "/api/users/ida/memories"
    told = [(e["key"], e["acts_for"], e["method"], e["path"], e["status"]) for e in map(json.loads, lines)]
    assert told == [
        (key.id, "ida", "POST", path, 201),
        (key.id, "ida", "DELETE", f"{path}/00000000", 404),
        (None, None, "DELETE", "/api/users/ida", 401),
    ]


async def test_the_line_of_an_erasure_does_not_name_the_person(site, caplog) -> None:
    key, secret = await site.key("ida")
    headers = {"authorization": f"Bearer {secret}"}
    await site.client.post("/api/users/ida/memories", json={"content": "Ida skis"}, headers=headers)
    with caplog.at_level(logging.INFO, "hachi.audit"):
        erased = await site.client.delete("/api/users/ida", headers=headers)
    [line] = [record.getMessage() for record in caplog.records if record.name == "hachi.audit"]
    assert erased.json()["verified"]
    assert "ida" not in line
    event = json.loads(line)
    assert (event["key"], event["method"], event["path"], event["status"]) == (
        key.id,
        "DELETE",
        "/api/users/{user}",
        200,
    )


async def test_the_description_names_the_headers(site) -> None:
    described = (await site.client.get("/openapi.json")).json()["paths"]["/v1/chat/completions"]["post"]
    named = {parameter["name"]: parameter for parameter in described["parameters"]}
    assert {"x-openwebui-user-id", "x-openwebui-user-name", "x-openwebui-chat-id"} <= named.keys()
    assert all(parameter["description"] for parameter in named.values())
