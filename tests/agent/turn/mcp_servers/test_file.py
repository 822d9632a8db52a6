import json

import pytest

from agent.errors import SettingsError
from agent.turn.mcp_servers.file import McpServer, read_mcp_file
from memory.audience import Place

ADMINS = frozenset({"ana"})


def offered_to(user, place, **given):
    return McpServer(command="x", **given).offered_to(user, Place.parse(place), ADMINS)


def test_tools_are_offered_to_admins_in_private_unless_places_are_named():
    assert offered_to("ana", None)
    assert not offered_to("ana", "acme/general")
    assert not offered_to("ben", None)
    assert not offered_to(None, None)
    acme = {"places": ["acme"]}
    assert offered_to("ben", "acme/general", **acme)
    assert not offered_to("ben", "acmes/general", **acme)
    assert not offered_to("ana", None, **acme)
    assert offered_to("ben", None, places=["dm"])
    assert not offered_to("ben", "acme", places=["dm"])
    assert offered_to("ben", "acme", places=["*"])
    assert not offered_to("ana", None, places=[])


@pytest.mark.parametrize(
    ("server", "why"),
    [
        ({"command": "x", "alow": ["a"]}, "mcpServers.weather.alow: Extra inputs are not permitted"),
        ({"command": "x", "url": "http://127.0.0.1"}, "weather: it needs a command or a url, and not both"),
        ({}, "weather: it needs a command or a url"),
        ({"url": "ftp://127.0.0.1"}, "weather.url: String should match"),
        ({"type": "sse", "url": "http://127.0.0.1"}, "weather.type: Input should be 'stdio', 'http'"),
        ({"command": "x", "headers": {"key": 7}}, "weather.headers.key: Input should be a valid string"),
    ],
)
def test_what_is_wrong_is_told_in_a_line(tmp_path, server, why):
    file = tmp_path / "servers.json"
    file.write_text(json.dumps({"mcpServers": {"weather": server}, "theme": "dark"}))
    with pytest.raises(SettingsError, match=why) as raised:
        read_mcp_file(file)
    assert "\n" not in str(raised.value)


def test_a_file_that_others_may_write_or_that_is_none_is_refused(tmp_path):
    file = tmp_path / "servers.json"
    with pytest.raises(SettingsError, match="cannot be read"):
        read_mcp_file(file)
    file.write_text("{")
    with pytest.raises(SettingsError, match="Invalid JSON"):
        read_mcp_file(file)
    file.write_text('{"mcpServers": {}}')
    assert not read_mcp_file(file).servers
    file.chmod(0o666)
    with pytest.raises(SettingsError, match="others may write it"):
        read_mcp_file(file)
