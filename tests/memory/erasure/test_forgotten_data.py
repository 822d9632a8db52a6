"""What was forgotten is recognised where it was copied to."""

from memory.erasure.forgotten_data import ForgottenData
from memory.erasure.repetition import words


def test_it_is_recognised_by_id_whole_text_and_line() -> None:
    data = ForgottenData(
        "ann", frozenset({"id-1"}), ("Ann lives in Paris",), ("Yes, last spring!", "Ok."), words("ann")
    )
    assert ForgottenData.from_json("ann", data.to_json()) == data
    assert data.shown_by('{"id": "id-1"}')
    assert data.shown_by("Ann: Yes, last spring!\nHachi: Nice.")
    assert data.shown_by("Known facts:\n- lives in Paris\n- likes tea")
    assert not data.shown_by("Ok. Ann lives in Lyon.\nParis is a city.")
    assert not data.shown_by("They spoke of Paris."), "other words stay"
