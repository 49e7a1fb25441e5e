"""JupyterLab as a learner uses it: lessons run to the end, an exercise failed, hinted and solved."""

import itertools
import re
from urllib.parse import urlsplit

import nbformat
import pytest

from helpers.paths import NOTEBOOKS
from helpers.practice.assistance import solution_source

playwright = pytest.importorskip("playwright.sync_api", reason="needs Playwright, of the extra [browser]")
expect = playwright.expect

pytestmark = pytest.mark.timeout(1200)  # the first test also starts JupyterLab, for which a busy machine takes minutes
LESSONS = ("00_start_here", "01_vector_add", "03_fused_muladd", "06_bias_gelu_float4", "08_matmul")
START, RUN = 60_000, 400_000  # milliseconds to open a lesson, and to run it; the first one also builds the simulator
SETTLED = 600  # milliseconds without a new cell, after which all cells are drawn
PICTURE = {"width": 1280, "height": 1800}
RUNNING, RAN = re.compile(r"\[[ *]\]:"), re.compile(r"\[\d+\]:")  # beside a cell


class Notebook:
    """A lesson, open in a page."""

    def __init__(self, page, file):
        self.page, self.panel, self.file = page, page.locator(".jp-NotebookPanel:visible"), file
        idle = self.panel.locator('.jp-Notebook-ExecutionIndicator[data-status="idle"]')
        expect(idle).to_have_count(1, timeout=START)
        expect(self.panel.locator(".jp-CodeCell").nth(5)).to_be_attached(timeout=START)

    def menu(self, name, entry):
        self.page.locator(".lm-MenuBar-item", has_text=re.compile(f"^{name}$")).click()
        self.page.locator(".lm-Menu-itemLabel", has_text=re.compile(f"^{entry}$")).click()

    def run_all(self):
        """Runs all cells; returns the notebook as JupyterLab then saves it."""
        self.menu("Edit", "Clear Outputs of All Cells")
        self.menu("Run", "Run All Cells")
        expect(self.panel.locator(".jp-CodeCell .jp-InputPrompt", has_text=RUNNING)).to_have_count(0, timeout=RUN)
        self.page.keyboard.press("ControlOrMeta+s")
        expect(self.page.locator(".lm-TabBar-tab.jp-mod-current.jp-mod-dirty")).to_have_count(0, timeout=START)
        return nbformat.read(self.file, as_version=4)

    def run(self, text, new=""):
        """Runs the first code cell that has `text`, edited to `new` if that is given; returns its output."""
        cell = self.panel.locator(".jp-CodeCell", has_text=text).first
        cell.scroll_into_view_if_needed()
        prompt, content = cell.locator(".jp-InputPrompt"), cell.locator(".cm-content")
        before = prompt.inner_text()
        content.click()
        if new:
            self.page.keyboard.press("ControlOrMeta+a")
            self.page.keyboard.insert_text(new)
        self.page.keyboard.press("ControlOrMeta+Enter")
        expect(prompt).not_to_have_text(before)
        expect(prompt).to_have_text(RAN, timeout=RUN)
        output = cell.locator(".jp-OutputArea")
        output.scroll_into_view_if_needed()
        return output

    def keep_pictures(self, shot, name):
        """Keeps pictures of the whole lesson, from its top, one for each window; returns cells that scroll sideways."""
        sideways = set()
        self.page.set_viewport_size(PICTURE)
        window = self.panel.locator(".jp-WindowedPanel-outer")
        tops = []
        for number in itertools.count():
            window.evaluate("(it, number) => it.scrollTo(0, number * it.clientHeight)", number)
            self.settle(window)
            tops.append(window.evaluate("it => it.scrollTop"))
            if tops[-1:] == tops[-2:-1]:
                break
            sideways |= self.sideways()
            shot(self.page, f"{name}_{number + 1:02}")
        return sideways

    def sideways(self):
        """The texts of the cells in the window that do not fit its width."""
        wide = "all => all.filter(it => it.scrollWidth > it.clientWidth + 1).map(it => it.innerText)"
        return set(self.panel.locator(".jp-CodeCell .cm-scroller").evaluate_all(wide))

    def settle(self, window):
        """Waits for cells that JupyterLab draws only now that they have come near the window."""
        heights = [0]
        while heights[-1:] != heights[-2:-1]:
            self.page.wait_for_timeout(SETTLED)
            heights.append(window.evaluate("it => it.scrollHeight"))


@pytest.fixture
def opened(lab, course, shown):
    """Opens a lesson from the folder of the one that JupyterLab opens by itself."""

    def open_lesson(name, **how):
        address = re.sub(r"\w+\.ipynb", f"{name}.ipynb", lab)
        file = course / urlsplit(address).path.partition("/tree/")[2]
        return Notebook(shown(f"{address}&reset", **how), file)

    return open_lesson


@pytest.mark.parametrize("name", LESSONS)
def test_a_lesson_runs_to_its_end(opened, shot, name):
    lesson = opened(name)
    shot(lesson.page, f"lab_{name}_opened")
    cells = [cell for cell in lesson.run_all().cells if cell.cell_type == "code"]
    assert lesson.keep_pictures(shot, f"lab_{name}_light") == set()
    assert opened(name, theme="dark").keep_pictures(shot, f"lab_{name}_dark") == set()
    outputs = [output for cell in cells for output in cell.outputs]
    assert [output for output in outputs if output.output_type == "error"] == []
    assert [output.text for output in outputs if output.get("name") == "stderr"] == []  # JupyterLab shows it on red
    committed = nbformat.read(NOTEBOOKS / f"{name}.ipynb", as_version=4).cells
    shown = [cell.id for cell in committed if cell.cell_type == "code" and cell.outputs]
    assert [cell.source for cell in cells if cell.id in shown and not cell.outputs] == []
    verdicts = [str(cell.outputs) for cell in cells if cell.source.startswith("%%exercise")]
    assert verdicts and all("not solved yet" in verdict for verdict in verdicts)


def test_a_lesson_is_coloured_and_described_and_its_lines_break_between_words(opened):
    """By the course's extension, before any cell has run."""
    lesson = opened("01_vector_add", width=1300, height=1600)
    exercise = lesson.panel.locator(".jp-CodeCell", has_text="%%exercise saxpy").first
    exercise.scroll_into_view_if_needed()
    comment = exercise.locator(".cm-line span", has_text=re.compile("^// x, y, out")).first
    expect(comment).to_have_css("font-style", "italic", timeout=START)
    described = lesson.panel.locator(".jp-OutputArea img").evaluate_all("all => all.map(it => it.alt)")
    assert len(described) > 3 and all(described) and described[0].startswith("thread_map")
    texts = lesson.panel.locator(".jp-OutputArea .jp-RenderedText pre")
    styles = "all => all.map(it => getComputedStyle(it)).map(style => `${style.wordBreak} ${style.overflowX}`)"
    assert set(texts.evaluate_all(styles)) == {"normal auto"}
    expect(lesson.panel.locator(".ladder-source .kt").first).to_have_css("color", "rgb(17, 99, 41)")
    expect(lesson.page.locator(".jp-toast-message, .Toastify__toast")).to_have_count(0)


def test_a_planted_cell_that_scrolls_sideways_is_found(opened):
    lesson = opened("00_start_here")
    assert lesson.sideways() == set()
    lesson.run("import helpers", f"import helpers  # {'-' * 120}")
    assert [text.split()[0] for text in lesson.sideways()] == ["import"]


def test_an_exercise_is_failed_hinted_and_solved(opened, shot):
    """Through the page alone: the cell is edited and run, and its output read."""
    lesson, name = opened("01_vector_add"), "vector_scale"
    cell, right = f"%%exercise {name}", solution_source(name).text
    wrong = right.replace("if (i < n) ", "")
    assert wrong != right
    lesson.run("import helpers")

    failed = lesson.run(cell, f"{cell}\n{wrong}")
    expect(failed).to_contain_text(f"{name}: not right yet")
    expect(failed).to_contain_text("out-of-bounds")
    expect(failed).not_to_contain_text("printed:")  # by the kernel, which prints nothing; not by the check
    shot(lesson.page, "lab_exercise_failed")
    failed.locator("summary", has_text="The film of this warp").click()
    film = failed.frame_locator("iframe")
    expect(film.locator("#clock")).to_have_text(re.compile(r"step \d+ of \d+"))
    expect(film.locator(".said")).to_contain_text("out-of-bounds")
    film.locator("#clock").scroll_into_view_if_needed()
    shot(lesson.page, "lab_exercise_film")
    hint = failed.locator("details", has_text="Hint 1 of 3")
    hint.locator("summary").click()
    expect(hint).to_contain_text("blockDim.x")
    assert hint.evaluate("it => it.open")
    shot(lesson.page, "lab_exercise_hinted")

    solved = lesson.run(cell, f"{cell}\n{right}")
    expect(solved).to_contain_text(f"{name}: accepted")
    expect(solved).not_to_contain_text("printed:")
    expect(solved.locator("summary", has_text="Hint")).to_have_count(0)
    shot(lesson.page, "lab_exercise_solved")
