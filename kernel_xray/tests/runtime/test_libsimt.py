"""The keys of what is built once for all kernels: they change with the simulator's files, which are read only then."""

import os
from pathlib import Path

import pytest

from kernel_xray.runtime import libsimt


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A copy of the headers, of two files."""
    (tmp_path / "simt").mkdir()
    for name in ("core.h", "simt/warp.h"):
        (tmp_path / name).write_text("int x;\n")
    monkeypatch.setattr(libsimt, "INCLUDE", tmp_path)
    return tmp_path


def keys():
    return libsimt.headers_digest(), libsimt._place("simt", libsimt._files(libsimt.INCLUDE), [])[1]


@pytest.mark.parametrize(
    "edit",
    [
        lambda folder: (folder / "simt" / "warp.h").write_text("long x;\n"),
        lambda folder: (folder / "simt" / "new.h").write_text(""),
        lambda folder: (folder / "core.h").unlink(),
        lambda folder: (folder / "core.h").rename(folder / "other.h"),
    ],
)
def test_a_change_of_a_header_changes_the_keys(folder, edit):
    before = keys()
    edit(folder)
    assert all(new != old for new, old in zip(keys(), before, strict=True))


def test_the_same_headers_in_another_folder_have_the_same_keys(folder, monkeypatch):
    here = keys()
    monkeypatch.setattr(libsimt, "INCLUDE", folder.rename(folder.with_name("elsewhere")))
    assert keys() == here


def test_headers_that_have_not_changed_are_read_once(folder, monkeypatch):
    before, read = keys(), []
    monkeypatch.setattr(Path, "read_bytes", lambda path: read.append(path))
    assert keys() == before and read == []
    os.utime(folder / "core.h", (0, 0))
    keys()
    assert folder / "core.h" in read
