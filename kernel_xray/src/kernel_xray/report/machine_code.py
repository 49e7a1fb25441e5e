"""The machine code that nvcc makes of a .cu file: memory instructions with their source lines, and basic blocks.

nvcc compiles the device code alone, with line information, and nvdisasm lists it; no GPU is needed. nvdisasm comes with
the CUDA toolkit; Triton's wheel has it too.
"""

import importlib.util
import json
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Collection, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path

import torch
from torch.utils import cpp_extension

from kernel_xray.machine import cache, toolchain
from kernel_xray.machine.paths import also_include
from kernel_xray.machine.progress import Progress
from kernel_xray.report import basic_blocks
from kernel_xray.report.basic_blocks import Block
from kernel_xray.report.symbols import Place
from kernel_xray.translate import includes


@dataclass(frozen=True)
class Instruction:
    """A load or store of machine code; cp.async (LDGSTS) is both: it loads from global and writes shared memory."""

    opcode: str  # "LDS.128"
    size: int  # bytes that a lane moves
    loop: int  # which innermost loop it is in, from 1; 0: in none, so a warp executes it once at most
    guarded: bool  # a load that only those threads execute that execute the next store to global memory
    stack: tuple[Place, ...]  # the source lines that it stems from, the innermost inlined call first
    block: int = 0  # the basic block that it is in

    def does(self, space: str, kind: str) -> bool:
        """Whether it makes accesses of this kind; for an opcode of any address space, whether it may."""
        letters = {"load": "LD", "store": "ST"}[kind]
        name = self.opcode.partition(".")[0]
        if name == "LDGSTS":
            return (space, kind) in (("global", "load"), ("shared", "store"))
        return name in (letters, letters + {"global": "G", "shared": "S"}[space]) or (
            space == "shared" and name == letters + "SM"
        )


@dataclass(frozen=True)
class Code:
    """What is known of the machine code of one function."""

    accesses: list[Instruction]  # loads and stores of global and shared memory, in order
    blocks: list[Block]  # the entry first


# How traced builds were asked to compile their sources: flags of nvcc and include paths.
_given: dict[Path, tuple[tuple[str, ...], tuple[Path, ...]]] = {}


def remember(sources: Iterable[Path], nvcc_flags: Iterable[str], include_paths: Iterable[Path]) -> None:
    """Notes how these sources are built; `of_file` compiles them in the same way."""
    for source in sources:
        _given[source.resolve()] = tuple(nvcc_flags), tuple(include_paths)


def compile_remembered(jobs: int) -> None:
    """Compiles all remembered sources, `jobs` at a time, so that `of_file` finds them. Raises RuntimeError."""
    with ThreadPoolExecutor(jobs) as pool:
        list(pool.map(_of_source, [source for source in _given if source.suffix == ".cu"]))


def tools() -> tuple[Path, Path]:
    """nvcc and nvdisasm. Raises RuntimeError if one is missing."""
    nvcc = toolchain.find_nvcc()
    if nvcc is None:
        raise RuntimeError("sass=True compares with the machine code that nvcc makes, and nvcc is not installed")
    if (disassembler := find_nvdisasm(nvcc)) is None:
        raise RuntimeError(
            "sass=True needs nvdisasm, which is neither beside nvcc nor on PATH; install it with the CUDA toolkit or "
            "with Triton (pip install triton)"
        )
    return nvcc, disassembler


def find_nvdisasm(nvcc: Path) -> Path | None:
    """The nvdisasm beside nvcc, on PATH, or in an installed Triton."""
    candidates = [nvcc.with_name("nvdisasm"), nvcc.resolve().with_name("nvdisasm")]
    if on_path := shutil.which("nvdisasm"):
        candidates.append(Path(on_path))
    triton = importlib.util.find_spec("triton")
    folders = triton.submodule_search_locations or () if triton else ()
    candidates += [Path(folder) / "backends" / "nvidia" / "bin" / "nvdisasm" for folder in folders]
    return next((c for c in candidates if os.access(c, os.X_OK)), None)


def architecture() -> str:
    """That of this machine's GPU, or Hopper's. 9.0a adds wgmma to 9.0; other kernels compile to the same code."""
    major, minor = torch.cuda.get_device_capability() if torch.cuda.is_available() else (9, 0)
    return f"sm_{major}{minor}" + ("a" if (major, minor) == (9, 0) else "")


def of_file(file: str | Path) -> dict[str, list[Instruction]]:
    """Mangled name of each kernel of a .cu file -> its loads and stores, in order."""
    return {name: code.accesses for name, code in code_of_file(file).items()}


def blocks_of_file(file: str | Path) -> dict[str, list[Block]]:
    """Mangled name of each kernel of a .cu file -> its basic blocks, the entry first."""
    return {name: code.blocks for name, code in code_of_file(file).items()}


def code_of_file(file: str | Path) -> dict[str, Code]:
    """Mangled name of each kernel of a .cu file -> its machine code; kept in the build cache.

    For a header: those of the remembered sources that include it. Raises RuntimeError if a tool is missing or nvcc
    fails.
    """
    path = Path(file).resolve()
    if path.suffix == ".cu":
        return _of_source(path)
    including = [s for s, (_, folders) in _given.items() if path in includes.closure([s], list(folders))]
    return {name: found for source in including for name, found in _of_source(source).items()}


def _of_source(path: Path) -> dict[str, Code]:
    nvcc, disassembler = tools()
    given, include_paths = _given.get(path, ((), tuple(also_include([]))))
    arch = architecture()
    texts = includes.closure([path], list(include_paths))
    identity = [[str(tool), tool.stat().st_mtime_ns] for tool in (nvcc, disassembler)]
    key = cache.digest([(str(p), t) for p, t in texts.items()], arch, given, identity, torch.__version__, 6)
    kept = cache.root() / "sass" / f"{path.stem}-{key}.json"
    if not kept.exists():
        kept.parent.mkdir(exist_ok=True)
        with Progress(f"compiling {path.name} with nvcc, to read its machine code"):
            listing = _listing(nvcc, disassembler, path, arch, given, include_paths)
        cache.write_whole(kept, json.dumps({name: asdict(code) for name, code in parse(listing).items()}))
    return {
        name: Code(
            [Instruction(**entry | {"stack": tuple(map(tuple, entry["stack"]))}) for entry in code["accesses"]],
            [Block(**block) for block in code["blocks"]],
        )
        for name, code in json.loads(kept.read_text(encoding="utf-8")).items()
    }


def _listing(
    nvcc: Path, disassembler: Path, path: Path, arch: str, given: tuple[str, ...], include_paths: tuple[Path, ...]
) -> str:
    flags = [f for f in given if not re.match(r"-?-gencode|-?-gpu-architecture|-arch", f)]
    folders = [*include_paths, *cpp_extension.include_paths()]
    standard = [] if any(f.startswith("-std=") for f in flags) else ["-std=c++17"]
    with tempfile.TemporaryDirectory() as folder:
        cubin = f"{folder}/kernels.cubin"
        command = [str(nvcc), "-cubin", "-arch", arch, "-lineinfo", "-DUSE_CUDA", "-DTORCH_EXTENSION_NAME=sass"]
        command += [*cpp_extension.COMMON_NVCC_FLAGS, *standard, *flags, *(f"-I{i}" for i in folders)]
        done = subprocess.run([*command, "-o", cubin, str(path)], capture_output=True, text=True, check=False)
        if done.returncode:
            raise RuntimeError(f"nvcc could not compile {path} for {arch}:\n{done.stderr or done.stdout}")
        listed = subprocess.run([str(disassembler), "-gi", "-c", cubin], capture_output=True, text=True, check=False)
    if listed.returncode:
        raise RuntimeError(f"nvdisasm could not read the machine code of {path.name}:\n{listed.stderr}")
    return listed.stdout


# ----------------------------------------------------------------------------------------------------------------------
# The listing of nvdisasm -gi: before an instruction whose line differs from the last one's, a comment for each inlined
# call, the innermost first

_FUNCTION = re.compile(r"^\.text\.(\S+):$")
_LABEL = re.compile(r"^(\.L\w+):$")
_PLACE = re.compile(r'^\s*//## File "(.+?)", line (\d+)')
_CODE = re.compile(r"^\s*/\*[0-9a-f]+\*/\s+(@!?U?P\w+\s+)?([\w.]+)([^;]*)")
_MEMORY = re.compile(r"(?:LDG|STG|LDS|STS|LD|ST|LDSM|STSM|LDGSTS)(?:\.|$)")
_TARGET = re.compile(r"`\((\.L\w+)\)")
_SIZES = {"U8": 1, "S8": 1, "U16": 2, "S16": 2, "64": 8, "128": 16}


def parse(listing: str) -> dict[str, Code]:
    """Mangled name of each function -> its machine code."""
    return {name: _code(lines) for name, lines in _functions(listing)}


def _functions(listing: str) -> Iterator[tuple[str, list[str]]]:
    name, lines = "", list[str]()
    for line in listing.splitlines():
        if (header := _FUNCTION.match(line)) or line.startswith("//-----"):
            if name:
                yield name, lines
            name, lines = header[1] if header else "", []
        else:
            lines.append(line)
    if name:
        yield name, lines


def _code(lines: list[str]) -> Code:
    labels = {label[1]: at for at, line in enumerate(lines) if (label := _LABEL.match(line))}
    codes = {at: code for at, line in enumerate(lines) if (code := _CODE.match(line))}
    stacks = _stacks(lines, codes)
    loops = list[tuple[int, int]]()  # from the target of a jump backwards to the jump
    skips = list[tuple[int, int]]()  # from a jump forwards to its target
    for at, code in codes.items():
        if code[2] == "EXIT" and code[1]:
            skips.append((at, len(lines)))
        if code[2].startswith("BRA") and (target := _TARGET.search(code[3])):
            to = labels.get(target[1], at)
            (loops if to < at else skips).append((min(to, at), max(to, at)))

    def conditions(at: int) -> set[object]:
        """What may keep a thread from executing the instruction: its predicate, and jumps over it."""
        predicate = (codes[at][1] or "").strip()
        return {(start, end) for start, end in skips if start < at < end} | ({predicate} if predicate else set())

    def before_a_store(at: int) -> bool:
        """Whether all threads that execute the load come to the next store."""
        for later in range(at + 1, end_of_window(at)):
            if later in codes and codes[later][2].startswith("STG"):
                return conditions(later) <= conditions(at)
        return False

    def under_a_loop(at: int) -> bool:
        """Whether a jump that the source has later skips the load and with it a loop that stores at each turn.

        nvcc moves what only a loop needs behind the jump for threads that do not enter the loop.
        """
        own = stacks[at][-1:]  # the kernel's line, of calls that are inlined
        jumps = [end for start, end in skips if start < at < end and _follows(stacks[start][-1:], own)]
        stop = min(max(jumps, default=0), end_of_window(at))
        return any(
            at < begin and later in codes and codes[later][2].startswith("STG") and not codes[later][1]
            for begin, end in loops
            for later in range(begin, min(end, stop))
            if not any(begin < start < later < over for start, over in skips)
        )

    def end_of_window(at: int) -> int:
        return next((i for i in codes if i > at and codes[i][2].startswith(("BAR", "WARPSYNC"))), len(lines))

    blocks, of = basic_blocks.blocks({at: (c[2], c[3]) for at, c in codes.items()}, set(labels.values()), loops)
    accesses = []
    for at in codes:
        opcode = codes[at][2]
        if _MEMORY.match(opcode) and "@!PT" not in (codes[at][1] or ""):  # which no thread executes
            around = [n for n, (begin, end) in enumerate(loops, 1) if begin < at < end]
            loop = min(around, key=lambda n: loops[n - 1][1] - loops[n - 1][0], default=0)
            guarded = "LD" in opcode and (before_a_store(at) or (not loop and under_a_loop(at)))
            accesses.append(Instruction(opcode, _size(opcode), loop, guarded, stacks[at], of[at]))
    return Code(accesses, blocks)


def _follows(place: tuple[Place, ...], other: tuple[Place, ...]) -> bool:
    """Whether a place is below another in the same file."""
    return bool(place and other) and place[0][0] == other[0][0] and place[0][1] > other[0][1]


def _stacks(lines: list[str], codes: Collection[int]) -> dict[int, tuple[Place, ...]]:
    """The source lines that each instruction stems from, the innermost inlined call first."""
    found = dict[int, tuple[Place, ...]]()
    stack: list[Place] = []
    complete = True  # the next comment begins another stack
    for at, line in enumerate(lines):
        if place := _PLACE.match(line):
            if complete:
                stack, complete = [], False
            stack.append((place[1], int(place[2])))
        elif at in codes:
            complete = True
            found[at] = tuple(stack)
    return found


def _size(opcode: str) -> int:
    name, *suffixes = opcode.split(".")
    if name in ("LDSM", "STSM"):  # each lane names a row of 8 elements of 2 bytes
        return 16
    return next((_SIZES[s] for s in suffixes if s in _SIZES), 4)
