"""Where a message states what has ended."""

import pytest

from memory.facts.derived.ended import Ended, ended_parts


@pytest.mark.parametrize(
    ("text", "facts", "rest"),
    [
        ("I live in Paris. I got a dog.", ["Ana lives in Paris"], "… I got a dog."),
        ("I live in Paris and I work in Paris.", ["Ana lives in Paris"], "… and I work in Paris."),
        ("We moved to Lyon, and my boss is Karl now", ["Ana lives in Lyon"], "… and my boss is Karl now"),
        ("I'm in Rome, until Friday. Call me Ann!", ["Ana is in Rome until Friday"], "… … Call me Ann!"),
        ("J'habite à Paris et j'ai un chien", ["Ana habite à Paris"], "… et j'ai un chien"),
        ("Ich habe Grippe, aber mein Chef heißt Karl.", ["Ana hat Grippe"], "… aber mein Chef heißt Karl."),
        ("אני גרה בחיפה ויש לי כלב", ["אנה גרה בחיפה"], "… ויש לי כלב"),
        ("私は風邪です。妹は医者です。", ["アナは風邪です"], "… 妹は医者です。"),
        ("I have a cold. I owe Ben 1,500 euros.", ["Ana has a cold"], "… I owe Ben 1,500 euros."),
        ("I have a cold. My cat is 3.", ["Ana has a cold", "Ana's cat is 3"], ""),
        ("I have a cold", ["Ana has a cold"], ""),
        ("Feeling rotten. My cat is 3.", ["Ana has a cold"], ""),
    ],
)
def test_the_rest_of_a_message_is_read(text: str, facts: list[str], rest: str) -> None:
    assert Ended(ended_parts(text, facts, "ana Ana")).rest(text) == rest
