"""The files for platforms are what the platforms describe. The schemas below restate their descriptions.

Each schema must also reject a file with one thing wrong, or it would show nothing.
"""

import csv
import io
import json
import re
import subprocess
import xml.etree.ElementTree as ET
from html.parser import HTMLParser

import jsonschema
import pytest

from helpers.teaching.classroom import classroom50, formats, gradebooks
from helpers.teaching.classroom.points import Scheme, Worth
from helpers.teaching.classroom.results import Class, Graded, Part, Result

NASTY = 'n = 5: <b>&"\x1b[31m\x00\ufffe ]]> =1+1 \N{GREEK SMALL LETTER ALPHA}'


def result(name="roll", kind="accepted", message="5 cases", points=2.0, maximum=2.0, efficiency=None, **more):
    parts = [Part("correctness", points, maximum)]
    if efficiency is not None:
        parts.append(Part("efficiency", efficiency, 1.0))
    return Result(name, kind, message, f"{name}.cu", tuple(parts), **more)


ANN = Graded("ann", (result(), result("blend", efficiency=0.0, message="7 cases\nIt is right, but wasteful: x")))
BOB = Graded("bob", (result(kind="rejected", message=NASTY, points=0.0, printed=NASTY), result("blend")), (NASTY,))
EVE = Graded("eve", (result(kind="missing", points=0.0, message="no file"), result("blend", "unsolved", "", 0.0)))
LONG = Graded("long", tuple(result(kind="fault", message="\N{SNOWMAN}" * 500_000, points=0.0) for _ in range(28)))
SCHEME = Scheme("Week 1", {"roll": Worth(2.0), "blend": Worth(2.0, 1.0)})
ALL = [ANN, BOB, EVE, LONG]
WHOLE = Class(SCHEME, (ANN, BOB, EVE))


def each(value, *names):
    return dict.fromkeys(names, value)


def obj(properties, required=(), closed=False):
    """The schema of an object; a closed one has no other keys."""
    return {
        "type": "object", "properties": properties, "required": list(required), "additionalProperties": not closed,
    }  # fmt: skip


def array(items=True):
    return {"type": "array", "items": items}


TEXT, POINTS = {"type": "string"}, {"type": "number", "minimum": 0}
VISIBILITY = {"enum": ["hidden", "after_due_date", "after_published", "visible"]}
FORMAT = {"enum": ["text", "html", "simple_format", "md", "ansi"]}
TEST = each(POINTS, "score", "max_score") | each(TEXT, "name", "number", "output")
TEST |= each(FORMAT, "name_format", "output_format") | {"status": {"enum": ["passed", "failed"]}}
TEST |= {"tags": array(TEXT), "visibility": VISIBILITY, "extra_data": {"type": "object"}}
RESULTS = {"score": POINTS, "execution_time": {"type": "number"}, "output": TEXT}
RESULTS |= each(FORMAT, "output_format", "test_output_format", "test_name_format")
RESULTS |= each(VISIBILITY, "visibility", "stdout_visibility")
RESULTS |= {"extra_data": {"type": "object"}, "leaderboard": array(), "tests": array(obj(TEST, closed=True))}
SCORED = {"required": ["score"]}
GRADESCOPE = obj(RESULTS, closed=True) | {
    "anyOf": [SCORED, {"required": ["tests"], "properties": {"tests": {"minItems": 1, "items": SCORED}}}]
}
SHOWN = each(TEXT, "name", "description", "message", "output") | each(POINTS, "points", "max_points")
GRADED = {"gradable": {"type": "boolean"}, "score": {"type": "number", "minimum": 0, "maximum": 1}}
GRADED |= each(TEXT, "message", "output") | {"tests": array(obj(SHOWN | {"images": array()}))}
PRAIRIELEARN = obj(GRADED | {"format_errors": {"anyOf": [TEXT, array(TEXT)]}}) | {
    "if": {"properties": {"gradable": {"const": False}}, "required": ["gradable"]},
    "else": SCORED,
}
WHOLE_NUMBER, WORD = {"type": "integer", "minimum": 0}, {"type": "string", "minLength": 1}
CASE = {"test-name": WORD, "passed": {"type": "boolean"}, **each(WHOLE_NUMBER, "score", "max-score")}
FIELDS = {
    "schema": {"const": "classroom50/result/v1"},
    **each(WORD, "classroom", "assignment", "owner", "commit", "release", "review"),
    "assignment_type": {"enum": ["individual", "group"]},
    "submission": {"type": "string", "pattern": "^submit/"},
    "datetime": {"type": "string", "pattern": r"^\d{4}-\d\d-\d\dT([01]\d|2[0-3]):[0-5]\d:[0-5]\dZ$"},
    **each(WHOLE_NUMBER, "score", "max-score"),
    "tests": array(obj(CASE, required=CASE)),
}
CLASSROOM50 = obj(FIELDS, required=FIELDS, closed=True)


@pytest.fixture
def runner(tmp_path, monkeypatch):
    """The surroundings that Classroom 50's runner makes: variables, and a checkout as working folder."""
    url = "https://github.com/class/x"
    for name, value in {"CLASSROOM": "gpu", "ASSIGNMENT": "week1", "ASSIGNMENT_TYPE": "individual", "OWNER": "ann",
                        "SUBMISSION_TAG": "submit/2026-06-01T14-32-05Z-a1b2c3d", "COMMIT_URL": url,
                        "RELEASE_URL": url, "REVIEW_URL": ""}.items():  # fmt: skip
        monkeypatch.setenv(name, value)
    for name in ("AUTHOR", "COMMITTER"):
        for key, value in {"NAME": "Ann", "EMAIL": "ann@x", "DATE": "2026-06-01T16:32:01+02:00"}.items():
            monkeypatch.setenv(f"GIT_{name}_{key}", value)
    monkeypatch.chdir(tmp_path)
    subprocess.run(["git", "init", "-q"], check=True)
    subprocess.run(["git", "commit", "-q", "--allow-empty", "-m", "x"], check=True)


def test_classroom50_gets_whole_points_and_the_date_of_the_commit(runner, monkeypatch):
    half = Graded("ann", (result(points=1.5, maximum=2.5), result("blend", maximum=2.0)))
    for one in (ANN, BOB, EVE, half):
        content = json.loads(json.dumps(classroom50.result(Class(SCHEME, (one,), single=True))))
        jsonschema.validate(content, CLASSROOM50)
    assert (content["score"], content["max-score"], content["datetime"]) == (3, 4, "2026-06-01T14:32:01Z")
    assert content["review"] == content["commit"]
    others = [{"score": 1.5}, {"points": 1}, {"submission": "x"}, {"datetime": "today"}, {"tests": [{"passed": 1}]}]
    for wrong in others:
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate({**content, **wrong}, CLASSROOM50)
    with pytest.raises(classroom50.NotThere, match="is for one submission"):
        classroom50.result(WHOLE)
    monkeypatch.delenv("OWNER")
    with pytest.raises(classroom50.NotThere, match=r"which sets OWNER$"):
        classroom50.surroundings()


def test_classroom50_needs_a_checkout(runner, monkeypatch, tmp_path):
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "none"))
    with pytest.raises(classroom50.NotThere, match="checkout as working folder"):
        classroom50.surroundings()


@pytest.mark.parametrize("one", ALL, ids=lambda one: one.name)
@pytest.mark.parametrize("make", [gradebooks.gradescope, gradebooks.prairielearn])
def test_results_json_is_as_the_platform_describes_it(make, one):
    schema = GRADESCOPE if make is gradebooks.gradescope else PRAIRIELEARN
    content = json.loads(json.dumps(make(one)))
    jsonschema.validate(content, schema)
    if "tests" in content and make is gradebooks.gradescope:
        assert sum(test["score"] for test in content["tests"]) == one.points
        assert sum(test["max_score"] for test in content["tests"]) == one.maximum


def test_prairielearn_gets_a_share_and_at_most_a_megabyte():
    assert gradebooks.prairielearn(ANN)["score"] == 0.8
    assert gradebooks.prairielearn(BOB)["score"] == 0.5
    assert gradebooks.prairielearn(EVE) == {"gradable": False, "format_errors": [
        "roll: not handed in: no file", "blend: not solved yet: "]}  # fmt: skip
    for _, content in formats.FORMATS["prairielearn"](Class(SCHEME, tuple(ALL))):
        assert len(content.encode()) < 1_000_000


def test_gradescope_shows_efficiency_as_a_test_of_its_own():
    tests = gradebooks.gradescope(ANN)["tests"]
    assert [(t["name"], t["score"], t["max_score"], t["status"]) for t in tests] == [
        ("roll", 2, 2, "passed"), ("blend", 2, 2, "passed"), ("blend: efficiency", 0, 1, "failed"),
    ]  # fmt: skip
    assert tests[2]["output"] == "It is right, but wasteful: x"
    assert gradebooks.gradescope(Graded("none", ()))["score"] == 0


@pytest.mark.parametrize(
    ("schema", "make", "wrong"),
    [
        (GRADESCOPE, gradebooks.gradescope, {"visibility": "shown"}),
        (GRADESCOPE, gradebooks.gradescope, {"tests": [{"score": 1, "passed": True}]}),
        (GRADESCOPE, gradebooks.gradescope, {"tests": [{"name": "no score"}]}),
        (GRADESCOPE, gradebooks.gradescope, {"points": 3}),
        (PRAIRIELEARN, gradebooks.prairielearn, {"score": 3}),
        (PRAIRIELEARN, gradebooks.prairielearn, {"score": None}),
        (PRAIRIELEARN, gradebooks.prairielearn, {"tests": [{"points": "3"}]}),
    ],
)
def test_the_schemas_reject_what_is_wrong(schema, make, wrong):
    good = make(ANN)
    jsonschema.validate(good, schema)
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({**good, **wrong}, schema)


# -- JUnit: element -> required attributes, other attributes, children -------------------------------------------------

JUNIT = {
    "testsuites": (set(), {"name", "time", "tests", "failures", "errors"}, {"testsuite"}),
    "testsuite": (
        {"name", "tests", "failures", "errors"},
        {"group", "time", "skipped", "timestamp", "hostname", "id", "package", "file", "log", "url", "version"},
        {"testsuite", "properties", "testcase", "system-out", "system-err"},
    ),
    "testcase": (
        {"name"}, {"time", "classname", "group"}, {"skipped", "errors", "failure", "system-out", "system-err"}
    ),
    **dict.fromkeys(("failure", "skipped"), (set(), {"type", "message"}, set())),
    **dict.fromkeys(("system-out", "system-err"), (set(), set(), set())),
}  # fmt: skip


def junit_problems(text):
    found = []
    for element in ET.fromstring(text).iter():
        required, optional, children = JUNIT.get(element.tag, (set(), set(), set()))
        found += [f"<{element.tag}>"] * (element.tag not in JUNIT)
        found += sorted(required - set(element.attrib)) + sorted(set(element.attrib) - required - optional)
        found += [f"{child.tag} in {element.tag}" for child in element if child.tag not in children]
    return found


def test_junit_is_as_its_schema_says_and_counts_are_right():
    text = gradebooks.junit(WHOLE)
    assert junit_problems(text) == []
    root = ET.fromstring(text)
    assert root.attrib == {"name": "Week 1", "tests": "6", "failures": "4", "errors": "0"}
    assert [suite.attrib["failures"] for suite in root] == ["1", "1", "2"]
    (failure,) = root[1].iter("failure")
    assert failure.attrib == {"type": "rejected", "message": "0 of 2 points: not right yet"}
    assert 'n = 5: <b>&"\N{REPLACEMENT CHARACTER}[31m' in failure.text
    assert len(root.findall("./testsuite/testcase/failure")) == 4


def test_a_wrong_junit_file_is_seen():
    text = gradebooks.junit(WHOLE)
    assert junit_problems(text.replace("classname=", "class=", 1)) == ["class"]
    assert junit_problems(text.replace('<testsuite name="ann"', "<testsuite", 1)) == ["name"]
    assert junit_problems(text.replace("system-err", "output")) == ["output in testsuite", "<output>"]


# -- Not graded --------------------------------------------------------------------------------------------------------

BROKEN = Result("roll", "ungraded", "the course's own solution gets 'not right yet' here: n = 5", "", ())
PARTLY, NOTHING = Graded("ann", (BROKEN, result("blend"))), Graded("bob", (BROKEN,))


def test_what_was_not_graded_has_no_points_in_any_format():
    whole = Class(SCHEME, (PARTLY,), not_graded={"roll": BROKEN.message})
    ((_, text),) = formats.as_csv(whole)
    header, row = csv.reader(io.StringIO(text, newline=""))
    cells = dict(zip(header, row, strict=True))
    assert (cells["points"], cells["maximum"], cells["roll"], cells["blend"]) == ("2", "2", "", "2")
    assert cells["roll verdict"] == "not graded"
    ((_, text),) = formats.as_json(whole)
    content = json.loads(text)
    assert content["not_graded"] == {"roll": BROKEN.message} and content["mistakes"] == []
    assert [r["points"] for r in content["submissions"][0]["results"]] == [None, 2.0]
    root = ET.fromstring(gradebooks.junit(whole))
    assert junit_problems(gradebooks.junit(whole)) == []
    assert root.attrib == {"name": "Week 1", "tests": "2", "failures": "0", "errors": "0"}
    assert root[0].attrib["skipped"] == "1"
    assert "not graded: the course's own" in root.find("./testsuite/testcase/skipped").text
    pages = dict(formats.as_html(whole))
    assert "<h2>Not graded</h2><ul><li>roll: the course" in pages["html/index.html"]
    assert "<b>not graded</b></td>" in pages["html/index.html"] and "0 <b>" not in pages["html/index.html"]
    assert formats.table(whole).splitlines()[0].split() == ["ann", "2", "of", "2", "1", "of", "1", "accepted"]
    assert formats.table(whole).endswith(f"\nnot graded:\n  roll: {BROKEN.message}")
    assert formats.table(Class(SCHEME, (PARTLY,), single=True)).startswith("roll: not graded: the course's own")


def test_a_platform_gets_no_score_for_what_was_not_graded():
    partly = gradebooks.gradescope(PARTLY)
    jsonschema.validate(partly, GRADESCOPE)
    assert partly["score"] == 2 and ["score" in test for test in partly["tests"]] == [True, False]
    with pytest.raises(jsonschema.ValidationError):  # Gradescope then says that the autograder failed
        jsonschema.validate(gradebooks.gradescope(NOTHING), GRADESCOPE)
    for one in (PARTLY, NOTHING):
        content = gradebooks.prairielearn(one)
        jsonschema.validate(content, PRAIRIELEARN)
        assert content == {"gradable": False, "format_errors": [f"roll: not graded: {BROKEN.message}"]}


# -- Our own -----------------------------------------------------------------------------------------------------------


def rfc_4180_problems(text):
    """What is not as in sections 2.1 to 2.7 of RFC 4180 (https://www.rfc-editor.org/rfc/rfc4180, read 2026-11-22)."""
    field = r'(?:"(?:[^"]|"")*"|[^",\r\n]*)'
    lines, rest = [], text
    while match := re.match(rf"({field}(?:,{field})*)\r\n", rest):
        lines.append(re.findall(rf"(?:^|,)({field})", match[1]))
        rest = rest[match.end() :]
    widths = {len(line) for line in lines}
    return [*([f"cannot be read from {rest[:20]!r}"] if rest else []), *(["unequal lines"] if len(widths) > 1 else [])]


FORMULAS = ("=cmd()", "+1+1", "-2+3", "@SUM(A1)", "\t=1", " =1", "\r=1", "\n=1", "\uff1d1", "=1\0")


def test_csv_is_as_its_standard_says_and_a_spreadsheet_runs_none_of_it():
    names = [*FORMULAS, 'a "quoted", name', "two\nlines", "ann"]
    whole = Class(Scheme("", {"roll": Worth(2.0)}), tuple(Graded(n, (result(points=0.5),), (n,)) for n in names))
    ((_, text),) = formats.as_csv(whole)
    assert rfc_4180_problems(text) == []
    header, *rows = csv.reader(io.StringIO(text, newline=""))
    assert [len(row) for row in rows] == [len(header)] * len(names)
    for row in rows:
        assert not any(re.match(r"\s*[=+\-@\uff1d]|[\t\r\n]", cell) for cell in row), row
    assert [row[0] for row in rows][-3:] == names[-3:]
    assert rows[0][:3] == ["'=cmd()", "0.5", "2"]


@pytest.mark.parametrize("wrong", ["a,b\nc,d\n", "a,b\r\nc\r\n", 'a,"b\r\n', 'a,b"c\r\n', "a,b"])
def test_a_wrong_csv_file_is_seen(wrong):
    assert rfc_4180_problems('a,"b ""x"", \r\n"\r\nc,d\r\n') == []
    assert rfc_4180_problems(wrong)


def test_the_csv_file_keeps_its_line_ends(tmp_path):
    (path,) = formats.write("csv", WHOLE, tmp_path)
    assert rfc_4180_problems(path.read_bytes().decode()) == []
    assert path.read_bytes().count(b"\r\n") == 1 + len(WHOLE.submissions)


def test_csv_has_a_row_for_each_submission_and_no_formula():
    evil = Graded("=cmd|' /C calc'!A0", (result(),), ("+1", NASTY))
    ((name, text),) = formats.as_csv(Class(Scheme("", {"roll": Worth(2.0)}), (ANN, evil)))
    rows = list(csv.reader(io.StringIO(text, newline="")))
    assert name == "grades.csv"
    assert rows[0] == ["submission", "points", "maximum", "roll", "roll verdict", "problems"]
    assert rows[1][:3] == ["ann", "4", "5"]
    shown = f"'+1; {NASTY}".replace("\0", "\N{REPLACEMENT CHARACTER}")
    assert rows[2] == ["'=cmd|' /C calc'!A0", "2", "2", "2", "accepted", shown]


def test_json_says_everything():
    ((_, text),) = formats.as_json(WHOLE)
    given = json.loads(text)
    worth = {"roll": {"correctness": 2, "efficiency": 0}, "blend": {"correctness": 2, "efficiency": 1}}
    assert given["exercises"] == worth
    parts = {"correctness": {"points": 2, "maximum": 2}, "efficiency": {"points": 0, "maximum": 1}}
    blend = {"exercise": "blend", "verdict": "accepted", "message": "7 cases\nIt is right, but wasteful: x"}
    blend |= {"printed": "", "where": "blend.cu", "points": 2, "maximum": 3, "parts": parts}
    assert given["submissions"][0]["results"][1] == blend
    assert given["submissions"][1]["results"][0]["message"] == NASTY


def test_common_mistakes_are_counted_without_their_numbers():
    def wrong(name, n):
        message = f"n = {n}: {n} of {n} elements are wrong\n[{n}]"
        return Graded(name, (result(kind="rejected", message=message, points=0),))

    whole = Class(SCHEME, (wrong("ann", "1,000"), EVE, wrong("bob", "5"), wrong("zoe", "1e-3")))
    first, *others = [(m.exercise, m.gist, m.names) for m in whole.mistakes() if m.exercise == "roll"]
    assert first == ("roll", "not right yet: n = N: N of N elements are wrong", ("ann", "bob", "zoe"))
    assert others == [("roll", "not handed in", ("eve",))]
    eves = [Graded(f"eve {n}", EVE.results) for n in range(9)]
    assert Class(SCHEME, (wrong("ann", "5"), *eves)).mistakes()[0].names == ("ann",)  # theirs is not a mistake


def test_pages_escape_what_comes_from_submissions_and_link_to_each_other():
    rejected = result(kind="rejected", message="<script>alert(1)</script>", points=0.0)
    evil = Graded("<script>", (rejected,), ("<script>",))
    other = Graded("Index", (result(table="<table>waste</table>"),))
    whole = Class(Scheme("<script>", {"roll": Worth(2.0)}), (evil, other, Graded("ann b", (result(),))))
    pages = dict(formats.as_html(whole))
    assert sorted(pages) == ["html/ann b.html", "html/index.html", "html/submission 1.html", "html/submission 2.html"]
    for page in pages.values():
        assert "<script" not in page
    assert 'href="ann%20b.html"' in pages["html/index.html"]
    assert "&lt;script&gt;alert(1)" in pages["html/submission 1.html"]
    assert "<details><summary>The X-ray of this call</summary><table>waste</table>" in pages["html/submission 2.html"]
    assert "not right yet: &lt;script&gt;alert(N)" in pages["html/index.html"]


def test_a_page_shows_the_wrong_elements_and_leads_to_the_film_of_the_warp():
    film = "<details><summary>The film</summary><iframe srcdoc='&lt;script&gt;'></iframe></details>"
    wrong = result(kind="rejected", points=0.0, film=film, picture="<figure><svg></svg></figure>")
    pages = dict(formats.as_html(Class(SCHEME, (Graded("ann b", (wrong, result("blend"))), BOB))))
    assert sorted(pages) == ["html/ann b.html", "html/bob.html", "html/films/ann b roll.html", "html/index.html"]
    page, shown = pages["html/ann b.html"], pages["html/films/ann b roll.html"]
    assert "<figure><svg></svg></figure>" in page and 'href="films/ann%20b%20roll.html"' in page
    assert "iframe" not in page and "script-src" not in page
    assert "<details open>" in shown and "iframe" in shown and 'href="../ann%20b.html"' in shown
    assert "default-src 'none'; style-src 'unsafe-inline'; img-src data:; script-src 'unsafe-inline'" in shown
    assert "film" not in pages["html/bob.html"] and "<figure>" not in pages["html/bob.html"]


def test_the_anonymous_export_counts_and_names_nobody():
    alike = [
        Graded(f"name{i}", (result(kind="rejected", message="n = 3", points=0.0), BOB.results[1])) for i in range(3)
    ]
    whole = Class(SCHEME, (BOB, *alike, ANN))
    ((file, text),) = formats.FORMATS["anonymous"](whole)
    given = json.loads(text)
    assert file == "anonymous.json"
    assert given["exercises"]["roll"] == {
        "verdicts": {"accepted": 1, "rejected": 4},
        "points": [0, 0, 0, 0, 2],
        "mistakes": [{"mistake": "not right yet: n = N", "submissions": 3}],  # bob's was made once
    }
    assert given["verdicts"] == [["accepted", "accepted"], *[["rejected", "accepted"]] * 4]
    assert not any(secret in text for secret in ("ann", "bob", "name", ".cu", "ALPHA", NASTY[:8]))
    assert list(formats.FORMATS["anonymous"](Class(SCHEME, (ANN, *reversed(alike), BOB)))) == [(file, text)]


VOID = {"meta", "br", "hr", "img", "input", "link"}  # elements without an end, of those that a page may hold
LOADS = {"src", "srcset", "data", "poster", "action", "background"}  # attributes that name another file


class Page(HTMLParser):
    """Collects what is wrong with a page: elements that are not closed in order, scripts, other files."""

    def __init__(self, text):
        super().__init__()
        self.open, self.problems = [], []
        self.feed(text)
        self.close()
        self.problems += [f"<{tag}> is not closed" for tag in self.open]

    def handle_starttag(self, tag, attributes):
        self.problems += ["a script"] * (tag in ("script", "iframe", "object", "embed", "link"))
        for name, value in attributes:
            self.problems += [f"a handler {name}"] * name.startswith("on") + [f"loads {value}"] * (name in LOADS)
            outside = name == "href" and (":" in value or value.startswith("//"))
            self.problems += [f"a link to {value}"] * outside
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        if not self.open or self.open.pop() != tag:
            self.problems.append(f"</{tag}> closes another element")


def test_pages_are_well_formed_work_offline_and_run_nothing():
    hostile = "</pre></section><script>alert(1)</script><img src=x onerror=alert(1)>\"'"
    nasty = Graded(hostile, (result(kind="rejected", message=hostile, points=0.0, printed=NASTY),), (hostile, NASTY))
    others = [Graded(name, (result(),)) for name in ("ann", "javascript:alert(1)", "//x")]
    whole = Class(Scheme(hostile, {"roll": Worth(2.0)}), (nasty, *others))
    for name, page in formats.as_html(whole):
        assert Page(page).problems == [], name
        assert "default-src 'none'; style-src 'unsafe-inline'" in page
        assert page.startswith('<!doctype html>\n<html lang="en">')


@pytest.mark.parametrize(
    "wrong",
    ["<p><b></p></b>", "<p>", "<script>x</script>", "<img src=x>", "<a onclick=x></a>", '<a href="https://x">x</a>'],
)
def test_a_wrong_page_is_seen(wrong):
    assert Page("<p><b>x</b><br></p>").problems == []
    assert Page(wrong).problems


def test_the_class_page_has_means_marks_and_links():
    index = dict(formats.as_html(WHOLE))["html/index.html"]
    assert '<td>mean</td><td class="number">2.0</td>' in index
    assert '<td class="number">1 of 3</td>' in index
    assert index.count("<b>&#10003;</b>") == 3 and index.count("<b>&#10007;</b>") == 1
    assert index.count("<b>&#8211;</b>") == 2
    assert '<a href="eve.html">eve</a></td></tr>' in index
    many = Class(SCHEME, tuple(Graded(f"s{n}", BOB.results) for n in range(25)))
    (who,) = re.findall(r"<td>roll</td>.*?</tr>", dict(formats.as_html(many))["html/index.html"])
    assert who.count("<a ") == 20 and who.endswith("</a> and 5 more</td></tr>")
