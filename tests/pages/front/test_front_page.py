"""README.md: its generated parts are those that the measurements and runs give, and its commands run."""

import re
import sys
import xml.etree.ElementTree as ElementTree

import pytest
from running import OURS, run, without

from helpers.__main__ import COMMANDS
from helpers.pages.front import drawings, front_page
from helpers.paths import DOCS, ROOT

PAGES = (front_page.README, DOCS / "commands.md", DOCS / "cloud.md")
TEXT = front_page.README.read_text(encoding="utf-8")


def test_the_numbers_are_those_of_results():
    assert front_page.filled(TEXT, front_page.READ) == TEXT, "run: python -m helpers readme --no-runs"


@pytest.mark.parametrize("name", front_page.READ)
def test_another_number_is_seen(name):
    """Two-sided: each part has a number, and a changed one is written anew."""
    (part,) = (m for m in front_page.PART.finditer(TEXT) if m[2] == name)
    changed = TEXT[: part.start(3)] + re.sub(r"\d", "9", part[3]) + TEXT[part.end(3) :]
    assert changed != TEXT
    assert front_page.filled(changed, front_page.READ) == TEXT


def test_a_part_that_the_page_lacks_is_an_error():
    with pytest.raises(KeyError, match="has no part for speed"):
        front_page.filled(TEXT, {"speed": lambda: "fast"})


def test_every_part_is_generated():
    assert {name for _, name, _, _ in front_page.PART.findall(TEXT)} == {*front_page.READ, *front_page.RUN}
    assert TEXT.count("<!-- end -->") == TEXT.count("<!-- measured: ")


@pytest.mark.slow
def test_the_verdict_and_the_pictures_can_be_made_again(capsys):
    assert front_page.main(["--check"]) == 0, capsys.readouterr().out


def test_an_outdated_page_is_reported(tmp_path, monkeypatch, capsys):
    page = tmp_path / "README.md"
    page.write_text(TEXT.replace("TFLOP/s", "GFLOP/s"), encoding="utf-8")
    monkeypatch.setattr(front_page, "README", page)
    monkeypatch.setattr(front_page, "ROOT", tmp_path)
    assert front_page.main(["--check", "--no-runs"]) == 1
    assert "README.md is outdated" in capsys.readouterr().out
    assert front_page.main(["--no-runs"]) == 0
    assert page.read_text(encoding="utf-8") == TEXT


def test_the_page_is_short():
    """A reader decides in five minutes: 1,000 words at 200 a minute. Tables are looked at, not read."""
    prose = [line for line in TEXT.splitlines() if not line.startswith(("|", "!", "[!", "<!--"))]
    assert len(" ".join(prose).split()) < 1000


@pytest.mark.parametrize("name", ["xray.svg", "film.svg"])
def test_the_pictures_are_small_and_say_what_they_show(name):
    path = front_page.PICTURES / name
    assert path.stat().st_size < 100_000
    picture = ElementTree.parse(path).getroot()
    title = picture.find("{http://www.w3.org/2000/svg}title")
    assert "sectors" in title.text
    assert not [e for e in picture.iter() if e.tag.endswith(("script", "image"))]  # GitHub would strip or block them
    assert re.search(rf"!\[[^\]]{{60,}}\]\(docs/pictures/{re.escape(name)}\)", TEXT), "an alternative text in words"


def test_the_film_s_counts_are_those_of_the_x_ray():
    """By the pictures as they are: the film's requests cost what the X-ray's line says."""
    film, xray = ((front_page.PICTURES / name).read_text(encoding="utf-8") for name in ("film.svg", "xray.svg"))
    assert ">32 sectors a request, at best 4<" in xray
    assert ">load: 32 sectors, at best 4<" in film
    assert ">load: 4 sectors<" in film


def test_films_of_different_lengths_are_refused():
    class Short:
        requests = ()

    class Long:
        requests = (1,)

    with pytest.raises(ValueError, match="as many each"):
        drawings.film_picture([Short(), Long()])


# -- Commands ----------------------------------------------------------------------------------------------------------


def unknown_commands(text: str) -> list[str]:
    """Targets of make and sub-commands of `python -m helpers` that a page names and that do not exist."""
    found = re.findall(r"`([^`\n]+)`|^```sh\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    code = " ".join(inline or block for inline, block in found)
    targets = re.findall(r"^([a-z-]+):[^#\n]*##", (ROOT / "Makefile").read_text(), re.MULTILINE)
    made = [f"make {name}" for name in re.findall(r"\bmake ([a-z][a-z-]*)", code) if name not in targets]
    return made + [name for name in re.findall(r"-m helpers ([a-z][a-z-]*)", code) if name not in COMMANDS]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_command_exists(page):
    text = page.read_text(encoding="utf-8")
    assert "make lab" in text
    assert unknown_commands(text) == []


def test_an_unknown_command_is_seen():
    assert unknown_commands("`make lunch`, `python -m helpers tidy x`") == ["make lunch", "tidy"]


@pytest.mark.slow
@pytest.mark.timeout(1800)  # it builds the simulator anew, for another folder
def test_the_first_commands_run(tmp_path):
    """From git clone to JupyterLab, which only says its version; in this environment, so that nothing is downloaded."""
    (block,) = re.findall(r"^```sh\n(.*?)^```", TEXT, re.MULTILINE | re.DOTALL)
    assert "git clone ADDRESS" in block
    given = without("MAKE", "MFLAGS") | {"VENV": "none", "PYTHON": sys.executable, "LAB_ARGS": "--version"}
    command = ("bash", "-e", "-c", block.replace("ADDRESS", ROOT.as_uri()))
    done = run(*command, cwd=tmp_path, env=given | {"PATH": OURS["PATH"]}, timeout=1700)
    assert "The course can run here." in done.stdout
    assert re.search(r"^4\.\d+", done.stdout, re.MULTILINE)
