import json
import logging
import warnings

from agent.settings import Settings
from agent.surfaces.cli.log import events, logging_to


def test_decisions_are_lines_of_json_and_the_rest_is_text(tmp_path):
    with logging_to(Settings(home=tmp_path), verbose=False):
        logging.getLogger("hachi.memory").info('{"event": "memory_decision", "user_id": "lea"}')
        logging.getLogger("hachi.turn").error("a model was away")
    first, second = (tmp_path / "hachi.log").read_text().splitlines()
    assert json.loads(first)["user_id"] == "lea"
    assert json.loads(first)["time"].endswith("Z")
    assert second.endswith("ERROR hachi.turn: a model was away")
    assert [entry["user_id"] for entry in events(tmp_path, "memory_decision")] == ["lea"]


def test_secrets_are_left_out(tmp_path):
    key = f"hachi-{'Ab3d' * 11}"
    with logging_to(Settings(home=tmp_path, openai_api_key="not-a-usual-key"), verbose=False):
        logging.getLogger("hachi.turn").error("%s was refused, and not-a-usual-key", key)
    log = (tmp_path / "hachi.log").read_text()
    assert log.count("[redacted]") == 2
    assert "usual" not in log


def test_the_level_is_the_settings(tmp_path):
    with logging_to(Settings(home=tmp_path, log_level="ERROR"), verbose=False):
        logging.getLogger("hachi.turn").info("a detail")
    assert (tmp_path / "hachi.log").read_text() == ""


def test_warnings_go_there_too(tmp_path):
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        with logging_to(Settings(home=tmp_path), verbose=False):
            warnings.warn("old ways", stacklevel=1)
    assert "old ways" in (tmp_path / "hachi.log").read_text()


def test_a_log_that_cannot_be_written_costs_only_the_log(tmp_path, capsys):
    blocked = tmp_path / "file"
    blocked.write_text("")
    with logging_to(Settings(home=blocked), verbose=False):
        logging.getLogger("hachi.turn").error("lost")
    assert capsys.readouterr().err == ""


def test_a_disk_that_fills_up_costs_only_the_log(tmp_path, capsys):
    with logging_to(Settings(home=tmp_path), verbose=False):
        [handler] = [h for h in logging.root.handlers if "surfaces.cli" in type(h).__module__]
        handler.setStream(open("/dev/full", "w")).close()  # noqa: SIM115 - the handler closes it
        logging.getLogger("hachi.turn").error("lost")
    assert capsys.readouterr().err == ""


def test_a_home_without_a_log_has_no_decisions(tmp_path):
    assert list(events(tmp_path, "memory_decision")) == []
