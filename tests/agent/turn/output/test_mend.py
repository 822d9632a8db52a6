import pytest

from agent.turn.output.answer import Answer
from agent.turn.output.mend import until_loop, without_echo
from memory.records import NewMemory
from prompts import read

RULE = next(
    line for line in read("assistant").splitlines() if len(line.split()) > 8 and "{" not in line
).lstrip("- ")


@pytest.mark.parametrize(
    ("text", "begins"),
    [
        ("Hi there. " + "I love you. " * 30, "Hi there. I love you"),
        ("The list:\n" + "- tea and milk\n" * 30, "The list:\n- tea and milk"),
        ("I want to go to " * 20 + "I want", "I want to go to"),
        ("\u4f60\u597d\u3002" * 90, "\u4f60\u597d"),
    ],
)
def test_a_reply_that_loops_ends_after_its_first_round(text, begins):
    assert until_loop(text).rstrip("\u3002.") == begins


@pytest.mark.parametrize(
    "text",
    ["No. No. No.", "See: " + "-" * 200, "I am here. " * 20 + "Bye.", "", "ha" * 60, "La la la la. " * 7],
)
def test_a_reply_that_repeats_a_little_stays_whole(text):
    assert until_loop(text) == text


def test_sentences_of_the_prompt_are_neither_shown_nor_kept():
    answer = Answer(
        RULE,
        (
            NewMemory(RULE),
            NewMemory("Now: noon"),
            NewMemory("Ana has a cat", subjects=("ana", "what to remember")),
        ),
        (RULE, "the cat"),
    )
    mended = without_echo(answer, {"now noon"})
    assert mended.message == "Noted, I will remember that."
    assert mended.memories == (NewMemory("Ana has a cat", subjects=("ana",)),)
    assert mended.forget == ("the cat",)
    assert without_echo(Answer(RULE)).message == ""


def test_words_of_the_prompt_in_a_sentence_of_ones_own_are_shown():
    message = f'You asked for my rules: "{RULE}" is one of them.'
    assert without_echo(Answer(message)).message == message
