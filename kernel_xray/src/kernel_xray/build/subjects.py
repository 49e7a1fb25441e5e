"""What an X-ray from the command line is of: an extension, whose function a call names, or a program with a main()."""

import re
import shlex
from dataclasses import dataclass, field
from pathlib import Path

from kernel_xray.build import arguments, sources
from kernel_xray.build.arguments import CallError, SubjectError
from kernel_xray.build.programs import program
from kernel_xray.build.project import Flags
from kernel_xray.machine.paths import also_include, of_torch
from kernel_xray.report.facts import SECONDS
from kernel_xray.report.report import Report
from kernel_xray.translate.includes import closure
from kernel_xray.translate.lexer import LexError, tokenize

LIMITS = ("seed", "max_blocks", "budget", "seconds")  # of a Subject, as `xray` and `program` take them


@dataclass(frozen=True)
class Subject:
    """The sources to X-ray, and how they are called."""

    files: list[str]
    call: str | None = None  # an expression, of an extension
    setup: str | None = None  # statements before it, or the path of a .py file
    arguments: str | None = None  # of a program, as a shell would split them
    flags: Flags = field(default_factory=Flags)
    seed: int = 0
    max_blocks: int = 64
    budget: int | None = None  # steps of a block
    seconds: float = SECONDS  # of tracing
    timeout: float | None = None  # seconds, of a program
    film: bool = False  # whether the report has a film; not of a program
    blocks: int | None = None  # the only ones of a launch that run; not of a program
    gpu: str | None = None  # whose number of SMs the device has; not of a program


def examine(subject: Subject) -> tuple[Report, str]:
    """X-rays the subject; returns the report, and what is to be said of how a program ended (empty: by exit status 0).

    Raises SubjectError or CallError for arguments that do not fit, and what `load` and `program` raise.
    """
    paths = [arguments.source_path(file, "FILE") for file in subject.files]
    texts = closure(paths, also_include([Path(folder).resolve() for folder in subject.flags.include]))
    python = "PyInit_" not in "".join(texts.values()) and bool(sources.defined_names(texts, "PYBIND11_MODULE"))
    library = any(sources.defined_names(texts, macro) for macro in ("TORCH_LIBRARY", "TORCH_LIBRARY_FRAGMENT"))
    mains = [path for path in paths if defines_main(texts[path])]
    names = ", ".join(path.name for path in paths)
    if library or python:
        if subject.call is None:
            raise SubjectError(f"{names} is an extension; say what to run: --call 'ops.NAME(torch.randn(1000))'")
        if subject.arguments is not None:
            raise SubjectError(f"--args is for programs, and {names} is an extension; put the values into --call")
        return _of_extension(subject, paths, is_python_module=not library), ""
    if not mains:
        raise SubjectError(
            f"{names} has neither operators (PYBIND11_MODULE, TORCH_LIBRARY) nor a main(): "
            "give all sources of the extension, with the one that registers its functions"
        )
    if subject.call is not None or subject.setup is not None:
        raise SubjectError(
            f"{mains[0].name} has a main() and no operators, so it runs as a program: "
            "leave out --call and --setup; --args gives it arguments"
        )
    if subject.film:
        raise SubjectError(f"{mains[0].name} runs as a program, and --film is for extensions; leave it out")
    if subject.blocks is not None:
        raise SubjectError(f"{mains[0].name} runs as a program, and --blocks is for extensions; give --max-blocks")
    return _of_program(subject, mains[0], [path for path in paths if path != mains[0]])


def defines_main(text: str) -> bool:
    """Whether the text, without its comments, has a function main."""
    try:
        code = [token for token in tokenize(text) if not token.blank and not token.directive]
    except LexError:
        return False
    following = zip(code, code[1:], code[2:], strict=False)
    return any(a.kind == "name" and (b.text, c.text) == ("main", "(") and a.text != "return" for a, b, c in following)


def _of_extension(subject: Subject, paths: list[Path], is_python_module: bool) -> Report:
    if of_torch() is None:
        raise SubjectError(f"{paths[0].name} is an extension, and PyTorch is not installed: pip install torch")
    import torch

    from kernel_xray.build.expressions import failure, prepare
    from kernel_xray.build.loader import load
    from kernel_xray.report.run import xray

    name = "ops_" + re.sub(r"\W+", "_", paths[0].stem)
    ops = load(
        name,
        paths,
        extra_cflags=subject.flags.cflags,
        extra_cuda_cflags=subject.flags.cuda_cflags,
        extra_include_paths=subject.flags.include,
        is_python_module=is_python_module,
        traced=True,
    )
    torch.manual_seed(subject.seed)
    limits = {name: getattr(subject, name) for name in LIMITS}
    call = prepare(subject.call or "", subject.setup, ops)
    try:
        report = xray(call, film=subject.film, blocks=subject.blocks, gpu=subject.gpu, **limits)
    except Exception as error:
        raise failure(error, subject.call or "") from None
    if not report.launches and not report.faults:
        raise CallError(f"--call launched no kernel, so there is nothing to report: {subject.call}")
    return report


def _of_program(subject: Subject, main: Path, others: list[Path]) -> tuple[Report, str]:
    ended = program(
        main,
        *shlex.split(subject.arguments or ""),
        traced=True,
        sources=others,
        include_paths=subject.flags.include,
        cflags=subject.flags.cflags,
        cuda_cflags=subject.flags.cuda_cflags,
        **{name: getattr(subject, name) for name in LIMITS},
        timeout=subject.timeout,
    )
    assert ended.report is not None  # it was traced
    if ended.status == 0:
        if not ended.report.launches:
            raise SubjectError(f"{main.name} launched no kernel, so there is nothing to report")
        return ended.report, ""
    output = (ended.stdout + ended.stderr).rstrip()
    return ended.report, "\n".join(part for part in (output, str(ended)) if part)
