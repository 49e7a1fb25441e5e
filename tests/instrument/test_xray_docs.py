"""docs/xray_your_own.md keeps its promise: its commands run on its listings. So does the action that it describes."""

import json
import re
import shutil
import textwrap

import pytest
import yaml
from running import python, run

from helpers.paths import DOCS, ROOT
from kernel_xray.build import trace_command

STRIDED = ROOT / "kernel_xray" / "tests" / "build" / "strided.cu"
TEXT = (DOCS / "xray_your_own.md").read_text(encoding="utf-8")
ACTION = ROOT / ".github" / "actions" / "xray" / "action.yml"
EXAMPLE = DOCS / "xray_workflow.yml"


def listings(language):
    blocks = re.findall(rf"^( *)```{language}\n(.*?)^\1```$", TEXT, re.MULTILINE | re.DOTALL)
    return [textwrap.dedent(block) for _, block in blocks]


@pytest.mark.slow
def test_every_command_runs_and_prints_what_the_page_says(tmp_path):
    for listing in listings("cpp"):
        (tmp_path / re.match(r"// (\S+)\n", listing)[1]).write_text(listing)
    (budget,) = listings("yaml")
    (tmp_path / "listed.yml").write_text(budget)
    commands = [line for block in listings("sh") for line in block.splitlines()]
    commands = [command for command in commands if "measure-gpu" not in command]  # which needs a GPU
    assert len(commands) == 6
    commands.insert(3, commands[2].replace("budget.yml", "listed.yml"))
    output = ""
    for command in commands:
        output += run("bash", "-c", command, cwd=tmp_path).stdout
    (message,) = listings("text")
    assert message in output
    assert (tmp_path / "xray.html").is_file()
    assert (tmp_path / "film.html").is_file()
    assert json.loads((tmp_path / "xray.sarif").read_text())["runs"][0]["results"]


def test_every_option_is_on_the_page():
    options = {name for action in trace_command._parser("xray")._actions for name in action.option_strings}
    shown = set(re.findall(r"`(--?[A-Za-z][\w-]*)", TEXT))
    assert options - shown <= {"-h", "--help", "--steps", "--timeout"}
    assert shown <= options
    assert "--no-such-option" not in options


# -- The action --------------------------------------------------------------------------------------------------------


def faults_of(steps):
    """What is wrong with steps: actions that no commit pins, and inputs that a shell would read as code."""
    used = [step["uses"] for step in steps if "uses" in step]
    found = [action for action in used if not re.search(r"@([0-9a-f]{40}|COMMIT)$", action)]
    return found + [step["run"] for step in steps if "${{" in step.get("run", "")]


def test_actions_are_pinned_and_inputs_are_no_code():
    action = yaml.safe_load(ACTION.read_text())
    workflow = yaml.safe_load(EXAMPLE.read_text())
    assert faults_of(action["runs"]["steps"]) == []
    assert faults_of(workflow["jobs"]["xray"]["steps"]) == []
    assert faults_of([{"uses": "actions/checkout@v4"}, {"run": "echo ${{ inputs.call }}"}]) == [
        "actions/checkout@v4",
        "echo ${{ inputs.call }}",
    ]


def test_every_input_is_used_and_the_example_gives_only_those():
    action = yaml.safe_load(ACTION.read_text())
    assert action["runs"]["using"] == "composite"
    assert all(step.get("shell") == "bash" for step in action["runs"]["steps"] if "run" in step)
    used = set(re.findall(r"\$\{\{ inputs\.([\w-]+) \}\}", ACTION.read_text()))
    assert used == set(action["inputs"])
    for entry in action["inputs"].values():
        assert entry["description"]
        assert ("default" in entry) != entry.get("required", False)
    ours = [step for step in yaml.safe_load(EXAMPLE.read_text())["jobs"]["xray"]["steps"] if "xray@" in step["uses"]]
    assert len(ours) == 1
    assert set(ours[0]["with"]) <= set(action["inputs"])


@pytest.mark.slow  # the action runs the command, whose exit statuses test_xray_command.py tests
@pytest.mark.skipif(not shutil.which("kernel-xray"), reason="pip install ./kernel_xray makes the command")
@pytest.mark.parametrize(("stride", "status"), [("1", 0), ("32", 1)])
def test_the_actions_script_fails_as_the_budget_does(tmp_path, stride, status):
    step = yaml.safe_load(ACTION.read_text())["runs"]["steps"][-1]
    (tmp_path / "budget.yml").write_text("kernels: {scale_kernel: {sectors_ratio: 1}}")
    for name in ("helpers", "kernel_xray"):  # of the other repository
        (tmp_path / name).mkdir()
    given = dict.fromkeys(step["env"], "") | {
        "SOURCES": f"\n{STRIDED}\n",
        "CALL": f"ops.scale(x, 2.0, {stride})",
        "SETUP": "x = torch.randn(1024); quoted = '$(false) \"'",
        "BUDGET": "budget.yml",
        "SARIF": "x.sarif",
        "HTML": "x.html",
    }
    runner = {"RUNNER_TEMP": str(tmp_path), "GITHUB_STEP_SUMMARY": str(tmp_path / "summary.md")}
    bash = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]]
    done = run(*bash, cwd=tmp_path, status=status, **given, **runner)
    assert "scale_kernel<<<4, 256>>>" in done.stdout
    assert ("OVER BUDGET" in (tmp_path / "summary.md").read_text()) == bool(status)
    assert bool(json.loads((tmp_path / "x.sarif").read_text())["runs"][0]["results"]) == bool(status)
    assert (tmp_path / "x.html").is_file()


@pytest.mark.slow  # the instrument's test_installed.py runs the command with less
def test_the_command_needs_only_what_the_action_installs(tmp_path):
    def named(project, field):
        (listed,) = re.findall(
            rf"^{field} = \[(.*?)\](?: +#.*)?$", (ROOT / project).read_text(), re.MULTILINE | re.DOTALL
        )
        return {re.match(r"[\w-]+", text)[0] for text in re.findall(r'"(.+?)"', listed)}

    extras = re.search(r"/kernel_xray\[([\w,]+)\]", ACTION.read_text())[1].split(",")
    installed = set().union(*(named("kernel_xray/pyproject.toml", extra) for extra in extras))
    missing = named("kernel_xray/pyproject.toml", "dev") | named("pyproject.toml", "dependencies")
    names = {"scikit-learn": "sklearn", "ipykernel": "IPython"}
    missing = sorted(names.get(name, name) for name in missing - installed - {"kernel-xray"})
    assert "numpy" in missing
    script = (
        f"import sys; sys.modules.update(dict.fromkeys({['helpers', *missing]}))\n"
        "from kernel_xray.__main__ import main\nsys.exit(main(sys.argv[1:]))"
    )
    arguments = ["trace", str(STRIDED), "--call", "ops.scale(torch.zeros(64), 2.0, 1)", "-o", "x.html"]
    python("-c", script, *arguments, cwd=tmp_path)
