"""The pages, asked without a browser."""

import re
from typing import Any

import httpx
from starlette.responses import Response
from written_traces import HOSTILE, a_turn, remembering

from agent.surfaces.web import trace_list
from agent.surfaces.web.application import app, beside
from agent.surfaces.web.sign_in import Visitor
from agent.surfaces.web.trace_list import live_rows, read_query
from agent.tracing.store import follow
from agent.types import Usage


async def test_the_list_shows_the_newest_first_and_goes_on_below(write, ask, monkeypatch):
    monkeypatch.setattr(trace_list, "PAGE", 3)
    for number in range(4):
        await write(a_turn(f"question {number}"))
    newest = (await ask().get("/traces")).text
    assert newest.index("question 3<") < newest.index("question 1<")
    assert "question 0<" not in newest
    [older] = re.findall(r'id="older" href="([^"]+)"', newest)
    page = (await ask().get(older)).text
    assert "question 0<" in page
    assert "question 1<" not in page
    assert 'id="older"' not in page


async def test_the_list_and_the_head_show_trouble_and_cost(write, ask):
    cost = {"model": "gpt-5-mini", "usage": Usage(input=1_000_000, output=0)}
    turn = await write(a_turn("dear question"), **cost, retried=2)
    listed, shown = [(await ask().get(path)).text for path in ("/traces", f"/traces/{turn.id}")]
    assert '<em class="bad">retried 2×</em>' in listed
    assert "0.2500" in listed
    assert "0.2500 with the work after it" in shown


async def test_a_filter_leaves_only_what_fits(write, ask, pet):
    for number in range(3):
        await write(a_turn(f"ordinary {number}"))
    about: Any = {
        "user": "ben",
        "place": "place:acme/general",
        "tools": ("update_task",),
        "status": "error",
        "took": 9.0,
    }
    late = {"started_at": pet.clock()}
    await write(a_turn("the zebra"), **about | late)
    await write(remembering(), turn_id="trace_x")
    queries = "user=ben place=acme tool=update_task failed=1 text=zebra slower=5 since=10s kind=all"
    for query in queries.split():
        page = (await ask().get(f"/traces?{query}")).text
        assert "the zebra" in page
        assert ("ordinary" in page) == (query == "kind=all")
        assert ("store memories" in page) == (query == "kind=all")
    answer = await ask().get("/traces?slower=soon")
    assert (answer.status_code, 'role="alert"' in answer.text) == (400, True)


async def test_a_trace_is_shown_with_the_work_after_it(write, ask):
    turn = await write()
    await write(remembering(), turn_id=turn.id)
    page = (await ask().get(f"/traces/{turn.id}?span=0.4")).text
    assert "1 found, 2 left out" in page
    first, second = [(await ask().get(f"/traces/{turn.id}/pane?span={at}")).text for at in ("0.2", "0.5")]
    assert "system message, persona  14 characters" in first
    assert "1 message as in the call before" in second
    assert second.index("message 1, user") < second.index("message 2") < second.index("function_call_output")
    for said in (
        "below the first 1",
        "gone, expired, or not to be read here",
        "0.9100",
        "words 3.2",
        "Afterwards: store memories",
    ):
        assert said in page
    decided = (await ask().get(f"/traces/{turn.id}/pane?span=1.1")).text
    assert "says more than what was known" in decided
    assert "Ana likes animals" in decided
    assert "<html" not in decided


async def test_a_trace_of_which_no_content_is_kept_is_shown(write, ask):
    root = a_turn()
    for span in (root, *root.spans, *root.spans[2].spans):
        span.data = {}
    turn = await write(root, said="", reply="", user=None)
    for number in range(7):
        assert (await ask().get(f"/traces/{turn.id}?span=0.{number}")).status_code == 200


async def test_two_traces_are_compared_the_earlier_first(write, ask):
    one, other = await write(a_turn(reply="You love cats.")), await write(a_turn(reply="You love dogs."))
    page = (await ask().get("/compare", params={"id": [other.id, one.id]})).text
    assert "<mark>cats</mark>" in page
    assert page.index("<mark>cats</mark>") < page.index("<mark>dogs</mark>")
    assert "Nothing differs" in (await ask().get("/compare", params={"id": [one.id, one.id]})).text
    assert (await ask().get("/compare", params={"id": one.id})).status_code == 400


async def test_a_trace_is_had_as_markdown_and_json(write, ask):
    turn = await write(a_turn(HOSTILE), said="x")
    markdown = await ask().get(f"/traces/{turn.id}/markdown")
    assert markdown.headers["content-type"].startswith("text/plain")
    assert "# Trace" in markdown.text
    assert "\x1b" not in markdown.text
    whole = (await ask().get(f"/traces/{turn.id}/json")).json()
    assert whole["root"]["data"]["incoming"]["text"] == HOSTILE


async def test_a_long_text_is_cut_and_can_be_had_whole(write, ask):
    turn = await write(a_turn(300_000 * "x"), reply="y")
    for span in ("0.0", "0.2", "0.5"):
        assert len((await ask().get(f"/traces/{turn.id}?span={span}")).content) < 100_000
    page = (await ask().get(f"/traces/{turn.id}?span=0.0")).text
    [link] = re.findall(r'class="whole" href="([^"]+)">show all 300,0\d\d', page)
    whole = await ask().get(link.replace("&amp;", "&"))
    assert 300_000 * "x" in whole.text
    assert whole.headers["content-type"].startswith("text/plain")


async def test_what_is_hostile_is_text(write, ask):
    root = a_turn(HOSTILE, HOSTILE)
    for span in (root, *root.spans):
        span.error = HOSTILE
        span.data[HOSTILE] = HOSTILE
    turn = await write(
        root, said="<script>alert(1)</script>\x1b[31m\u202e", reply="x", user="<b>eve", error=None
    )
    for path in ("/traces", f"/traces/{turn.id}", *(f"/traces/{turn.id}?span=0.{n}" for n in range(7))):
        answer = await ask().get(path)
        assert answer.status_code == 200
        assert answer.text.count("<script") == 1
        assert "<img src=x" not in answer.text
        assert "<b>eve" not in answer.text
        assert not re.search("[\x1b\u202e\U000e0041]", answer.text)
    assert "\\u202e" in answer.text
    assert "\\x1b[31m" in answer.text


async def test_every_answer_says_what_a_page_may_do(write, ask):
    await write()
    for path in ("/", "/traces/last", "/nothing", "/static/page.css", "/compare", "/enter"):
        answer = await ask().get(path)
        policy = answer.headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "frame-ancestors 'none'" in policy
        assert "unsafe" not in policy
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["referrer-policy"] == "same-origin"
        assert not re.search(r"<style|\sstyle=|\son\w+=|<script>", answer.text)


async def test_what_breaks_is_a_page_of_one_line(ask, monkeypatch, pet):
    monkeypatch.setattr(type(pet.traces), "list", None)
    answer = await ask().get("/traces")
    assert answer.status_code == 500
    assert "the log has it as err_" in answer.text
    assert "TypeError" not in answer.text
    assert "content-security-policy" in answer.headers


async def test_a_form_of_any_number_of_fields_is_refused_at_once(ask):
    client = ask(person="ana")
    form = "&".join(f"f{n}=" for n in range(100_000))
    headers = {"origin": "http://localhost:8020", "content-type": "application/x-www-form-urlencoded"}
    answer = await client.post("/memories", content=form, headers=headers)
    assert answer.status_code == 400
    assert "the form has more than 1,000 fields" in answer.text


async def test_what_there_is_not_is_told(write, ask):
    await write()
    for path, status in (
        ("/traces/ffffffff", 404),
        ("/traces/x", 400),
        ("/traces/last?span=9.9", 404),
        ("/traces/last?span=odd", 404),
        ("/traces/last/value?span=9.9", 404),
        ("/static/..%2fapplication.py", 404),
    ):
        answer = await ask().get(path)
        assert (answer.status_code, "text/html" in answer.headers["content-type"]) == (status, True)


async def test_a_list_that_goes_on_tells_what_is_new_and_what_has_changed(write, pet, monkeypatch):
    monkeypatch.setattr(follow, "PAUSE", 0.1)
    first = await write(a_turn("first"), status="running", took=None)
    done: list[bool] = []
    rows = live_rows(
        pet.traces,
        read_query({"user": "ana"}, pet.clock(), Visitor(None, True)),
        pet.clock,
        lambda: bool(done),
    )
    assert (await anext(rows)).event == "ready"
    await write(a_turn("second"))
    await write(a_turn("not asked for"), user="ben")
    assert "second" in str((await anext(rows)).data)
    write.number = 0
    await write(a_turn("first"), status="ok")
    changed = await anext(rows)
    assert first.id in str(changed.data)
    assert "ok</span>" in str(changed.data)
    done.append(True)
    assert [row async for row in rows] == []


async def test_a_test_is_made_of_a_turn_and_its_files_can_be_kept(ask, pet):
    await pet.respond("I live in Lyon", user="ana", settle=True)
    await pet.components.recorder.flush()
    page = await ask().post("/traces/last/test")
    assert page.status_code == 200
    [name] = re.findall(r'value="(test_trace_\w+\.py)"', page.text)
    kept = await ask().post("/traces/last/test", data={"file": name})
    assert kept.headers["content-disposition"] == f'attachment; filename="{name}"'
    compile(kept.text, name, "exec")
    assert (await ask().post("/traces/last/test", data={"file": "../x"})).status_code == 404


async def test_the_console_and_the_api_are_one_server(pet):
    asked = []

    async def api(scope, receive, send):
        asked.append(scope["path"])
        await Response()(scope, receive, send)

    pages = app(pet, person="ana")
    addresses = {f"/{route.path.split('/')[1]}" for route in pages.router.routes}
    assert {"/", "/check-ins", "/memories", "/traces"} <= addresses
    async with httpx.AsyncClient(
        transport=httpx.ASGITransport(beside(api, pages)), base_url="http://x"
    ) as client:
        for address in addresses:
            await client.get(address)
        assert asked == []
        await client.get("/v1/models")
    assert asked == ["/v1/models"]
    await beside(api, pages)({"type": "http", "path": "*", "method": "OPTIONS"}, None, keep)
    assert asked == ["/v1/models", "*"]


async def keep(message):
    """Take what is sent."""
