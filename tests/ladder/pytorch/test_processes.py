"""The processes of a group meet where only this machine can reach them."""

import sys
from pathlib import Path

import pytest

from helpers.ladder.pytorch import processes


def listening(port):
    """The addresses on which something listens at a port, as in /proc: "0100007F" is 127.0.0.1."""
    texts = [Path("/proc/net", table).read_text() for table in ("tcp", "tcp6")]
    lines = [line.split() for text in texts for line in text.splitlines()[1:]]
    return [line[1].split(":")[0] for line in lines if line[1].endswith(f":{port:04X}") and line[3] == "0A"]


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_the_store_listens_on_the_loopback_interface_only():
    store = processes._store()
    assert listening(store.port) == ["0100007F"]
    store.set("key", "value")
    assert store.get("key") == b"value"
