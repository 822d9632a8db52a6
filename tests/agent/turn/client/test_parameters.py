"""What a client asks of the model."""

from agent.turn.client.parameters import shown_names


def test_a_tool_with_a_name_that_is_not_ours_keeps_it():
    assert shown_names(["weather", "weather"], {"remember"}) == {"weather": "weather"}


def test_a_tool_with_a_name_of_ours_gets_one_that_nothing_else_has():
    ours = {"remember", "client3_remember"}
    theirs = ["client_remember", "remember", "client2_remember"]
    shown = shown_names(theirs, ours)
    assert shown == {name: name for name in theirs} | {"remember": "client4_remember"}
    assert shown_names(reversed(theirs), ours) == shown
