"""Stories of documents: what they say is found and told, follows the files, stays with whom it belongs to,
and loses against what a person said of themselves."""

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

import pytest
from scripted_server import ScriptedServer, answer

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


def test_the_answer_follows_the_file(hachi: Hachi, handbook: Path) -> None:
    (question, old, name), new, page = QUESTIONS[0], "carbon", handbook / QUESTIONS[0][2]
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


def test_a_private_document_answers_nobody_else(hachi: Hachi, handbook: Path) -> None:
    question, told, _ = QUESTIONS[0]
    hachi("knowledge", "add", str(handbook), "--user", "ana")

    assert told in chat(hachi, question)
    assert told not in chat(hachi, question, "--user", "ben")
    assert told not in chat(hachi, question, "--place", "acme/general"), "nor her, where others read along"


# Against what a person said.

HOMES = [
    ("I live in Lyon", "# Members\n\nAna lives in Paris.", "where do I live?", "where does Ana live?"),
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
