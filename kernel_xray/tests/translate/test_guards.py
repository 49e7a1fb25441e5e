"""Large headers that a program does not read are left out of its translation, and no others."""

import pytest

import kernel_xray
from kernel_xray.translate import guards, includes

PADDING = "// padding\n" * 8000  # beyond the size from which on a header may be left out
MAIN = """
#include <cstdio>
{before}
{condition}
#include "large.h"
{after}
#endif
int main() {{ std::printf("%d\\n", ANSWER); }}
"""


def written(folder, condition, before="", after="", padding=PADDING):
    (folder / "large.h").write_text(f"#define ANSWER 42\n{padding}")
    source = folder / "main.cu"
    source.write_text(MAIN.format(condition=condition, before=before, after=after))
    return source


def names(source, flags=()):
    return [path.name for path in includes.closure([source], [], list(flags))]


@pytest.mark.parametrize(
    "condition", ["#ifdef WITH_LARGE", "#if defined(WITH_LARGE)  // why", "# if defined WITH_LARGE"]
)
def test_a_large_header_waits_for_its_macro(tmp_path, condition):
    source = written(tmp_path, condition)
    assert names(source) == ["main.cu"]
    assert names(source, ["-DWITH_LARGE=1"]) == ["main.cu", "large.h"]
    assert names(source, ["-include", "other.h"]) == ["main.cu", "large.h"]
    assert [path.name for path in includes.closure([source], [])] == ["main.cu", "large.h"]


@pytest.mark.parametrize(
    "text",
    [
        {"condition": "#ifndef WITHOUT_LARGE"},
        {"condition": "#if !defined(WITHOUT_LARGE)"},
        {"condition": "#if defined(WITH_LARGE) || 1"},
        {"condition": "#ifdef __GNUC__"},  # the compiler's own
        {"condition": "#ifdef WITH_LARGE\n#else"},
        {"condition": "#ifdef WITH_LARGE", "before": "#define WITH_LARGE"},
        {"condition": "#ifdef WITH_LARGE", "before": '#include "large.h"'},
        {"condition": "#ifdef WITH_LARGE", "after": '#endif\n#if 1\n#include "large.h"'},
        {"condition": "#ifdef WITH_LARGE", "padding": ""},
    ],
)
def test_a_header_that_may_be_read_is_not_left_out(tmp_path, text):
    assert names(written(tmp_path, **text)) == ["main.cu", "large.h"]


def test_a_macro_of_a_header_that_is_let_in_lets_in_another(tmp_path):
    source = written(tmp_path, "#ifdef FIRST", after='#endif\n#ifdef SECOND\n#include "other.h"')
    (tmp_path / "large.h").write_text(f"#define SECOND\n{PADDING}")
    (tmp_path / "other.h").write_text(PADDING)
    assert names(source) == ["main.cu"]
    assert names(source, ["-DFIRST"]) == ["main.cu", "large.h", "other.h"]


@pytest.mark.skipif(kernel_xray.target != "simulator", reason="for a GPU, the compiler reads the program's own files")
def test_a_macro_of_a_system_header_lets_a_header_in(tmp_path):
    source = written(tmp_path, "#ifdef EOF")
    assert names(source) == ["main.cu"]
    assert kernel_xray.program(source).stdout == "42\n"


def test_the_outermost_macro_guards():
    text = '#if X > 1\n#ifdef A\n#ifdef B\n#include <x.h>\n#endif\n#include "y.h"\n#endif\n#include "z.h"\n#endif'
    assert guards.guards(text) == {"x.h": "A", "y.h": "A"}
