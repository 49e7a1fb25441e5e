"""The build cache: what is damaged, unfinished or another's is never used; what is intact always is."""

import errno
import fcntl
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from kernel_xray.machine import artifacts, cache, cache_command, eviction

CONTENT = b"library" * 1000


@pytest.fixture
def root(tmp_path, monkeypatch):
    monkeypatch.setenv(cache.VARIABLE, str(tmp_path / "cache"))
    return cache.root()


class Builder:
    """Builds a file and counts how often it was asked to."""

    def __init__(self, folder, content=CONTENT):
        self.folder, self.content, self.count, self.pause = folder, content, 0, 0.0

    def __call__(self):
        self.count += 1
        time.sleep(self.pause)
        (self.folder / "made.so").unlink(missing_ok=True)
        (self.folder / "made.so").write_bytes(self.content)
        return self.folder / "made.so"

    def get(self, key="key"):
        made = artifacts.built(self.folder, key, self)
        assert made.read_bytes() == self.content
        return self.count


def test_a_finished_build_is_not_repeated(root, capsys):
    builder = Builder(root / "k")
    assert [builder.get(), builder.get()] == [1, 1]
    assert [builder.get("other"), builder.get("other")] == [2, 2]
    assert capsys.readouterr().err == ""


OTHER = CONTENT.replace(b"b", b"p", 1)
DAMAGES = {  # what happens to the folder and to the file, and what is said of it
    "truncated": (lambda folder, made: os.truncate(made, 100), "was damaged (100 of 7,000 bytes)"),
    "empty": (lambda folder, made: os.truncate(made, 0), "was damaged (0 of 7,000 bytes)"),
    "changed": (lambda folder, made: made.write_bytes(OTHER), "was damaged (other contents)"),
    "removed": (lambda folder, made: made.unlink(), "cannot be read (No such file or directory)"),
    "others may write it": (lambda folder, made: made.chmod(0o666), "could be written by other users"),
    "others may write the folder": (lambda folder, made: folder.chmod(0o777), "could be written by other users"),
}


@pytest.mark.parametrize(("damage", "words"), DAMAGES.values(), ids=DAMAGES)
def test_what_is_not_as_it_was_recorded_is_built_again_and_said(root, capsys, damage, words):
    builder = Builder(root / "k")
    builder.get()
    damage(root / "k", root / "k" / "made.so")
    (root / "k" / ".ninja_log").touch()
    assert builder.get() == 2
    assert words in (said := capsys.readouterr().err) and "building it again" in said
    assert not (root / "k" / ".ninja_log").exists()  # ninja takes nothing of the old build for finished
    assert builder.get() == 2
    assert capsys.readouterr().err == ""


def test_what_has_to_be_as_after_the_build_decides_too(root):
    builder, kept = Builder(root / "k"), root / "list"

    def get():
        artifacts.built(root / "k", "key", build, lambda: kept.read_text() if kept.exists() else "")
        return builder.count

    def build():
        kept.write_text("what the compiler read")
        return builder()

    assert (get(), get()) == (1, 1)
    kept.unlink()
    assert (get(), get()) == (2, 2)


@pytest.mark.parametrize("record", ["", "{", "[]", '{"file": "made.so"}', '{"file": "made.so", "key": "key"}'])
def test_a_damaged_record_leads_to_a_new_build(root, record):
    builder = Builder(root / "k")
    builder.get()
    (root / "k" / artifacts.RECORD).write_text(record)
    assert [builder.get(), builder.get()] == [2, 2]


def test_a_large_file_is_hashed_only_if_it_was_written_since(root, monkeypatch):
    monkeypatch.setattr(artifacts, "_ALWAYS_HASHED", 100)
    builder = Builder(root / "k")
    builder.get()
    hashed = []
    monkeypatch.setattr(
        artifacts, "_hash", lambda path, original=artifacts._hash: hashed.append(path) or original(path)
    )
    assert (builder.get(), hashed) == (1, [])
    os.utime(root / "k" / "made.so")  # as after a copy
    assert (builder.get(), len(hashed)) == (1, 1)
    (root / "k" / "made.so").write_bytes(OTHER)
    assert builder.get() == 2


def test_a_failed_build_leaves_nothing_that_counts(root):
    def fail():
        (root / "k" / "made.so").write_bytes(b"half")
        raise RuntimeError("no space")

    with pytest.raises(RuntimeError, match="no space"):
        artifacts.built(root / "k", "key", fail)
    assert Builder(root / "k").get() == 1


def test_a_folder_that_the_user_named_keeps_its_rights_and_files(root, tmp_path):
    folder = tmp_path / "mine"
    folder.mkdir(mode=0o777)
    folder.chmod(0o777)
    (folder / "other.so").touch()
    builder = Builder(folder)
    assert [builder.get(), builder.get()] == [1, 1]
    assert folder.stat().st_mode & 0o777 == 0o777 and (folder / "other.so").exists()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file to another user")
def test_a_library_of_another_user_is_not_loaded(root, capsys):
    builder = Builder(root / "k")
    builder.get()
    os.chown(root / "k" / "made.so", 12345, 12345)
    assert builder.get() == 2
    assert "belongs to another user (number 12345)" in capsys.readouterr().err
    os.chown(root / "k", 12345, 12345)
    with pytest.raises(cache.CacheError, match=r"k belongs to another user"):
        builder.get()
    os.chown(root, 12345, 12345)  # the owner of the cache is trusted: a teacher's cache serves a class
    assert builder.get() == 2


READ_ONLY = """
import os, sys
from pathlib import Path
from kernel_xray.machine import artifacts, cache
os.setuid(23456)
print(artifacts.built(cache.root() / "k", "key", None))
try:
    artifacts.built(cache.root() / "new", "key", None)
except cache.CacheError as error:
    print(error)
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
def test_a_read_only_cache_serves_what_it_holds(monkeypatch):
    with tempfile.TemporaryDirectory() as folder:  # unlike pytest's folders, another user can reach it
        Path(folder).chmod(0o755)
        monkeypatch.setenv(cache.VARIABLE, f"{folder}/cache")
        Builder(cache.root() / "k").get()
        done = subprocess.run([sys.executable, "-c", READ_ONLY], capture_output=True, text=True, check=False)
        assert done.stdout.splitlines()[0] == str(cache.root() / "k" / "made.so"), done.stderr
        assert "new is not in the build cache" in done.stdout and cache.VARIABLE in done.stdout


def test_a_relative_path_counts_from_where_it_was_first_asked_for(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv(cache.VARIABLE, f"relative_{tmp_path.name}")
    first = cache.root()
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    assert cache.root() == first == tmp_path / f"relative_{tmp_path.name}"


@pytest.mark.parametrize("character", [":", ",", "$", "'", '"', "#", "%", "&", ";", "(", "\n"])
def test_a_path_that_linkers_do_not_take_is_refused_in_words(tmp_path, monkeypatch, character):
    monkeypatch.setenv(cache.VARIABLE, str(tmp_path / f"a{character}b"))
    with pytest.raises(cache.CacheError, match=f"{cache.VARIABLE} to a path without it") as caught:
        cache.root()
    assert repr(character) in str(caught.value)
    assert not (tmp_path / f"a{character}b").exists()


@pytest.mark.parametrize("name", ["a b", "é", "a=b", "a+b@c~d"])
def test_other_paths_are_taken(tmp_path, monkeypatch, name):
    monkeypatch.setenv(cache.VARIABLE, str(tmp_path / name))
    assert cache.root().is_dir()


def age(folder, hours):
    then = time.time() - hours * 3600
    os.utime(folder / artifacts.RECORD, (then, then))


def test_the_folders_unused_for_longest_go_when_the_limit_is_reached(root, monkeypatch):
    for hours, name in enumerate(("new", "used", "old", "older"), 2):
        Builder(root / name, b"x" * 1_000_000).get()
        age(root / name, hours)
    (root / "inline").mkdir()  # no build
    Builder(root / "used", b"x" * 1_000_000).get()  # a hit: used just now
    monkeypatch.setenv(eviction.VARIABLE, "0.0025")
    assert [f.name for f in eviction.trim(root, keep=root / "new")] == []  # within ten minutes of the last time
    (root / ".trimmed").unlink(missing_ok=True)
    assert {f.name for f in eviction.trim(root, keep=root / "new")} == {"old", "older"}
    assert {p.name for p in root.iterdir() if p.is_dir()} == {"new", "used", "inline"}


WITHOUT_FLOCK = [errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP]


def flock_fails(monkeypatch, folder, number):
    """As on a file system that begins at `folder`; the folder for temporary files is on another one."""

    def flock(file, how, original=fcntl.flock):
        if Path(file.name).is_relative_to(folder):
            raise OSError(number, os.strerror(number))
        original(file, how)

    monkeypatch.setattr(fcntl, "flock", flock)
    monkeypatch.setattr(tempfile, "tempdir", str(folder.parent / "temporary"))


@pytest.mark.parametrize("number", [None, *WITHOUT_FLOCK])
def test_a_folder_in_use_is_kept(root, monkeypatch, number):
    if number:
        flock_fails(monkeypatch, root, number)
    for name in ("recent", "locked", "idle"):
        Builder(root / name, b"x" * 1_000_000).get()
    age(root / "locked", 5)
    age(root / "idle", 5)
    monkeypatch.setenv(eviction.VARIABLE, "0.0001")
    (root / ".trimmed").unlink(missing_ok=True)
    with cache.locked(root / "locked"):
        assert [f.name for f in eviction.trim(root, keep=root / "none")] == ["idle"]


def test_threads_build_once_without_flock(root, monkeypatch):
    flock_fails(monkeypatch, root, errno.ENOLCK)
    builder = Builder(root / "k")
    builder.pause = 0.2
    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(lambda _: builder.get(), range(4))) == [1] * 4


def test_a_folder_that_cannot_be_locked_is_named(root, monkeypatch):
    flock_fails(monkeypatch, root, errno.EIO)
    with pytest.raises(cache.CacheError, match=r"^k is not in the build cache .* \(Input/output error\); set KERNEL_"):
        Builder(root / "k").get()


def test_a_clock_that_was_set_back_does_not_stop_the_eviction(root, monkeypatch):
    Builder(root / "k", b"x" * 1_000_000).get()
    age(root / "k", -24)
    monkeypatch.setenv(eviction.VARIABLE, "0.0001")
    tomorrow = time.time() + 86400
    os.utime(root / ".trimmed", (tomorrow, tomorrow))
    assert [f.name for f in eviction.trim(root, keep=root / "new")] == ["k"]


@pytest.mark.parametrize("limit", ["much", "-1", "inf", "nan"])
def test_a_wrong_limit_is_an_error_before_the_build(root, monkeypatch, limit):
    monkeypatch.setenv(eviction.VARIABLE, limit)
    builder = Builder(root / "k")
    with pytest.raises(cache.CacheError, match="give gigabytes"):
        builder.get()
    assert builder.count == 0


def test_a_lock_on_an_evicted_folder_is_taken_anew(root):
    with cache.locked(root / "k"):
        shutil.rmtree(root / "k")
    with cache.locked(root / "k"):
        assert (root / "k" / cache.LOCK).exists()


def test_the_command_shows_and_clears_the_cache(root, capsys):
    Builder(root / "op-0123456789abcdef").get()
    Builder(root / "op_v1-0123456789abcdee").get()
    assert cache_command.main([]) == 0
    shown = capsys.readouterr().out
    assert str(root) in shown and "2 builds" in shown and " op: 2 builds, last used 0 h ago" in shown
    assert cache_command.main(["clear"]) == 0
    assert "deleted" in capsys.readouterr().out
    assert eviction.entries(root) == []


def test_the_record_says_what_it_is_about(root):
    Builder(root / "k").get()
    record = json.loads((root / "k" / artifacts.RECORD).read_text())
    assert (record["file"], record["key"], record["bytes"], len(record["sha256"])) == ("made.so", "key", 7000, 64)
