from datetime import UTC, datetime

import pytest

from agent.surfaces.cli.options import clean, login, moment


def test_surrogate_halves_and_nul_are_removed():
    assert clean("caf\udce9 \x00ok") == "caf� ok"


@pytest.mark.parametrize(
    ("environment", "name"),
    [({"LOGNAME": "ann", "USER": "bea"}, "ann"), ({"LOGNAME": "", "USER": "bea"}, "bea"), ({}, "you")],
)
def test_the_login_name_is_from_the_environment(monkeypatch, environment, name):
    for key in ("LOGNAME", "USER", "USERNAME"):
        monkeypatch.delenv(key, raising=False)
    for key, value in environment.items():
        monkeypatch.setenv(key, value)
    assert login() == name


def test_a_time_is_aware():
    assert moment("2026-01-10T09:30+02:00") == datetime(2026, 1, 10, 7, 30, tzinfo=UTC)
    assert moment("2026-01-10").tzinfo is not None
