"""`codea1 serve env`: addresses, and commands that there are not. Games over its web socket: tests/integrations/test_openenv.py."""

from __future__ import annotations

import socket

import pytest

from codea1_env.cli.app import run
from codea1_env.cli.serve import open_address


@pytest.mark.parametrize(
    ("host", "port", "match"),
    [("0.0.0.0", 0, "--allow-others"), ("::", 0, "--allow-others"), ("127.0.0.1", 99_999, "65535")],
)
def test_addresses_that_are_refused(host: str, port: int, match: str) -> None:
    with pytest.raises(ValueError, match=match):
        open_address(host, port, others=False)


def test_others_are_let_in_where_that_is_said() -> None:
    with open_address("0.0.0.0", 0, others=True).listener as listener:
        assert listener.getsockname()[0] == "0.0.0.0"


def test_an_address_that_is_taken_is_said_in_one_line() -> None:
    with (
        socket.create_server(("127.0.0.1", 0)) as taken,
        pytest.raises(ValueError, match=r"Expect a free address.* Address already in use$"),
    ):
        open_address("127.0.0.1", taken.getsockname()[1], others=False)


def test_only_the_game_is_served(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["serve"]) == 2
    assert "usage: codea1 serve env" in capsys.readouterr().err
    assert run(["serve", "evn"]) == 2
    assert "Did you mean 'serve env'?" in capsys.readouterr().err
