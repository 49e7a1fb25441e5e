"""An edit of one of an extension's sources compiles that one alone, and gives the new code."""

import ctypes
import os
import time
from pathlib import Path

import pytest

import kernel_xray
from kernel_xray.machine import cache

pytestmark = pytest.mark.usefixtures("own_cache")
SOURCES = {
    "main.cu": '#include "both.h"\nextern "C" int total() { return second() + both(); }\n',
    "second.cpp": "int second() { return 100; }\n",
    "both.h": "int second();\ninline int both() { return 1; }\n",
}
ALL = {"main.cu", "second.cpp"}


@pytest.fixture
def built(tmp_path):
    """Writes sources, builds them, and returns what they add up to and which of them were compiled."""

    def build(texts, **options):
        for name, text in texts.items():
            (tmp_path / name).write_text(text)
            os.utime(tmp_path / name, (time.time() - 10,) * 2)  # before the build begins
        paths = [tmp_path / name for name in ("main.cu", "second.cpp")]
        library = Path(kernel_xray.load("t_units", paths, is_python_module=False, **options))
        log = (library.parent / ".ninja_log").read_text()
        compiled = {name for name in SOURCES if f"{Path(name).stem}." in log.replace("\t", " ")}
        return ctypes.CDLL(str(library)).total(), compiled

    return build


def test_only_what_an_edit_changes_is_compiled(built):
    assert built(SOURCES) == (101, ALL)
    edited = {**SOURCES, "second.cpp": "int second() { return 200; }\n"}
    assert built(edited) == (201, {"second.cpp"})
    of_header = {**edited, "both.h": SOURCES["both.h"].replace("return 1;", "return 2;")}
    assert built(of_header) == (202, {"main.cu"})


@pytest.mark.slow  # six compilations; the one above has the rule
def test_an_object_that_depends_on_a_file_that_no_text_names_is_not_kept(built):
    hidden = {
        **SOURCES,
        "second.cpp": '#ifndef HIDDEN\n#define HIDDEN "hidden.h"\n#endif\n#include HIDDEN\n',
        "hidden.h": "int second() { return 100; }\n",
    }
    assert built(hidden)[0] == 101
    assert built({**hidden, "hidden.h": "int second() { return 300; }\n"})[0] == 301
    assert built({**hidden, "both.h": SOURCES["both.h"] + "\n"})[1] == ALL
    assert built(hidden, extra_cflags=["-DOTHER"]) == (101, ALL)


@pytest.mark.slow  # test_damage.py has it of what else the cache holds
def test_a_damaged_object_is_made_again(built, capfd):
    assert built({**SOURCES, "main.cu": SOURCES["main.cu"] + "\n\n"})[0] == 101
    objects = [*cache.root().glob("t_units_object-*/*.o")]
    assert objects
    for made in objects:
        made.write_bytes(made.read_bytes()[:100])
    assert built({**SOURCES, "main.cu": SOURCES["main.cu"] + "\n"})[0] == 101
    assert "was damaged" in capfd.readouterr().err
