"""Stories of documents: what they say is found and told, and it loses against what a person said."""

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

import pytest

from hachi import Companion

Opened = Callable[..., AbstractAsyncContextManager[Companion]]
Hachi = Callable[..., Any]


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
