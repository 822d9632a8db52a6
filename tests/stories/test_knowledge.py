"""Stories of documents: what they say is found and told, follows the files, stays with whom it belongs to,
and loses against what a person said of themselves."""

import json
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

import pytest
from scripted_server import Call, ScriptedServer, answer

from hachi import Companion

Opened = Callable[..., AbstractAsyncContextManager[Companion]]
Hachi = Callable[..., Any]
OurWords = Callable[[str], list[str]]


async def say(pet: Companion, text: str, user: str = "ana", **where: Any) -> str:
    """What it answers, once all that follows from the message is done."""
    reply = await pet.respond(text, user=user, **where)
    await pet.settle()
    return reply.message


# From a folder to an answer.

HANDBOOK = {
    "boats.md": "# Boats\n\n## Oars\n\nThe oars of the club are made of ash.\n\n## Masts\n\nOf spruce.\n",
    "cuisine.html": "<html><head><title>Cuisine</title><script>let sel = 1</script></head><body>"
    "<nav>Accueil</nav><h1>Four</h1><p>Le four du club chauffe à 220 degrés.</p></body></html>",
    "מפתחות.txt": "המפתח של המחסן תלוי מאחורי הדלת.\n",
}
QUESTIONS = [
    ("what are the oars of the club made of?", "ash", "boats.md"),
    ("à combien chauffe le four du club ?", "220", "cuisine.html"),
    ("איפה תלוי המפתח של המחסן?", "מאחורי הדלת", "מפתחות.txt"),
]


@pytest.fixture
def handbook(tmp_path: Path) -> Path:
    """A folder with Markdown in English, HTML in French and text in Hebrew."""
    folder = tmp_path / "handbook"
    folder.mkdir()
    for name, content in HANDBOOK.items():
        (folder / name).write_text(content)
    return folder


def chat(hachi: Hachi, question: str, *args: str) -> str:
    """What is answered to a question by the command, in a process that knows nothing of the others."""
    ran = hachi("chat", "-m", question, *args)
    assert ran.code == 0
    return str(ran.out)


def test_a_folder_is_added_and_a_chat_answers_from_it_and_says_where_that_stands(
    hachi: Hachi, handbook: Path
) -> None:
    assert all(told not in chat(hachi, question) for question, told, _ in QUESTIONS)

    assert "3 added" in hachi("knowledge", "add", str(handbook), "--everybody").out

    for question, told, name in QUESTIONS:
        reply = chat(hachi, question)
        assert told in reply
        assert f"handbook/{name}" in reply
        assert str(handbook.parent) not in reply, "how the disk is laid out is nobody's business"


@pytest.mark.parametrize(
    ("question", "name", "old", "new"),
    [
        (QUESTIONS[0][0], "boats.md", "ash", "carbon"),
        (QUESTIONS[1][0], "cuisine.html", "220", "180"),
        (QUESTIONS[2][0], "מפתחות.txt", "מאחורי הדלת", "מתחת לשטיח"),
    ],
)
def test_the_answer_follows_the_file(
    hachi: Hachi, handbook: Path, question: str, name: str, old: str, new: str
) -> None:
    page = handbook / name
    hachi("knowledge", "add", str(handbook), "--everybody")
    before = chat(hachi, question, "--user", "ana")

    page.write_text(HANDBOOK[name].replace(old, new))
    assert "1 replaced, 2 unchanged" in hachi("knowledge", "add", str(handbook), "--everybody").out
    changed = chat(hachi, question, "--user", "ben")

    page.unlink()
    assert "1 removed" in hachi("knowledge", "add", str(handbook), "--everybody").out
    removed = chat(hachi, question, "--user", "cleo")

    assert [old in before, old in changed, old in removed] == [True, False, False]
    assert [new in before, new in changed, new in removed] == [False, True, False]


def test_what_was_answered_from_a_file_that_is_gone_is_not_answered_again(
    hachi: Hachi, handbook: Path
) -> None:
    hachi("knowledge", "add", str(handbook), "--everybody")
    question, told, name = QUESTIONS[0]
    assert told in chat(hachi, question)

    (handbook / name).unlink()
    hachi("knowledge", "add", str(handbook), "--everybody")

    assert told not in chat(hachi, question)


def test_a_private_document_answers_nobody_else(hachi: Hachi, handbook: Path) -> None:
    question, told, _ = QUESTIONS[0]
    hachi("knowledge", "add", str(handbook), "--user", "ana")

    assert told in chat(hachi, question)
    assert told not in chat(hachi, question, "--user", "ben")
    assert told not in chat(hachi, question, "--place", "acme/general"), "nor her, where others read along"


def test_a_document_of_a_place_answers_there_and_in_the_places_inside_it(
    hachi: Hachi, handbook: Path
) -> None:
    question, told, _ = QUESTIONS[0]
    hachi("knowledge", "add", str(handbook), "--place", "acme")

    for user in ("ana", "ben"):
        assert told in chat(hachi, question, "--user", user, "--place", "acme/general")
        assert told not in chat(hachi, question, "--user", user)
        assert told not in chat(hachi, question, "--user", user, "--place", "other")


async def test_a_model_is_handed_only_the_documents_of_whom_it_speaks_with(
    scripted: Opened, server: ScriptedServer, handbook: Path
) -> None:
    looking = Call("search_knowledge", {"query": "the oars of the club"})
    for _ in range(3):
        server.script(looking, answer("Ash."))

    async with scripted(look_back="off") as pet:
        await pet.documents.add_files([handbook], user="ana")
        await say(pet, "what are oars made of?")
        await say(pet, "what are oars made of?", user="ben")
        await say(pet, "what are oars made of?", place="acme/general")

    hers, his, shared = (json.loads(server.asked[turn].results[0]) for turn in (1, 3, 5))
    assert hers["chunks"][0]["text"] == "The oars of the club are made of ash."
    assert (his["chunks"], shared["chunks"]) == ([], [])


# Against what a person said.

HOMES = [
    ("I live in Lyon", "# Members\n\nAna lives in Paris.", "where do I live?", "where does Ana live?"),
    ("J'habite à Lyon", "# Membres\n\nAna habite à Paris.", "où est-ce que j'habite ?", "où habite Ana ?"),
    ("אני גרה בליון", "# חברים\n\nAna גרה בפריז.", "איפה אני גרה?", "איפה גרה Ana?"),
]
LYON, PARIS = ("Lyon", "ליון"), ("Paris", "פריז")


def names(text: str, town: tuple[str, str]) -> bool:
    return any(spelling in text for spelling in town)


@pytest.mark.parametrize(("said", "document", "of_herself", "of_ana"), HOMES)
async def test_what_a_person_said_of_themselves_is_answered_and_not_what_a_document_says(
    opened: Opened, tmp_path: Path, said: str, document: str, of_herself: str, of_ana: str
) -> None:
    page = tmp_path / "members.md"
    page.write_text(document)

    async with opened() as pet:
        await pet.documents.add_files([page])
        await say(pet, said)
        replies = [await say(pet, of_herself)]
    async with opened() as pet:
        replies.append(await say(pet, of_herself, conversation="another"))
        [found, *_] = await pet.documents.search(of_ana, user="ana")
        assert names(found.text, PARIS), "it would be found"
        assert names(await say(pet, of_ana, user="ben"), PARIS), "and whoever knows no better is told so"

    assert [names(reply, LYON) for reply in replies] == [True] * 2
    assert [names(reply, PARIS) for reply in replies] == [False] * 2


async def test_a_model_sees_both_and_before_the_document_which_of_them_is_right(
    scripted: Opened, server: ScriptedServer, our_words: OurWords, tmp_path: Path
) -> None:
    page = tmp_path / "members.md"
    page.write_text(HOMES[0][1])
    server.script(answer("Lyon."))

    async with scripted(look_back="plain", knowledge_first=True) as pet:
        await pet.documents.add_files([page])
        await pet.people.set_context("location", "Lyon", user="ana")
        await say(pet, HOMES[0][3])

    lines = server.asked[0].system.splitlines()
    person = next(n for n, line in enumerate(lines) if line.startswith("> ") and names(line, LYON))
    rule = next(n for n, line in enumerate(lines) if "the person is right" in line)
    paper = next(n for n, line in enumerate(lines) if line.startswith("> ") and names(line, PARIS))
    assert (
        lines.index("## User context") < person < lines.index("## Relevant external knowledge") < rule < paper
    )
    assert not any(names(line, PARIS) for line in our_words(server.asked[0].system))


async def test_what_a_look_up_brings_is_outweighed_by_a_rule_too(
    scripted: Opened, server: ScriptedServer, tmp_path: Path
) -> None:
    page = tmp_path / "members.md"
    page.write_text(HOMES[0][1])
    server.script(Call("search_knowledge", {"query": "where does Ana live"}), answer("In Lyon."))

    async with scripted(look_back="plain") as pet:
        await pet.documents.add_files([page])
        await pet.people.set_context("location", "Lyon", user="ana")
        await say(pet, HOMES[0][3])

    asked = server.asked[-1]
    assert names(asked.results[0], PARIS)
    assert "## Relevant external knowledge" not in asked.system
    assert "What a person told you of themselves outweighs any document." in asked.system
    assert "> lives in: Lyon" in asked.system
