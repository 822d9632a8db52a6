"""What differs in two texts."""

from agent.surfaces.web.word_diff import word_diff


def told(pieces):
    return "".join({"same": "{}", "changed": "[{}]", "omitted": "…"}[p.kind].format(p.text) for p in pieces)  # type: ignore[attr-defined]


def test_words_that_changed_are_marked_on_both_word_diff():
    found = word_diff("Ana loves cats and tea", "Ana loves dogs and coffee")
    assert told(found.before).replace("][", "") == "Ana loves [cats] and [tea]"
    assert told(found.after).replace("][", "") == "Ana loves [dogs] and [coffee]"


def test_what_is_the_same_for_long_is_left_out():
    found = word_diff(1_000 * "a " + "x" + 1_000 * " b", 1_000 * "a " + "y" + 1_000 * " b")
    assert told(found.before).startswith("…")
    assert "[x]" in told(found.before)
    assert len(told(found.after)) < 400


def test_what_is_new_stands_on_one_side():
    assert told(word_diff("", "new").after) == "[new]"
    assert word_diff("", "new").before == []


def test_long_texts_that_share_nothing_are_cut():
    found = word_diff("ab " * 5_000, "ba " * 5_000)
    assert sum(len(piece.text) for piece in found.before) < 4_000
