"""`object.function<4>(x)` gets the word `template` where the function is one of the templates of the file."""

import pytest

from kernel_xray.translate.member_templates import member_templates
from kernel_xray.translate.rewriter import rewrite

DECLARED = "template <int N> struct Tile { template <bool A, class B> __device__ B load(int x); };\n"


def body(statement: str) -> str:
    return rewrite(DECLARED + statement)[len(DECLARED) :]


@pytest.mark.parametrize(
    ("statement", "rewritten"),
    [
        ("t.load<true, int>(1);", "t.template load<true, int>(1);"),
        ("t->load<true, unsigned long>(1);", "t->template load<true, unsigned long>(1);"),
        ("t.load<N, Pair<int, Pair<int, int>>>(1);", "t.template load<N, Pair<int, Pair<int, int>>>(1);"),
        (
            "this->rows[i].load<1, a::b>(t.load<0, c>(2));",
            "this->rows[i].template load<1, a::b>(t.template load<0, c>(2));",
        ),
    ],
)
def test_a_call_gets_the_word(statement, rewritten):
    assert body(statement) == rewritten


@pytest.mark.parametrize(
    "statement",
    [
        "t.template load<true, int>(1);",
        "load<true, int>(1);",
        "Tile<4>::load<true, int>(1);",
        "bool b = t.size < n > (1);",  # no template of this file
        "bool b = t.load < n;",
        "bool b = t.load < n && m > (1);",
        "t.load(1);",
    ],
)
def test_other_uses_stay_as_they_are(statement):
    assert body(statement) == statement


def test_templates_of_functions_count_and_not_those_of_classes():
    source = "template <class T> struct A {}; template <class T> static inline T* f(T x); void g(int);"
    assert member_templates(source) == {"f"}
