"""Where the bot works, and for whom."""

from types import SimpleNamespace as Is

import pytest

from agent import Settings
from agent.surfaces.bots.discord.allowed import Allowed

CHANNEL = Is(id=20, guild=Is(id=1))
THREAD = Is(id=30, parent_id=20, guild=Is(id=1))
DM = Is(id=40)
MEMBER = Is(roles=[Is(id=7), Is(id=8)])


@pytest.mark.parametrize(
    ("given", "permitted"),
    [
        ({}, True),
        ({"servers": {1}}, True),
        ({"servers": {2}}, False),
        ({"channels": {20, 21}}, True),
        ({"channels": {21}}, False),
        ({"roles": {8}}, True),
        ({"roles": {9}}, False),
        ({"servers": {1}, "channels": {20}, "roles": {9}}, False),
    ],
)
def test_every_list_that_is_set_must_name_it(given, permitted):
    allowed = Allowed(**{name: frozenset(ids) for name, ids in given.items()})
    assert allowed.permits(CHANNEL, MEMBER) is permitted
    assert allowed.permits(THREAD, MEMBER) is permitted, "a thread is within its channel"


def test_direct_messages_are_permitted_unless_a_role_is_demanded():
    assert Allowed(servers=frozenset({1}), channels=frozenset({2})).permits(DM, Is())
    assert not Allowed(roles=frozenset({7})).permits(DM, Is())


def test_the_settings_name_ids_with_commas_between_them(monkeypatch, tmp_path):
    monkeypatch.setenv("HACHI_DISCORD_CHANNELS", "20, 21")
    assert Allowed.by(Settings.load()) == Allowed(channels=frozenset({20, 21}))
    monkeypatch.setenv("HACHI_DISCORD_CHANNELS", "general")
    with pytest.raises(Exception, match="HACHI_DISCORD_CHANNELS"):
        Settings.load()
