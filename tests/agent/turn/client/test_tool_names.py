"""The names under which the model is shown a client's tools."""

from agent.turn.client.tool_names import shown_names


def test_a_name_that_is_not_ours_stays() -> None:
    assert shown_names(["weather", "weather"], {"remember"}) == {"weather": "weather"}


def test_a_name_of_ours_becomes_one_that_nothing_else_has() -> None:
    own = {"remember", "client3_remember"}
    theirs = ["client_remember", "remember", "client2_remember"]
    shown = shown_names(theirs, own)
    assert shown == {name: name for name in theirs} | {"remember": "client4_remember"}
    assert shown_names(reversed(theirs), own) == shown
