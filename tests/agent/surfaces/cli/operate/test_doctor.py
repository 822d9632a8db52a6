import asyncio

import pytest

from agent.services.health import HealthService
from agent.surfaces.cli.operate import doctor


def marks(out):
    """What each line of the report says: its mark, by name."""
    return {line.split()[1]: line[0] for line in out.splitlines() if line[:1] in "✓✗–" and line.strip()}


def test_a_house_in_order(hachi, home):
    hachi("chat", "-m", "I broke my shoulder")
    hachi("tasks", "update", "new", "--description", "buy milk")
    ran = hachi("doctor")
    assert ran.code == 0
    assert marks(ran.out) == {"database": "✓", "embedder": "✓", "index": "✓", "model": "–"}
    assert "offline stand-in" in ran.out
    found = hachi("doctor", "--json").json
    assert found["ok"] is True
    assert found["counts"] == {
        "memories": 1,
        "memories superseded": 0,
        "memories expired": 0,
        "messages": 2,
        "tasks open": 1,
        "tasks done": 0,
        "work waiting": 0,
        "work given up": 0,
        "waiting for the index": 0,
    }
    assert found["versions"]["openai-agents"].startswith("0.24")
    settings = {setting["name"]: setting for setting in found["settings"]}
    assert settings["HACHI_HOME"] == {"name": "HACHI_HOME", "value": str(home), "source": "environment"}
    assert settings["HACHI_MAX_TURNS"] == {"name": "HACHI_MAX_TURNS", "value": "5", "source": "default"}


def test_it_says_where_traces_are(hachi, tmp_path, monkeypatch):
    monkeypatch.setenv("HACHI_TRACES_URL", f"sqlite:///{tmp_path / 'traces.db'}")
    ran = hachi("doctor")
    assert marks(ran.out)["traces"] == "✓"
    [said] = [check for check in hachi("doctor", "--json").json["checks"] if check["name"] == "traces"]
    assert said["detail"] == str(tmp_path / "traces.db")
    monkeypatch.setenv("HACHI_TRACES", "no")
    assert marks(hachi("doctor").out)["traces"] == "–"


def test_secrets_are_masked(hachi, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret1")
    monkeypatch.setenv("OPENAI_BASE_URL", "http://ann:secret2@127.0.0.1:9/v1")
    monkeypatch.setenv("HACHI_MODEL", "small")
    for ran in (hachi("doctor"), hachi("doctor", "--json")):
        assert "OPENAI_API_KEY" in ran.out
        assert "secret1" not in ran.out
        assert "secret2" not in "".join(line for line in ran.out.splitlines() if "BASE_URL" in line)


def test_a_model_server_that_knows_the_model(hachi, model):
    ran = hachi("doctor")
    assert ran.code == 0
    assert marks(ran.out)["model"] == "✓"
    assert "does not list" not in ran.out


def test_a_model_that_is_not_listed_is_said(hachi, model, monkeypatch):
    monkeypatch.setenv("HACHI_MODEL", "huge")
    assert "huge; the server answers, but does not list this model" in hachi("doctor").out


def test_a_server_without_a_list_of_models_is_well(hachi, model):
    model.status = 404
    ran = hachi("doctor")
    assert ran.code == 0
    assert "has no list of models" in ran.out


@pytest.mark.parametrize(("status", "said"), [(401, "OPENAI_API_KEY"), (500, "500")])
def test_a_model_server_that_refuses(hachi, model, status, said):
    model.status = status
    ran = hachi("doctor")
    assert ran.code == 1
    assert marks(ran.out)["model"] == "✗"
    assert said in ran.out


def test_a_model_server_that_is_away(hachi, monkeypatch):
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:9/v1")
    monkeypatch.setenv("HACHI_MODEL", "small")
    ran = hachi("doctor", "--json")
    assert ran.code == 1
    assert ran.json["ok"] is False
    assert ran.json["checks"][-1]["detail"].endswith("cannot be reached; is it running?")


def test_a_model_nobody_named(hachi, monkeypatch):
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:9/v1")
    ran = hachi("doctor")
    assert ran.code == 1
    assert "HACHI_MODEL must name" in ran.out


def test_a_damaged_database(hachi, home):
    home.mkdir()
    (home / "hachi.db").write_text("garbage\n" * 1000)
    ran = hachi("doctor")
    assert ran.code == 1
    assert marks(ran.out) == {"database": "✗", "embedder": "–", "index": "–", "model": "–"}
    assert "Kept" not in ran.out


def test_an_unknown_embedder(hachi, monkeypatch):
    monkeypatch.setenv("HACHI_EMBEDDER", "crystal-ball")
    ran = hachi("doctor")
    assert ran.code == 1
    assert marks(ran.out) == {"database": "✓", "embedder": "✗", "index": "–", "model": "–"}


def test_an_index_server_that_is_away(hachi, monkeypatch):
    monkeypatch.setenv("QDRANT_URL", "http://127.0.0.1:9")
    ran = hachi("doctor")
    assert ran.code == 1
    assert marks(ran.out)["index"] == "✗"
    assert "waiting for the index" not in ran.out


def test_what_does_not_answer_in_time_is_said(hachi, monkeypatch):
    async def sleeps(_):
        await asyncio.sleep(5)

    monkeypatch.setattr(doctor, "CHECK_TIMEOUT", 0.05)
    monkeypatch.setattr(HealthService, "embed", sleeps)
    ran = hachi("doctor")
    assert ran.code == 1
    assert "no answer within 0.05 s" in ran.out


def test_a_part_that_is_not_installed_is_said(hachi, monkeypatch):
    monkeypatch.setattr(doctor, "PARTS", ("hachi", "nothing-of-that-name"))
    assert hachi("doctor", "--json").json["versions"]["nothing-of-that-name"] == "not installed"
