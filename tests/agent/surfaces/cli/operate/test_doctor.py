import asyncio
import json
import re
import sqlite3
from contextlib import closing

import mcp_weather
import pytest
from scripted_server import Fail, Say

from agent.services.admin import HealthService
from agent.surfaces.cli.operate import checks, doctor
from memory.index import engine

AWAY = "http://127.0.0.1:9"
HEALTHY = {"database": "✓", "embedder": "✓", "index": "✓", "work": "✓", "disk": "✓"}


def marks(out):
    """The mark of each check, by name."""
    return {line.split()[1]: line[0] for line in out.splitlines() if line[:1] in "✓✗–" and line.strip()}


def test_everything_in_order(hachi, home):
    hachi("chat", "-m", "I broke my shoulder")
    hachi("tasks", "update", "new", "--description", "buy milk")
    hachi("tasks", "update", "new", "--description", "pay rent", "--status", "in_progress")
    ran = hachi("doctor")
    assert ran.code == 0
    assert marks(ran.out) == HEALTHY | {"model": "–"}
    assert "offline stand-in" in ran.out
    found = hachi("doctor", "--json").json
    assert found["ok"] is True
    assert found["counts"] == {
        "memories": 1,
        "memories superseded": 0,
        "memories expired": 0,
        "messages": 2,
        "tasks open": 2,
        "tasks done": 0,
        "work waiting": 0,  # a consolidation that waits for its time is not counted
        "work given up": 0,
    }
    assert found["versions"]["openai-agents"].startswith("0.24")
    settings = {setting["name"]: setting for setting in found["settings"]}
    assert settings["HACHI_HOME"] == {"name": "HACHI_HOME", "value": str(home), "source": "environment"}
    assert settings["HACHI_MAX_TURNS"] == {"name": "HACHI_MAX_TURNS", "value": "5", "source": "default"}


def test_each_value_is_shown_with_where_it_comes_from(hachi, home):
    file = home / ".env"
    file.write_text("HACHI_MAX_TURNS=7\nHACHI_MODEL=tiny\nOPENAI_API_KEY=sk-secret\n")
    addresses = {
        "HACHI_CONSOLE_URL": "https://h.example/?key=sk-secret",
        "DISCORD_API_URL": "http://a:sk-secret@b/c",
    }
    file.chmod(0o600)
    told = hachi("doctor", HACHI_MODEL="huge", **addresses).out
    assert "https://h.example/?… (environment)" in told
    assert "http://…@b/c (environment)" in told
    assert f"HACHI_MAX_TURNS           7 ({file})\n" in told
    assert "HACHI_MODEL               huge (environment)\n" in told
    assert f"({file})" in next(line for line in told.splitlines() if "OPENAI_API_KEY" in line)
    assert "sk-secret" not in told
    odd = hachi("doctor", DISCORD_API_URL="http://a:sk-secret/@b/c").complaint
    assert odd == "hachi: DISCORD_API_URL cannot be read: input should be a valid url, invalid port number"


@pytest.mark.parametrize(
    ("status", "name", "mark", "message"),
    [
        (200, "tiny", "✓", "tiny\n"),
        (200, "huge", "✗", "does not list huge, but tiny; check HACHI_MODEL"),
        (404, "tiny", "✓", "has no list of models"),
        (401, "tiny", "✗", "OPENAI_API_KEY"),
    ],
)
def test_the_model_server_is_asked_for_the_model(hachi, model, status, name, mark, message):
    model.then = Say("Hello.") if status == 200 else Fail(status)
    ran = hachi("doctor", HACHI_MODEL=name)
    assert ran.code == (mark == "✗")
    assert marks(ran.out)["model"] == mark
    assert message in ran.out


def test_the_model_is_called_once_where_that_is_wished(hachi, model):
    model.then = Say("Hello.")
    ran = hachi("doctor", "--call", HACHI_MODEL="tiny")
    assert (ran.code, marks(ran.out)["call"], len(model.asked)) == (0, "✓", 1)
    model.then = Fail(401, "wrong key")
    ran = hachi("doctor", "--call", HACHI_MODEL="tiny")
    assert (ran.code, marks(ran.out)["call"], "wrong key" in ran.out) == (1, "✗", True)


def test_the_second_model_is_checked_at_its_server(hachi, model):
    model.then = Say("Hello.")
    at = {"HACHI_MODEL": "tiny", "HACHI_FALLBACK_KEY": "sk-second"}
    ran = hachi("doctor", HACHI_FALLBACK_MODEL=f"huge@{AWAY}", **at)
    assert (marks(ran.out)["model"], marks(ran.out)["fallback"]) == ("✓", "✗")
    assert f"{AWAY} cannot be reached" in ran.out
    ran = hachi("doctor", HACHI_FALLBACK_MODEL=f"tiny@{model.url}", **at)
    assert (ran.code, marks(ran.out)["fallback"]) == (0, "✓")
    assert f"tiny at {model.url}" in ran.out
    assert "sk-second" not in ran.out


def test_what_cannot_be_opened_is_marked(hachi, home):
    ran = hachi("doctor", HACHI_EMBEDDER="crystal-ball")
    assert ran.code == 1
    assert marks(ran.out) == HEALTHY | {"embedder": "✗", "index": "–", "model": "–"}
    ran = hachi("doctor", QDRANT_URL=AWAY)
    assert (ran.code, marks(ran.out)["index"]) == (1, "✗")
    assert "waiting for the index" not in ran.out
    (home / "hachi.db").write_text("garbage\n" * 1000)
    ran = hachi("doctor")
    assert ran.code == 1
    assert marks(ran.out) == HEALTHY | {"database": "✗", "work": "–", "index": "–", "model": "–"}
    assert "Kept" not in ran.out


def test_a_misspelt_setting_is_told(hachi, monkeypatch):
    monkeypatch.setenv("HACHI_TRACE_DAY", "3")
    monkeypatch.setenv("HACHI_OPENAI_BASE_URL", AWAY)
    monkeypatch.setenv("HACHI_LOOK_BACK", "off")
    monkeypatch.setenv("HACHI_PURGE_MINUTES", "5")
    monkeypatch.setenv("HACHI_ZZZ", "of somebody's own tool")
    ran = hachi("doctor", "--json")
    assert (ran.code, [check["detail"] for check in ran.json["checks"] if check["ok"] is False]) == (
        1,
        [
            "HACHI_LOOK_BACK is read by nothing; it is HACHI_CONSOLIDATE now; "
            "HACHI_OPENAI_BASE_URL is read by nothing; did you mean OPENAI_BASE_URL?; "
            "HACHI_PURGE_MINUTES is read by nothing; the setting was removed, so delete it; "
            "HACHI_TRACE_DAY is read by nothing; did you mean HACHI_TRACE_DAYS?"
        ],
    )


def test_a_slow_check_and_a_missing_part_are_told(shared, monkeypatch):
    async def sleeps(_):
        await asyncio.sleep(5)

    monkeypatch.setattr(checks, "CHECK_TIMEOUT", 0.05)
    monkeypatch.setattr(HealthService, "embed", sleeps)
    monkeypatch.setattr(doctor, "PARTS", ("hachi", "nothing-of-that-name"))
    ran = shared("doctor", QDRANT_URL=AWAY)
    assert ran.code == 1
    assert "no answer within 0.05 s" in ran.out
    assert "nothing-of-that-name not installed" in ran.out


def test_what_is_wrong_comes_first_and_only_changed_settings_are_shown_without_secrets(shared):
    own = {"OPENAI_BASE_URL": "http://ann:secret2@127.0.0.1:9/v1", "HACHI_MODEL": "small"}
    ran = shared("doctor", "--json", OPENAI_API_KEY="sk-secret1", **own)
    assert (ran.code, ran.json["ok"], "secret" in ran.out) == (1, False, False)
    assert ran.json["checks"][-1]["detail"].endswith("cannot be reached; is it running?")
    ran = shared("doctor", OPENAI_BASE_URL=f"{AWAY}/v1")
    assert (ran.code, "HACHI_MODEL must name" in ran.out) == (1, True)
    ran = shared("doctor", QDRANT_URL=AWAY, HACHI_MAX_TURNS="7")
    assert ran.out.splitlines()[:2] == ["Wrong", next(x for x in ran.out.splitlines() if x[:7] == "✗ index")]
    assert "HACHI_MAX_TURNS           7 (environment)\n" in ran.out
    assert "HACHI_MODEL_TIMEOUT" not in ran.out
    whole = shared("doctor", "--all")
    assert whole.out.startswith("Nothing is wrong\n")
    assert "HACHI_MODEL_TIMEOUT       60.0 (default)" in whole.out
    assert "HACHI_FORGET_UNDO_MINUTES 10.0 (default)" in whole.out
    assert "HACHI_DISCORD_SERVERS     unset (default)" in whole.out


def test_damaged_pages_are_found(hachi, home):
    hachi("memories", "add", "Ana keeps ferrets")
    with closing(sqlite3.connect(home / "hachi.db")) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        [(page, size)] = connection.execute(
            "SELECT rootpage, page_size FROM sqlite_master, pragma_page_size"
            " WHERE tbl_name = 'tasks' AND type = ? LIMIT 1",
            ("index",),
        )
    with (home / "hachi.db").open("r+b") as file:
        file.seek((page - 1) * size)
        file.write(b"\xff" * size)
    ran = hachi("doctor")
    assert (ran.code, marks(ran.out)["database"]) == (1, "✗")
    assert "is damaged; " in ran.out
    assert "restore a copy" in ran.out
    assert marks(ran.out)["embedder"] == "✓", "the other parts are checked all the same"


def test_a_disk_that_is_nearly_full_and_a_dead_collector_are_told(shared, monkeypatch):
    monkeypatch.setattr(checks, "LEAST_FREE", 10**18)
    ran = shared("doctor", HACHI_OTLP_ENDPOINT=AWAY)
    found = marks(ran.out)
    assert {name: found[name] for name in ("disk", "collector", "database")} == {
        "disk": "✗",
        "collector": "✗",
        "database": "✓",
    }
    assert "make room" in ran.out


def test_a_platform_is_looked_at_once_it_has_a_token(hachi, monkeypatch):
    assert {"slack", "discord"}.isdisjoint(marks(hachi("doctor").out))
    route = pytest.importorskip("discord").http.Route
    monkeypatch.setattr(route, "BASE", route.BASE)  # is put back
    monkeypatch.setenv("DISCORD_TOKEN", "a-token")
    monkeypatch.setenv("DISCORD_API_URL", f"{AWAY}/api/v10")
    monkeypatch.setenv("SLACK_BOT_TOKEN", "xapp-1")
    ran = hachi("doctor")
    assert (ran.code, marks(ran.out)["slack"], marks(ran.out)["discord"]) == (1, "✗", "✗")
    assert "SLACK_BOT_TOKEN is a token of another kind; set it to the bot's token (xoxb-…)" in ran.out
    assert "Discord cannot be reached" in ran.out


def test_what_was_forgotten_and_is_not_deleted_in_time_is_told(hachi, home):
    hachi("memories", "add", "Ana owns a boat")
    hachi("memories", "delete", hachi("memories", "list", "--json").json[0]["id"], "--yes")
    with closing(sqlite3.connect(home / "hachi.db")) as database, database:
        database.execute("UPDATE forgettings SET until = '2020-01-01 00:00:00'")
    ran = hachi("doctor")
    assert (ran.code, marks(ran.out)["work"]) == (1, "✗")
    assert "1 things that were forgotten are not deleted" in " ".join(ran.out.split())
    hachi("purge")
    assert marks(hachi("doctor").out)["work"] == "✓"


def test_whoever_has_more_than_the_index_may_hold_is_named(hachi, monkeypatch):
    hachi("chat", "-m", "I broke my shoulder", "--user", "ana")
    monkeypatch.setattr(checks, "MESSAGE_BYTES", 10_000_000)
    assert marks(hachi("doctor", HACHI_INDEX_MEMORY="1").out)["index"] == "✓", (
        "it has room for more than these"
    )
    monkeypatch.setattr(engine, "ROW_BYTES", 10_000_000)
    ran = hachi("doctor", HACHI_INDEX_MEMORY="1")
    assert (ran.code, marks(ran.out)["index"]) == (1, "✗")
    assert "searches of user:ana leave out what is oldest: raise HACHI_INDEX_MEMORY" in " ".join(
        ran.out.split()
    )


def test_mcp_servers_are_shown_with_their_tools_or_what_is_wrong(shared, tmp_path):
    file = tmp_path / "servers.json"
    servers = {"weather": {**mcp_weather.BADLY, "places": ["acme"]}, "away": {"command": "/no/such"}}
    file.write_text(json.dumps({"mcpServers": servers}))
    told = shared("doctor", HACHI_MCP=str(file)).out
    assert re.search(r"✓ mcp weather stdio: weather_fine, .*, offered in acme; .*odd is left out: ", told)
    assert re.search(r"✗ mcp away\s+stdio: away cannot be reached: .*No such file", told)
    servers["weather"].pop("places")
    file.write_text(json.dumps({"mcpServers": servers}))
    assert "✗ mcp weather nobody is offered its tools" in shared("doctor", HACHI_MCP=str(file)).out
    assert "✗ mcp        HACHI_MCP: /no/such cannot be read" in shared("doctor", HACHI_MCP="/no/such").out
