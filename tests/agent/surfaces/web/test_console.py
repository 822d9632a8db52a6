"""The console, asked without a browser."""

import json
import re
from datetime import UTC, datetime

import pytest
from written_traces import a_turn

from agent.surfaces.web.pages import markdown
from memory.audience import PRIVATE

PAGES = ("/", "/memories", "/tasks", "/documents", "/traces")


@pytest.fixture
def ana(ask):
    return ask(person="ana")


def text_of(answer):
    """What a reader sees of the page, between its header and its end."""
    main = answer.text.partition("<main")[2].partition("</main>")[0]
    return " ".join(re.sub(r"<[^>]+>", " ", main).split())


async def test_every_page_is_there_in_its_part_and_says_what_is_missing(ana):
    shown = " ".join([text_of(await ana.get(path)) for path in PAGES])
    for path, part in (*zip(PAGES, PAGES, strict=True), ("/statistics", "/traces"), ("/forget", "/memories")):
        assert re.findall('href="([^"]+)" aria-current', (await ana.get(path)).text) == [part]
    for missing in ("Say something", "Nothing is remembered yet", "no open task", "no document", "no trace"):
        assert missing in shown


async def test_what_is_said_is_answered_and_stays_on_the_page(ana, pet):
    page = await ana.post("/talk", data={"text": "My sister Lucie is allergic to nuts"})
    assert "allergic to nuts" in text_of(page)
    assert "Why this answer" in text_of(page)
    [memory] = await pet.memories.list(user="ana")
    fact = text_of(await ana.get(f"/memories/{memory.id}"))
    assert "You said this on" in fact
    assert "What was decided: added, since nothing like it was known." in fact
    page = text_of(await ana.get("/"))
    assert page.index("ana") < page.index("allergic to nuts")
    assert "Why this answer" in page
    [to] = re.findall(r"/messages/[^/]+/why", (await ana.get("/")).text)
    assert "allergic to nuts" in text_of(await ana.get((await ana.get(to)).headers["location"]))
    [message] = [one for one in await pet.conversations.messages(user="ana") if one.role == "user"]
    assert "Taken:" in text_of(await ana.post(f"/messages/{message.id}/forget"))
    assert "allergic to nuts" not in text_of(await ana.get("/"))


async def test_an_answer_comes_as_it_is_written(ana, pet):
    answer = await ana.post("/talk", data={"text": "I keep **bees** & <b>wasps</b>", "stream": "yes"})
    *pieces, first, last = [json.loads(line) for line in answer.text.splitlines()]
    assert pieces
    assert all(set(piece) == {"html"} for piece in pieces)
    for turn in (first["turn"], last["turn"]):
        assert "<strong>bees</strong> &amp; &lt;b&gt;wasps&lt;/b&gt;" in turn
    [memory] = await pet.memories.list(user="ana")
    assert f"/memories/{memory.id}" in last["turn"]
    assert last["turn"].strip() in (await ana.get("/")).text


def test_a_short_text_makes_no_huge_table():
    wide, rows = "|" + "a|" * 200, "|x|\n" * 1_000
    assert len(markdown(f"{wide}\n{wide.replace('a', '-')}\n{rows}")) < 20_000
    assert "<td>x</td>" in markdown("|a|\n|-|\n|x|")


async def test_a_failed_turn_is_told_in_the_stream(ana, pet, monkeypatch):
    from agent.errors import ModelUnavailable

    async def fails(*_, **__):
        raise ModelUnavailable("the model does not answer")

    monkeypatch.setattr(pet, "_take_turn", fails)
    answer = await ana.post("/talk", data={"text": "hello", "stream": "yes"})
    assert json.loads(answer.text) == {"wrong": "the model does not answer"}


async def test_from_a_fact_one_comes_to_its_turns_and_back(ana, pet):
    await ana.post("/talk", data={"text": "My sister Lucie is allergic to nuts"})
    await ana.post("/talk", data={"text": "what is Lucie allergic to?"})
    [memory] = await pet.memories.list(user="ana")
    fact = (await ana.get(f"/memories/{memory.id}")).text
    assert "Where it was used" in fact
    assert "readable here" in fact
    [asked, *_] = re.findall(r"/traces/[^/]+/why", fact)
    explained = await ana.get(f"{asked}?text=Lucie nuts")
    assert "given to the model" in text_of(explained)
    assert f'href="/memories/{memory.id}"' in explained.text
    assert "no memory fits" in text_of(await ana.get(f"{asked}?text=submarines"))


async def test_a_turn_is_replayed_with_one_click(ana, pet):
    reply = await pet.respond("My sister Lucie is allergic to nuts", user="ana", settle=True)
    await pet.settle()
    assert f'action="/traces/{reply.trace_id}/replay"' in (await ana.get(f"/traces/{reply.trace_id}")).text
    assert "Replayed: The same" in text_of(await ana.post(f"/traces/{reply.trace_id}/replay"))


async def test_statistics_are_drawn_by_day(ana, pet):
    for user in ("ana", "ana", "ben"):
        await pet.respond("My sister Lucie is allergic to nuts", user=user)
    await pet.settle()
    answer = await ana.get("/statistics?since=1d")
    assert "3 turns" in text_of(answer), "without a key everybody's"
    assert "<rect" in answer.text
    assert "ben 1 0" in text_of(answer)
    assert (await ana.get("/statistics?since=whenever")).status_code == 400


async def test_a_fact_is_corrected_and_the_correction_undone(ana, pet):
    await ana.post("/memories", data={"content": "Ana lives in Lyon"})
    [memory] = await pet.memories.list(user="ana")
    assert "You wrote it down on" in text_of(await ana.get(f"/memories/{memory.id}"))
    answer = await ana.post(f"/memories/{memory.id}", data={"content": "Ana lives in Lisbon"})
    page = await ana.get(answer.headers["location"])
    assert "You corrected it on" in text_of(page)
    assert re.search("<del[^>]*>Ana lives in Lyon</del>", page.text)
    answer = await ana.post(f"{answer.headers['location']}/undo")
    assert "Undo the last change" in page.text
    page = await ana.get(answer.headers["location"])
    assert "Ana lives in Lyon" in text_of(page)
    assert "Undo the last change" not in page.text
    assert [one.content for one in await pet.memories.list(user="ana")] == ["Ana lives in Lyon"]


async def test_a_person_is_given_another_name(ana, pet):
    await pet.remember("Lucie plays the cello", user="ana")
    assert "is also called" in text_of(await ana.get("/memories"))
    answer = await ana.post("/memories/alias", data={"person": "Lucie", "alias": "Lulu"})
    assert "Lucie is also called Lulu" in text_of(await ana.get(answer.headers["location"]))
    found = await pet.search_memories("what does Lulu play?", user="ana")
    assert "Lucie plays the cello" in [hit.content for hit in found]
    assert "two names" in text_of(
        await ana.post("/memories/alias", data={"person": "Lucie", "alias": "Lucie"})
    )


async def test_a_fact_is_forgotten_and_brought_back(ana, pet):
    memory = (await pet.remember("Ana lives in Lyon", user="ana")).id
    near = (await pet.remember("The town that Ana lives in is Lyon", user="ana")).id
    page = await ana.post(f"/memories/{memory}/forget")
    assert "Taken: 1 memory" in text_of(page)
    assert f'name="memory" value="{near}"' in page.text, "what is near may go too"
    await ana.post("/forget", data={"memory": near})
    assert await pet.memories.list(user="ana") == []
    [undo] = re.findall(r'name="id" value="([^"]+)"', page.text)
    await ana.post("/restore", data={"id": undo})
    assert [one.content for one in await pet.memories.list(user="ana")] == ["Ana lives in Lyon"]


async def test_the_address_of_a_replaced_fact_leads_to_the_newest(ana, pet):
    old = (await pet.remember("Ana lives in Lyon", user="ana")).id
    new = (await pet.memories.update(old, "Ana lives in Nice", user="ana")).id
    newest = (await pet.memories.update(new, "Ana lives in Brest", user="ana")).id
    for id in (old, new):
        assert (await ana.get(f"/memories/{id}")).headers["location"] == f"/memories/{newest}"
    await pet.memories.forget(newest, user="ana")
    page = await ana.get(f"/memories/{old}")
    assert page.status_code == 404
    assert "hachi memories" not in page.text


async def test_what_was_typed_comes_back_with_the_error(ana, pet, ask):
    page = await ana.post("/tasks", data={"description": "call <mum>", "due": "soon"})
    assert 'name="description" value="call &lt;mum&gt;"' in page.text
    assert 'name="due" value="soon"' in page.text
    await pet.admin.keys.create("ben", "user", "ben", False, now=pet.clock())
    page = await ana.post("/documents", data={"name": "notes", "content": "a long text"})
    assert page.status_code == 401
    assert "a long text</textarea>" in page.text


async def test_what_was_asked_in_words_is_forgotten_once_it_is_confirmed(ana, pet):
    await pet.respond("My bank PIN is 4711", user="ana", settle=True)
    page = await ana.post("/talk", data={"text": "please forget my bank PIN"})
    fields = re.findall(r'name="(asked|memory|message)" value="([^"]+)"', page.text)
    assert (await ana.post("/forget", data={"asked": dict(fields)["asked"]})).status_code == 303, (
        "none chosen"
    )
    assert len(await pet.memories.list(user="ana")) == 1
    await ana.post("/forget", data=dict(fields))
    assert await pet.memories.list(user="ana") == []
    assert "4711" not in (await ana.get("/")).text


async def test_facts_and_messages_are_searched(ana, pet):
    await pet.respond("My sister Lucie is allergic to nuts", user="ana", settle=True)
    await pet.remember("Ana sails at night", user="ana")
    page = text_of(await ana.get("/memories", params={"text": "nuts"}))
    assert "allergic to nuts" in page
    assert "sails" not in page


async def test_tasks_are_added_finished_and_opened_again(ana, pet):
    await ana.post("/tasks", data={"description": "call mum", "due": "tomorrow 9am", "zone": "Asia/Tokyo"})
    [task] = await pet.components.tasks.list("ana", PRIVATE)
    assert task.due.hour == 0, "nine by the clock of the browser"
    assert "09:00" in text_of(await ana.get("/tasks"))
    await ana.post(f"/tasks/{task.id}", data={"status": "done"})
    assert "call mum" not in text_of(await ana.get("/tasks"))
    assert "<del>call mum</del>" in (await ana.get("/tasks?all")).text
    await ana.post(f"/tasks/{task.id}", data={"status": "open"})
    assert "call mum" in text_of(await ana.get("/tasks"))
    answer = await ana.post("/tasks", data={"description": "x", "due": "soon"})
    assert (answer.status_code, "not a time" in answer.text) == (400, True)


async def test_times_are_by_the_persons_clock_or_else_the_browsers(ana, pet):
    await pet.remember("Ana skis", user="ana", said_at=datetime(2026, 11, 20, 20, 30, tzinfo=UTC))
    shown = '<time datetime="2026-11-20T20:30:00.000+00:00" title="{}"{}>{}</time>'
    assert ' data-form="day"' in (await ana.get("/memories")).text
    await ana.post("/talk", data={"text": "hello", "zone": "Nowhere/Atlantis"})
    assert (await pet.people.context(user="ana")).profile.timezone is None
    await ana.post("/talk", data={"text": "hello", "zone": "Asia/Tokyo"})
    tokyo = shown.format("Saturday 21 November 2026, 05:30:00 JST", "", "21 Nov 2026")
    assert tokyo in (await ana.get("/memories")).text
    await pet.people.set_context("timezone", "Europe/Paris", user="ana")
    await ana.post("/talk", data={"text": "hello again", "zone": "Asia/Tokyo"})
    paris = shown.format("Friday 20 November 2026, 21:30:00 CET", "", "20 Nov 2026")
    assert paris in (await ana.get("/memories")).text
    assert "data-form" not in (await ana.get("/traces")).text


async def test_documents_are_added_searched_and_removed(ana, pet):
    await ana.post("/documents", data={"name": "boats", "content": "# Boats\n\nOars are made of ash."})
    [document] = await pet.documents.list(user="ana")
    assert "made of ash" in text_of(await ana.get("/documents", params={"text": "oars"}))
    assert "boats.md" in text_of(await ana.get("/documents"))
    await ana.post(f"/documents/{document.id}/remove")
    assert "There is no document" in text_of(await ana.get("/documents"))
    await pet.documents.add("oaks.md", "Oaks are trees.", user=None)
    page = await ana.get("/documents")
    assert "everybody's" in text_of(page)
    assert "/remove" not in page.text


async def test_a_person_has_nothing_of_theirs_kept_and_takes_it_back(ana, pet):
    for wanted, told, kept in (("no", "nothing is kept, as you want", 0), ("yes", "Keep nothing of mine", 2)):
        await ana.post("/keep", data={"kept": wanted})
        assert told in text_of(await ana.get("/memories"))
        await pet.respond("hello", user="ana")
        assert len(await pet.conversations.messages(user="ana")) == kept


async def test_another_person_sees_and_changes_nothing_of_it(ana, ask, pet, write):
    await pet.respond("My sister Lucie is allergic to nuts", user="ana", settle=True)
    await pet.components.tasks.update("ana", "call mum", now=pet.clock(), place=PRIVATE)
    await pet.documents.add("boats.md", "Oars of ash", user="ana")
    turn = await write(a_turn("the secret of Ana"), user="ana")
    _, secret = await pet.admin.keys.create("ben", "user", "ben", False, now=pet.clock())
    ben = ask(person="ana")
    ben.headers["authorization"] = f"Bearer {secret}"
    [memory], [message, *_] = (
        await pet.memories.list(user="ana"),
        await pet.conversations.messages(user="ana"),
    )
    shown = "".join([(await ben.get(path)).text for path in (*PAGES, "/traces?user=ana", "/traces?kind=all")])
    for secret in ("Lucie", "call mum", "boats", "secret of Ana"):
        assert secret not in shown
    [task] = await pet.components.tasks.list("ana", PRIVATE)
    [document] = await pet.documents.list(user="ana")
    for path in (f"/memories/{memory.id}", f"/traces/{turn.id}", f"/traces/{turn.id}/json", "/traces/last"):
        assert (await ben.get(path)).status_code == 404
    for path in (
        *(f"/memories/{memory.id}{act}" for act in ("", "/forget", "/undo")),
        *(f"/messages/{message.id}/forget", f"/tasks/{task.id}", f"/documents/{document.id}/remove"),
        f"/traces/{turn.id}/test",
    ):
        assert (await ben.post(path, data={"content": "mine", "status": "done"})).status_code == 404
    assert [one.content for one in await pet.memories.list(user="ana")] == [memory.content]


async def test_each_key_opens_the_page_of_its_person(ask, pet):
    keys = pet.admin.keys
    _, of_ben = await keys.create("ben", "user", "ben", False, now=pet.clock())
    _, service = await keys.create("web", "service", None, False, now=pet.clock())
    await pet.remember("Ben skis", user="ben")
    client = ask(person="ana")
    assert (await client.get("/")).status_code == 401
    for form, seen in (
        ({"key": of_ben}, True),
        ({"key": service, "name": "ben"}, True),
        ({"key": of_ben, "name": "ana"}, True),
        ({"key": service}, False),
    ):
        await client.post("/enter", data=form)
        assert ("Ben skis" in (await client.get("/memories")).text) == seen
        await client.post("/leave")
    await pet.remember("José rows", user="José")
    named = {"authorization": f"Bearer {service}", "x-openwebui-user-id": "José".encode()}
    assert "José rows" in (await client.get("/memories", headers=named)).text
