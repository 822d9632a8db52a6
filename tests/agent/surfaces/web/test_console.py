"""The console, asked without a browser."""

import json
import re
from datetime import UTC, datetime, timedelta

import httpx
import pytest
from written_traces import a_turn

from agent.surfaces.bots.personal_commands import STORE_AGAIN, STORE_NOTHING
from agent.surfaces.web.application import app
from agent.surfaces.web.pages import markdown
from hachi.testing import AnsweringModel, tool_call
from memory.audience import PRIVATE
from memory.people import check_ins

PAGES = ("/", "/conversations", "/memories", "/tasks", "/documents", "/traces")


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
        header = (await ana.get(path)).text.partition("<main")[0]
        assert re.findall('href="([^"]+)" aria-current', header) == [part]
    for missing in (
        "You can say",
        "There is no conversation yet",
        "Nothing is remembered yet",
        "no open task",
        "no document",
        "no trace",
    ):
        assert missing in shown


async def test_what_is_said_is_answered_and_stays_on_the_page(ana, pet):
    page = await ana.post("/talk", data={"text": "My sister Lucie is allergic to nuts"})
    assert "allergic to nuts" in text_of(page)
    assert "Why this answer" in text_of(page)
    [memory] = await pet.memories.list(user="ana")
    fact = text_of(await ana.get(f"/memories/{memory.id}"))
    assert "You said this on" in fact
    assert "Decision: added, since no fact was like it." in fact
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
    assert "no memory matches" in text_of(await ana.get(f"{asked}?text=submarines"))


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


async def test_what_was_typed_comes_back_with_the_error(ana):
    page = await ana.post("/tasks", data={"description": "call <mum>", "due": "soon"})
    assert 'name="description" value="call &lt;mum&gt;"' in page.text
    assert 'name="due" value="soon"' in page.text


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


async def test_the_card_that_asks_what_to_forget_is_there_again_until_it_is_answered(ana, ask, pet):
    await pet.respond("My bank PIN is 4711", user="ana", settle=True)
    await pet.respond("please forget my bank PIN", user="ana")
    await pet.respond("I keep bees", user="ana", settle=True)
    for device in (ana, ask(person="ana")):
        page = await device.get("/")
        assert "Forget this, with the messages that state it" in page.text
        assert "2 messages and 2 replies go with it" in text_of(page)
    [card] = re.findall(r'name="keep" value="([^"]+)"', page.text)
    await pet.conversations.keep_asked(card, user="ben")
    assert "Forget this, with the messages that state it" in (await ana.get("/")).text
    await ana.post("/forget", data={"keep": card})
    assert "Forget this, with the messages that state it" not in (await ana.get("/")).text
    assert len(await pet.memories.list(user="ana")) == 2

    await pet.respond("please forget my bank PIN", user="ana")
    [fact] = [one for one in await pet.memories.list(user="ana") if "4711" in one.content]
    await pet.memories.forget(fact.id, user="ana")
    assert fact.id not in (await ana.get("/")).text, "it is forgotten already"


async def test_conversations_are_read_in_slices_and_forgotten_whole(ana, pet):
    said = [
        {"id": f"m{at}", "author": "ana", "text": f"line {at}.", "sent_at": f"2026-01-01T10:{at}:00Z"}
        for at in range(10, 60)
    ]
    await pet.conversations.import_messages(said, user="ana", conversation="chat:a%2F/b:ana")
    for user in ("ana", "ben"):
        await pet.respond(f"{user} is in acme", user=user, place="acme")
    page = await ana.get("/conversations")
    assert "line 10. 01 Jan 2026 · 50 messages" in text_of(page)
    assert "ana is in acme 21 Nov 2026 · 1 message of yours in acme" in text_of(page)
    [_, to] = re.findall('class="open" href="([^"]+)"', page.text)
    newest = await ana.get(to)
    assert ("line 59." in newest.text, "line 19." in newest.text) == (True, False)
    assert 'data-confirm="Forget this whole conversation: 50 messages' in newest.text
    [earlier] = re.findall(r'href="([^"]+)">Earlier', newest.text)
    first = await ana.get(earlier)
    assert ("line 10." in first.text, "line 20." in first.text, "Earlier" in first.text) == (
        True,
        False,
        False,
    )
    assert "ben is in acme" not in text_of(await ana.get("/conversations/place:acme"))

    page = await ana.post("/conversations/forget", data={"id": "chat:a%2F/b:ana"})
    assert "Taken: 50 messages" in text_of(page)
    for path in (to, "/conversations/dm:ben", "/conversations/x?before=y", "/conversations?cursor=x"):
        assert (await ana.get(path)).status_code == 404
    assert (await ana.post("/conversations/forget", data={"id": "dm:ben"})).status_code == 404
    [undo] = re.findall(r'name="id" value="([^"]+)"', page.text)
    await ana.post("/restore", data={"id": undo})
    assert "line 59." in (await ana.get(to)).text


async def test_latex_and_code_are_shown_as_they_are():
    for shown in (r"$a_1 * b_2 * c$", r"\(x_{1} \* y\)", r"\[ \sum_i x_i \]", "$$a$$"):
        assert f"<code>{shown}</code>" in markdown(f"So {shown}, you see")
    for block in ("$$\na\n- b\n$$", "\\[\na\n= b\n\\]"):
        assert f'<code class="language-latex">{block}\n</code>' in markdown(f"So\n{block}\nyou see")
    for kept in ("It costs $5 or $10.", "from US$5 to US$7, *each*", "a \\* b"):
        assert "<code>" not in markdown(kept)
    assert "<code>$a$ `</code>" in markdown("`` $a$ ` ``")
    assert 'language-sh">echo $A $B' in markdown("```sh\necho $A $B\n```")
    assert len(markdown("\\(" * 100_000)) > 100_000


async def test_what_was_remembered_is_seen_by_time_with_place_and_teller(ana, pet):
    for day in (3, 30):
        await pet.remember(f"Ana rowed on day {day}", user="ana", said_at=datetime(2026, 9, day, tzinfo=UTC))
    await pet.remember("Ana sings", user="ana", place="acme/general")
    await pet.remember("The office is closed", user="ben", everybody=True)
    page = await ana.get("/memories")
    assert "Nov 2026 2 Sep 2026 2" in text_of(page)
    assert re.search("Ana sings [0-9:]+ · you in acme/general", text_of(page))
    assert re.search("The office is closed [0-9:]+ · ben for everybody", text_of(page))
    page = text_of(await ana.get("/memories?month=2026-09"))
    assert page.index("30 Sep 2026") < page.index("Ana rowed on day 30") < page.index("Ana rowed on day 3 ")
    assert "Ana sings" not in page
    for month in ("2026-13", "x", "2026-9", "0000-01"):
        assert (await ana.get("/memories", params={"month": month})).status_code == 400


async def test_facts_and_messages_are_searched(ana, pet):
    await pet.respond("My sister Lucie is allergic to nuts", user="ana", settle=True)
    await pet.remember("Ana sails at night", user="ana")
    page = text_of(await ana.get("/memories", params={"text": "nuts"}))
    assert "allergic to nuts" in page
    assert "sails" not in page


async def test_a_person_is_asked_how_things_went_if_they_say_so_and_sees_what_is_planned(ana, pet):
    assert "does not ask you" in text_of(await ana.get("/tasks"))
    await ana.post("/check-ins", data={"wanted": "yes"})
    assert "Hachi asks you in private" in text_of(await ana.get("/tasks"))
    await ana.post("/talk", data={"text": "My <b>exam</b> is today"})
    [said] = [one for one in await pet.conversations.messages(user="ana") if one.role == "user"]
    now = pet.clock()
    async with pet.components.database.write() as connection:
        await check_ins.plan(
            connection, "ana", "her <exam>", now + timedelta(hours=1), [said.id], "dm:ana", now
        )
    page = await ana.get("/tasks")
    assert "her &lt;exam&gt;" in page.text
    await ana.post("/check-ins", data={"wanted": "no"})
    assert "her &lt;exam&gt;" not in (await ana.get("/tasks")).text
    assert not await pet.check_ins.wanted(user="ana")


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


async def test_files_are_uploaded(ana, pet):
    files = [
        ("file", ("oars.md", b"# Oars\n\nOars are made of ash & oak.")),
        ("file", ("b.txt", b"&" * 2_000)),
    ]
    assert (await ana.post("/documents", files=files)).headers["location"] == "/documents"
    assert [one.path for one in await pet.documents.list(user="ana")] == ["b.txt", "oars.md"]
    assert await pet.documents.list(user="ben") == []
    for bad in (("file", ("x.bin", b"\x00\x01")), ("file", ("..", b"text"))):
        assert (await ana.post("/documents", files=[bad])).status_code == 400
    assert (await ana.post("/documents", files=[files[0]] * 21)).status_code == 400
    assert (await ana.post("/documents", files=[("file", ("", b""))])).status_code in (303, 400)
    long = {"name": "long", "content": "x" * 1_000_001}
    assert "upload a file" in text_of(await ana.post("/documents", data=long))


async def test_a_person_has_nothing_of_theirs_kept_and_takes_it_back(ana, pet):
    for wanted, told, button, kept in (
        ("no", "Nothing of what you say is stored, as you chose", STORE_AGAIN, 0),
        ("yes", "What is stored already stays", STORE_NOTHING, 2),
    ):
        await ana.post("/keep", data={"kept": wanted})
        shown = text_of(await ana.get("/memories"))
        assert told in shown
        assert button in shown, "as the bots say it"
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
    for path in (
        "/conversations/dm:ana",
        f"/memories/{memory.id}",
        f"/traces/{turn.id}",
        f"/traces/{turn.id}/json",
        "/traces/last",
    ):
        assert (await ben.get(path)).status_code == 404
    for path in (
        *(f"/memories/{memory.id}{act}" for act in ("", "/forget", "/undo")),
        *(
            "/conversations/forget",
            f"/messages/{message.id}/forget",
            f"/tasks/{task.id}",
            f"/documents/{document.id}/remove",
        ),
        f"/traces/{turn.id}/test",
    ):
        assert (
            await ben.post(path, data={"content": "mine", "status": "done", "id": "dm:ana"})
        ).status_code == 404
    assert [one.content for one in await pet.memories.list(user="ana")] == [memory.content]


async def test_a_trace_of_what_was_read_in_a_place_does_not_open_to_the_person(open_pet):
    """They may not read the place any more. Those of their other turns do."""
    search = tool_call("search_memories", query="what was planted?")
    pet = await open_pet(given=AnsweringModel("I see.", "Hello.", search, "A zagavok."), read_places=True)
    await pet.respond("I planted a zagavok", user="ben", place="acme/general")
    await pet.respond("Hello!", user="ana", place="acme/general")
    read = await pet.respond("What was planted?", user="ana", reads=["acme/general"], settle=True)
    other = await pet.respond("Thank you!", user="ana")
    await pet.settle()
    transport = httpx.ASGITransport(app=app(pet, loopback=True, person="ana"))
    _, secret = await pet.admin.keys.create("phone", "user", "ana", now=pet.clock())
    headers = {"authorization": f"Bearer {secret}"}
    async with httpx.AsyncClient(
        transport=transport, base_url="http://localhost:8020", headers=headers
    ) as ana:
        for path in ("", "/json", "/markdown", "/why?text=zagavok"):
            answer = await ana.get(f"/traces/{read.trace_id}{path}")
            assert (answer.status_code, "I planted" in answer.text) == (404, False)
        assert "what others said elsewhere" in text_of(await ana.get(f"/traces/{read.trace_id}"))
        assert (await ana.get(f"/traces/{other.trace_id}")).status_code == 200


async def test_what_a_linked_account_told_is_shown_with_it_and_forgotten_there(ana, pet):
    await pet.remember("Ana's boat is called Gull", user="discord:7")
    await pet.people.link(await pet.people.link_code(user="discord:7"), user="ana")
    listed = text_of(await ana.get("/memories"))
    assert "Ana's boat is called Gull" in listed.replace("&#39;", "'")
    assert "an account on Discord" in listed
    [memory] = await pet.memories.list(user="ana")
    assert "Gull" in text_of(await ana.get(f"/memories/{memory.id}"))
    assert "Taken:" in text_of(await ana.post(f"/memories/{memory.id}/forget"))
    assert await pet.memories.list(user="discord:7") == []


async def test_a_channel_of_a_chat_platform_is_not_called_by_its_ids(ana, pet):
    await pet.respond("Ana rows", user="ana", place="discord/20/30")
    await pet.remember("Ana rows", user="ana", place="discord/20/30")
    await pet.components.recorder.flush()
    for page in ("/memories", "/conversations", "/conversations/place:discord/20/30", "/traces"):
        shown = text_of(await ana.get(page))
        assert "a channel on Discord" in shown
        assert "discord/20" not in shown
