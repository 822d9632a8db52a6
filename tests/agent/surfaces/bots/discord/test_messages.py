"""How people, channels and threads of Discord are named."""

from agent.surfaces.bots.discord.messages import channel_id, place_of, user_id, user_name
from memory.audience import Place


def test_only_users_of_discord_have_a_discord_id() -> None:
    assert (user_name(12), user_id("discord:12")) == ("discord:12", 12)
    assert [user_id(name) for name in ("slack:T1:U1", "discord:", "discord:ana", "ana")] == [None] * 4


def test_only_channels_and_threads_have_an_id_and_an_unknown_channel_is_not_private() -> None:
    assert channel_id(Place(("discord", "1", "2"))) == 2
    assert channel_id(Place(("discord", "1", "2", "3"))) == 3
    for path in ((), ("discord",), ("discord", "1"), ("slack", "1", "2"), ("discord", "1", "general")):
        assert channel_id(Place(path)) is None
    assert place_of(None) is place_of(object()) is None
