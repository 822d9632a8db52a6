"""The manifest asks Slack for all that the code uses, and for nothing else."""

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from agent.surfaces.bots.commands import COMMANDS, LISTEN, REMEMBER_THIS
from agent.surfaces.bots.slack.access import SCOPES as SCOPES_TO_CHECK
from agent.surfaces.bots.slack.interactions import REMEMBER

ROOT = Path(__file__).resolve().parents[5]
BOT = ROOT / "agent/surfaces/bots/slack"
CODE = "\n".join(path.read_text(encoding="utf-8") for path in BOT.glob("*.py"))
OPTIONAL = {"reactions:write"}
"""What the bot can do without, as in a workspace that granted scopes before."""
SCOPES = {
    "agents_sessions_setStatus": {"chat:write"},
    "apps_connections_open": set(),
    "auth_test": set(),
    "chat_delete": {"chat:write"},
    "chat_postEphemeral": {"chat:write"},
    "chat_postMessage": {"chat:write"},
    "chat_update": {"chat:write"},
    "conversations_history": {"channels:history", "groups:history", "mpim:history", "im:history"},
    "conversations_info": {"channels:read", "groups:read", "mpim:read"},
    "conversations_open": {"im:write"},
    "conversations_replies": {"channels:history", "groups:history", "mpim:history"},
    "files_info": {"files:read"},
    "reactions_add": OPTIONAL,
    "reactions_remove": OPTIONAL,
    "usergroups_list": {"usergroups:read"},
    "users_conversations": {"channels:read", "groups:read", "mpim:read"},
    "users_info": {"users:read"},
}
"""What Slack wants for each method; and below for each event."""
EVENTS = {
    "agent_session_stopped": set(),
    "app_mention": {"app_mentions:read"},
    "message.channels": {"channels:history"},
    "message.groups": {"groups:history"},
    "message.im": {"im:history"},
    "message.mpim": {"mpim:history"},
}
BESIDE = {"assistant:write", "commands"}
"""For Slack's view of agents and slash commands, and to fetch what is attached."""

NOT_METHODS = {"base_url", "issue_new_wss_url"}


@pytest.fixture
def manifest() -> dict[str, Any]:
    loaded: dict[str, Any] = yaml.safe_load((BOT / "manifest.yaml").read_text("utf-8"))
    return loaded


def test_every_command_is_there_with_a_description(manifest: dict[str, Any]) -> None:
    commands = manifest["features"]["slash_commands"]
    assert sorted(command["command"] for command in commands) == sorted(
        f"/hachi-{command.name}" for command in (*COMMANDS, LISTEN)
    )
    assert all(0 < len(command["description"]) <= 2_000 for command in commands)


def test_the_menu_of_a_message_has_an_entry(manifest: dict[str, Any]) -> None:
    [entry] = manifest["features"]["shortcuts"]
    assert (entry["type"], entry["callback_id"], entry["name"]) == ("message", REMEMBER, REMEMBER_THIS)


def test_every_event_is_there(manifest: dict[str, Any]) -> None:
    listened = set(re.findall(r'\.event\("(\w+)"', CODE))
    asked = manifest["settings"]["event_subscriptions"]["bot_events"]
    assert {event.partition(".")[0] for event in asked} == listened
    assert set(asked) == EVENTS.keys()


def test_the_scopes_are_those_that_are_used(manifest: dict[str, Any]) -> None:
    used = set(re.findall(r"client\.([a-z]+(?:_[A-Za-z]+)+)[(,]", CODE)) - NOT_METHODS
    assert used == SCOPES.keys()
    wanted = set().union(*SCOPES.values(), *EVENTS.values(), BESIDE)
    assert set(manifest["oauth_config"]["scopes"]["bot"]) == wanted == SCOPES_TO_CHECK | OPTIONAL
