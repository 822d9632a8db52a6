import json
import logging

from agent.settings import Settings
from agent.surfaces.cli.log import logging_to

LINE = (
    '{"event": "memory_decision", "user_id": "lea", "decisions": '
    '[{"fact": "Lea rows", "action": "add", "id": "7f", "reason": "new"}]}'
)


def decide(home, **settings):
    """What the log and the file of decisions hold after one decision and one error."""
    with logging_to(Settings(home=home, **settings), verbose=False):
        logging.getLogger("hachi.decisions").info(LINE)
        logging.getLogger("hachi.turn").error("a model was away")
    decisions = home / "decisions.jsonl"
    return (home / "hachi.log").read_text(), decisions.read_text() if decisions.exists() else None


def test_the_log_holds_ids_and_decisions_have_a_file_of_their_own(tmp_path):
    log, decisions = decide(tmp_path)
    first, second = log.splitlines()
    assert json.loads(first)["decisions"] == [{"action": "add", "id": "7f"}]
    assert json.loads(first)["time"].endswith("Z")
    assert second.endswith("ERROR hachi.turn: a model was away")
    [line] = decisions.splitlines()
    assert json.loads(line).pop("time").endswith("Z")
    assert json.loads(line)["decisions"] == json.loads(LINE)["decisions"]


def test_decisions_can_be_kept_without_the_facts_or_not_at_all(tmp_path):
    _, decisions = decide(tmp_path, decisions="redacted")
    [decision] = json.loads(decisions)["decisions"]
    assert decision == {"action": "add", "id": "7f", "fact": "[redacted]", "reason": "[redacted]"}
    (tmp_path / "decisions.jsonl").unlink()
    assert decide(tmp_path, decisions="off")[1] is None


def test_what_would_drive_a_terminal_is_escaped_in_text_and_in_json(tmp_path):
    evil = "\u202etxt.exe\u2028\x9b31m\x7f and עברית 👩\u200d🚀"
    line = LINE.replace("Lea rows", evil)
    with logging_to(Settings(home=tmp_path), verbose=False):
        logging.getLogger("hachi.turn").error("%s\nand more", evil)
        logging.getLogger("hachi.decisions").info(line)
    log, decisions = [(tmp_path / name).read_text() for name in ("hachi.log", "decisions.jsonl")]
    assert r": \u202etxt.exe\u2028\x9b31m\x7f and עברית 👩" + "\u200d🚀\nand more\n" in log
    assert not {*"\u202e\u2028\x9b\x7f"} & {*log, *decisions}
    assert json.loads(decisions)["decisions"] == json.loads(line)["decisions"]


def test_a_disk_that_fills_up_costs_only_the_log(tmp_path, capsys):
    with logging_to(Settings(home=tmp_path), verbose=False):
        for handler in [h for h in logging.root.handlers if "surfaces.cli" in type(h).__module__]:
            handler.setStream(open("/dev/full", "w")).close()  # noqa: SIM115 - the handler closes it
        logging.getLogger("hachi.turn").error("lost")
        logging.getLogger("hachi.decisions").info(LINE)
    assert capsys.readouterr().err == ""


def test_it_goes_to_the_terminal_only_with_verbose(hachi, home):
    assert hachi("memories", "add", "Mickael skis").err == ""
    assert '"event": "memory_decision"' in hachi("-v", "memories", "add", "Mickael rides a horse").err
    assert (home / "hachi.log").read_text().count("memory_decision") == 2
