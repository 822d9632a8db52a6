"""What `hachi doctor` says of Discord."""

import pytest
from discord_server import TOKEN, DiscordServer

from agent.errors import HachiError, SettingsError
from agent.surfaces.bots.discord.access import check_access
from hachi import Settings

MAY_READ, MAY_READ_IN_A_FEW_SERVERS = 1 << 18, 1 << 19


@pytest.mark.parametrize("flags", [MAY_READ, MAY_READ_IN_A_FEW_SERVERS])
async def test_a_bot_that_may_read_messages_is_named(platform: DiscordServer, flags: int) -> None:
    platform.flags = flags
    assert (await check_access(Settings.load(discord_token=TOKEN))).endswith(", may read messages")


@pytest.mark.parametrize(
    ("token", "address", "kind", "told"),
    [
        (TOKEN, None, SettingsError, "switch on Message Content Intent"),
        ("wrong", None, SettingsError, "refuses DISCORD_TOKEN; copy"),
        (TOKEN, "http://127.0.0.1:9/api/v10", HachiError, "cannot be reached"),
    ],
)
async def test_what_is_wrong_is_told_with_what_to_do(platform, token, address, kind, told) -> None:
    with pytest.raises(kind, match=told):
        await check_access(Settings.load(discord_token=token, discord_api_url=address))
