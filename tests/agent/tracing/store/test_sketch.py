"""A sketch never misses a text that a body holds, and seldom allows another."""

import zlib

from hypothesis import given, settings
from hypothesis import strategies as st
from sqlalchemy import LargeBinary, create_engine, literal, select

from agent.tracing.store.sketch import Sketch, may_hold

WORDS = "Where did Ana leave the red umbrella? On the night train to Lyon, says Ünal 茶の木. " * 3
SQLITE = create_engine("sqlite://")


def allows(body: bytes, text: str) -> bool:
    bodies = select(literal(body, LargeBinary).label("body")).subquery()
    with SQLITE.connect() as connection:
        return bool(connection.execute(select(bodies).where(may_hold(bodies.c.body, text))).all())


@settings(max_examples=40)
@given(st.text(max_size=60), st.text(max_size=12), st.text(max_size=60))
def test_what_stands_in_the_text_is_allowed(before, text, after):
    assert allows(zlib.compress(b"") + Sketch(before + text + after).packed(), text)


def test_what_is_not_there_is_not_unpacked_and_letter_case_and_length_do_not_matter():
    body = zlib.compress(b"") + Sketch(WORDS).packed()
    assert all(allows(body, text) for text in ("UMBRELLA", "ünal 茶", "on", "", "n to Lyon, s"))
    assert not any(allows(body, text) for text in ("zebra", "xylophone", "Ünver"))
    assert Sketch(WORDS).may_hold("umbrella")
    assert not Sketch(WORDS).may_hold("zebra")


def test_a_body_of_before_is_always_unpacked():
    assert allows(zlib.compress(WORDS.encode()), "zebra")
    assert zlib.decompress(zlib.compress(WORDS.encode()) + Sketch(WORDS).packed()).decode() == WORDS
