"""What the object code of an answer asks for, looked at before it is loaded: nothing of it has run yet.

A kernel and its launcher need CUDA's interface, PyTorch's stable one, mathematics and the C++ runtime. An answer that
asks the loader for anything else, such as files, processes, threads or the interpreter, is refused; so is one that
stands in for a function of the tracer, that runs code of its own when it is loaded, or calls the kernel by itself.
"""

import re
import shutil
import subprocess
from collections.abc import Iterable
from pathlib import Path

from helpers.practice.object_file import OF_OBJECT, RESOLVER, UNDEFINED, Symbol, exports, read
from kernel_xray.runtime import libsimt

_MATHS = (
    "acos acosh asin asinh atan atan2 atanh cbrt ceil copysign cos cosh erf erfc exp exp2 expm1 fabs fdim floor fma "
    "fmax fmin fmod frexp hypot ilogb ldexp lgamma llrint llround log log10 log1p log2 logb lrint lround modf "
    "nearbyint nextafter pow remainder remquo rint round scalbln scalbn sin sincos sinh sqrt tan tanh tgamma trunc"
)
_C = (
    "memcpy memmove memset memcmp bcmp memchr strlen strcmp strncmp strchr strstr malloc calloc realloc free "
    "aligned_alloc printf puts putchar snprintf vsnprintf vprintf fprintf fputs fputc fwrite fflush stdout stderr "
    "abort __assert_fail time localtime clock rand srand qsort __libc_single_threaded __tls_get_addr __stack_chk_fail "
    "__errno_location pthread_mutex_lock pthread_mutex_unlock __dso_handle _GLOBAL_OFFSET_TABLE_"
)
_ALLOWED = re.compile(
    "|".join(
        (
            rf"(?:{'|'.join(_MATHS.split())})[fl]?",
            "|".join(_C.split()),
            r"__(?:printf|fprintf|snprintf|vsnprintf|memcpy|memmove|memset)_chk",
            r"_Z\d+cu(?:da|TensorMap)\w+",  # CUDA's interface, and the simulator's for translated kernels
            r"_Z(?:N|NK|TI|TV|TS)4simt\w+",
            r"simt_(?:aoti_torch|torch)_\w+",
            r"(?:aoti_)?torch_\w+",  # PyTorch's stable interface
            r"__(?:tsan|sanitizer|ubsan)_\w+",  # the tracer's hooks, which the compiler calls
            r"_Z(?:N|NK|NO|T[ITVS]N?)?S[toisbd]\w+|_ZT[IVS]N10__cxxabiv1\w+|_ZTIP?K?[a-z]",  # the C++ runtime
            r"_Z(?:n|d)[wal]\w*|__cxa_\w+|__g(?:xx|cc)_personality_v0|_Unwind_Resume|__dynamic_cast",
            r"__(?:popcount|clz|ctz|ffs|bswap|parity|mul|u?div|u?mod|u?divmod|powi|float\w*|fix\w*|extend\w*|trunc\w*|"
            r"add|sub|neg|eq|ne|lt|le|gt|ge|cmp|unord|ashl|ashr|lshr)[sdthx][ficx]\w*",  # arithmetic of libgcc
        )
    )
)
# Of the C++ runtime: files, threads, processes.
_REFUSED = re.compile(r"filebuf|fstream|filesystem|6thread|random_device|13_Fwd_list|jthread|4_Exit|10quick_exit")
_HOOKS = re.compile(r"__(?:tsan|sanitizer|ubsan|wrap|real)_\w+|simt_\w+|(?:aoti_)?torch_\w+")
_OF_STANDARD_LIBRARY = re.compile(r"_ZZ?(?:N|NK|NO|TI|TV|TS)?S[toisbd]")
# A library that the compiler has made holds these; others only for somebody who names them.
_SECTIONS = re.compile(
    r"|\.(?:rela?\.)?(?:text|rodata|data|bss|tdata|tbss|gcc_except_table|eh_frame|debug_\w+|init_array|init_array\.00099|"
    r"init_array\.0|linker-options|comment|note|group|symtab|strtab|shstrtab|llvm_addrsig)"
    r"(?:(?<!init_array)(?<!00099)(?<!init_array\.0)[.\-].*)?"
)
# What the code calls that runs when a library is loaded: the registrations of operators and of variables of a device.
_REGISTERS = re.compile(
    r"_ZL\d+STABLE_TORCH_LIBRARY_\w+|_ZN5torch6stable6detail22StableTorchLibraryInitC[12]\w+|"
    r"_ZN5torch6stable6detailL15throw_exception\w+|aoti_torch_library_\w+|aoti_torch_delete_library_object|"
    r"torch_library_impl|_ZN4simt14DeviceVariableC[12]\w+|_ZNSt8ios_base4InitC1Ev|__cxa_atexit|_Unwind_Resume|"
    r"__clang_call_terminate|__cxa_begin_catch|_ZSt9terminatev|"  # of noexcept; clang's own is walked
    r"__tsan_(?:init|func_entry|func_exit|(?:volatile_)?read\w+)|__sanitizer_cov_trace_pc"
)
# What tells a kernel, or a function that it calls: these make no sense on the host.
_ON_DEVICE = re.compile(
    r"_ZN4simt\d+(?:thread_copy|geometry_copy|block_barrier|warp_collective|shared_static|shared_dynamic|active_mask)\w+"
)
# What it may call: no function of the host, nor one that stores through a pointer where there are no hooks: those for
# float and double have some (TRACED_LINKING).
_STORES = re.compile(r"(?:frexp|modf|remquo|sincos)l")
_BY_KERNELS = re.compile(
    rf"(?:{'|'.join(_MATHS.split())})[fl]?|(?:__wrap_)?mem(?:cpy|move|set)|malloc|free|printf|puts|putchar|__assert_fail|"
    r"clock|_ZN4simt\w+|__(?:tsan|sanitizer|ubsan)_\w+|__cxa_\w+|_Unwind_Resume|_Z(?:n|d)[wal]\w*|"
    r"_ZSt(?:\d+__throw_\w+|9terminatev)|"
    r"__(?!libc|errno|stack|tls|dynamic|gxx|printf|fprintf|snprintf|vsnprintf)[a-z]+[sdthx][ficx]\w*"
)
# Addresses of what the loader calls; in the last one, clang's call of __tsan_init.
_CONSTRUCTORS = ("-j", ".init_array", "-j", ".init_array.00099", "-j", ".init_array.0")
_SECTION = re.compile(r"Disassembly of section (.+):")
_FUNCTION = re.compile(r"([0-9a-f]+) <(.+)>:")
_POINTER = re.compile(r"^[0-9a-f]+\s+R_\w+\s+(\S+?)(?:\+0x([0-9a-f]+))?$")
_CALL = re.compile(r"\t(?:callq?|jmpq?|j[a-z]+|bl|b|blr|br|b\.[a-z]+|cbn?z|tbn?z)\s+(.*)")
_TARGET = re.compile(r"<([^>+]+)(?:\+0x[0-9a-f]+)?>")
_RELOCATION = re.compile(r"\sR_\w+\s+(\S+)$")
_OFFSET = re.compile(r"[-+]0x[0-9a-f]+$")
_KERNEL_CALL = re.compile(r"\t(?:syscall|sysenter|int|svc|hvc|smc)\b")


def supported() -> bool:
    """Whether object code can be looked at here: ELF files, and objdump of binutils or LLVM."""
    return _disassembler() is not None and Path("/proc/self/exe").exists()


def problem(objects: Iterable[Path]) -> str:
    """Why an answer with these object files is not loaded, or ""."""
    for path in objects:
        names, symbols = read(path.read_bytes(), OF_OBJECT)
        if found := _of_sections(names) or _of_symbols(symbols) or _of_code(path):
            return found
    return ""


# -- what is refused ---------------------------------------------------------------------------------------------------


def _of_sections(names: list[str]) -> str:
    other = next((name for name in names if not _SECTIONS.fullmatch(name)), None)
    return f"it has a section of its own, {other[:80]!r}; leave attributes of sections away" if other else ""


def _of_symbols(symbols: list[Symbol]) -> str:
    offered = exports(libsimt.runtime_library() / "libsimt.so")
    asked = {one.name for one in symbols if one.section == UNDEFINED and one.name}
    for name in sorted(asked):
        if not _ALLOWED.fullmatch(name) or _REFUSED.search(name):
            return f"it calls or names {_plain(name)}, which a kernel and its launcher do not need; leave it away"
    for one in symbols:
        reserved = one.name in offered and not _OF_STANDARD_LIBRARY.match(one.name)
        if one.section != UNDEFINED and (reserved or _HOOKS.fullmatch(one.name)):
            return f"it defines {_plain(one.name)}, a name of the simulator or of PyTorch; give it another name"
        if one.kind == RESOLVER:
            return f"the loader would call {_plain(one.name)} to choose a function; call it directly"
    return "" if "__tsan_func_entry" in asked else "it holds no code that can be traced"


def _of_code(path: Path) -> str:
    calls: dict[str, list[str]] = {}
    places: dict[str, str] = {}
    section, function, lines = "", "", _dumped("-d", "-r", "--no-show-raw-insn", str(path)).split("\n")
    for line, after in zip(lines, [*lines[1:], ""], strict=True):
        if start := _FUNCTION.fullmatch(line):
            function = places[f"{section}+{int(start[1], 16):#x}"] = start[2]
            calls[function] = []
        elif begin := _SECTION.fullmatch(line):
            section = begin[1]
        elif _KERNEL_CALL.search(line):
            return "it calls the operating system directly; leave that away"
        elif (call := _CALL.search(line)) and function:
            target = _RELOCATION.search(after) or _TARGET.search(call[1])
            calls[function].append(target[1] if target else "")
    listed = [_POINTER.search(line) for line in _dumped("-r", *_CONSTRUCTORS, str(path)).split("\n")]
    pointers = [(found[1], int(found[2] or "0", 16)) for found in listed if found]
    calls = {one: [_resolved(called, places) for called in targets] for one, targets in calls.items()}
    loaded = [places.get(f"{name}+{offset:#x}", name) for name, offset in pointers]
    return _of_constructors(loaded, calls) or _of_kernels(calls)


def _resolved(target: str, places: dict[str, str]) -> str:
    """The function that a call names, also as an offset in a section; x86-64 counts it from 4 bytes further on."""
    found = _OFFSET.search(target)
    name = target[: found.start()] if found else target
    at = int(found[0].replace("0x", ""), 16) if found else 0
    return next((places[place] for ahead in (4, 0) if (place := f"{name}+{at + ahead:#x}") in places), name)


def _of_kernels(calls: dict[str, list[str]]) -> str:
    """What is wrong with the calls of kernels, and of the functions that they call."""
    waiting = [one for one, targets in calls.items() if any(map(_ON_DEVICE.fullmatch, targets))]
    seen = set(waiting)
    while waiting:
        for called in calls[waiting.pop()]:
            if called in calls and called not in seen:
                seen.add(called)
                waiting.append(called)
            elif called and called not in calls and (not _BY_KERNELS.fullmatch(called) or _STORES.fullmatch(called)):
                return f"a kernel calls {_plain(called)}, which is not for kernels, or which the tracer does not see"
    return ""


def _of_constructors(waiting: list[str], calls: dict[str, list[str]]) -> str:
    """What is wrong with the functions that run when the library is loaded, or those that they call."""
    seen = set()
    while waiting:
        function = waiting.pop()
        for called in calls.get(function, [""]):
            if called != function and not _REGISTERS.fullmatch(called):
                what = f"calls {_plain(called)}" if called else "runs code"
                return (
                    f"a global variable, a constructor or a registration {what} when the answer is loaded: "
                    "move that into the launcher"
                )
            if called.startswith(("_ZL", "__clang_call_terminate")) and called not in seen:
                seen.add(called)
                waiting.append(called)
    return ""


def _dumped(*arguments: str) -> str:
    command = [str(_disassembler()), *arguments]
    return subprocess.run(command, capture_output=True, text=True, errors="replace").stdout


def _disassembler() -> str | None:
    return shutil.which("objdump") or shutil.which("llvm-objdump")


def _plain(name: str) -> str:
    """The name as C++ writes it, if the machine can tell; at most 120 characters of it."""
    tool = shutil.which("c++filt")
    told = subprocess.run([tool, name], capture_output=True, text=True).stdout.strip() if tool else ""
    shown = (told or name)[:120]
    return "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in shown)
