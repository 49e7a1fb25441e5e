"""What an answer may ask of the loader, and what its source may say: each refusal beside code that is let through."""

import subprocess
import sys

import pytest

import helpers
from helpers.practice import judge, object_code, object_file, preprocessed, registry
from kernel_xray.build import flags
from kernel_xray.machine import cache
from kernel_xray.runtime import libsimt

pytestmark = pytest.mark.skipif(not object_code.supported(), reason="no object code in ELF, or no objdump here")
TRACED = ["-std=c++17", "-O1", "-fPIC", "-fsanitize=thread", "-fsanitize-coverage=trace-pc"]
HARMLESS = """
extern "C" float expf(float);
extern "C" int printf(const char*, ...);
struct Base { virtual ~Base() {} int number = 3; };
__attribute__((aligned(16))) float table[4] = {1, 2, 3, 4};
void launcher(float* x, int n) {
  Base* made = new Base;
  for (int i = 0; i < n; ++i) x[i] = expf(x[i]) + table[i % 4] + made->number;
  delete made;
  if (n < 0) throw n;
  printf("%d", n);
}
namespace simt { int thread_copy(); }
extern "C" float modff(float, float*);
static float __attribute__((noinline)) of_device(float x) { return expf(x) + modff(x, table); }
void kernel(float* x) { x[simt::thread_copy()] = of_device(x[0]); }
"""
REFUSED = {
    'extern "C" int system(const char*); void f() { system("true"); }': "it calls or names system",
    'extern "C" void* dlsym(void*, const char*); void* f() { return dlsym(nullptr, "x"); }': "calls or names dlsym",
    'extern "C" void* dlopen(const char*, int); auto kept = &dlopen;': "calls or names dlopen",
    'extern "C" int fork(); int f() { return fork(); }': "calls or names fork",
    'extern "C" long syscall(long, ...); long f() { return syscall(57); }': "calls or names syscall",
    'extern "C" int PyRun_SimpleString(const char*); int f() { return PyRun_SimpleString(""); }': "PyRun_SimpleString",
    'extern "C" char* simt_trace_end(); char* f() { return simt_trace_end(); }': "calls or names simt_trace_end",
    "#include <fstream>\nint f() { return std::ifstream(\"x\").get(); }": "basic_filebuf",
    "#include <thread>\nvoid f() { std::thread([] {}).detach(); }": "std::thread",
    'extern "C" void __tsan_write4(void*) {}': "it defines __tsan_write4",
    'extern "C" void __wrap_memcpy() {}': "it defines __wrap_memcpy",
    "namespace simt { void fault(char const*, char const*) {} }": "it defines simt::fault",
    "__attribute__((section(\".mine\"))) int number = 3;": "a section of its own, '.mine'",
    'extern "C" { int a() { return 1; } int (*b())() { return a; } int c() __attribute__((ifunc("b"))); }': "to choose",
    'extern "C" int rand(); static int number = rand();': "calls rand when the answer is loaded",
    "int all[9]; static int number = [] { for (int& x : all) x = 3; return all[2]; }();": "when the answer is loaded",
    "volatile int all[9]; __attribute__((constructor)) void f() { all[3] = 4; }": "when the answer is loaded",
    'extern "C" int rand(); struct S { S() { rand(); } } made;': "when the answer is loaded",
    "void f(); __attribute__((section(\".init_array\"), used)) static void (*kept)() = f; int x; void f() { x = 3; }":
        "when the answer is loaded",
    "__attribute__((destructor)) void f() {}": "a section of its own, '.fini_array",
    'typedef long double T; extern "C" T modfl(T, T*); void k(T* x) { modfl(simt::thread_copy(), x); }':
        "a kernel calls modfl",
    'extern "C" int memcmp(const void*, const void*, unsigned long); static int __attribute__((noinline)) f(float* x) '
    "{ return memcmp(x, x + 1, 9); } void k(float* x) { x[simt::thread_copy()] = f(x); }": "a kernel calls memcmp",
    'void f() { asm volatile("syscall"); }' if sys.platform == "linux" else "": "it calls the operating system",
}  # fmt: skip


def compiled(folder, text, options=TRACED):
    source, made = folder / "answer.cpp", folder / "answer.o"
    source.write_text(text)
    subprocess.run([*libsimt.compiler().split(), *options, "-c", str(source), "-o", str(made)], check=True)
    return made


def test_code_that_a_kernel_and_its_launcher_need_is_let_through(tmp_path):
    assert object_code.problem([compiled(tmp_path, HARMLESS)]) == ""
    assert object_code.problem([compiled(tmp_path, HARMLESS, ["-fPIC"])]) == "it holds no code that can be traced"


@pytest.mark.skipif(sys.platform != "linux", reason="other systems name the check of a stack otherwise")
def test_checks_that_a_system_adds_by_itself_are_left_out(tmp_path):
    """As Ubuntu's compilers do: no answer would be accepted there."""
    added = ["-std=c++17", "-fPIC", "-fstack-protector-all", "-D_FORTIFY_SOURCE=2"]
    assert "__stack_chk_fail" in object_code.problem([compiled(tmp_path, HARMLESS, [*TRACED, *added])])
    assert not object_code.problem([compiled(tmp_path, HARMLESS, [*added, *flags.simulator(traced=True)])])


@pytest.mark.parametrize("text", [text for text in REFUSED if text])
def test_code_that_could_speak_for_the_tracer_is_refused(tmp_path, text):
    if "syscall" in REFUSED[text] and libsimt.platform.machine() != "x86_64":
        pytest.skip("an instruction of x86-64")
    assert REFUSED[text] in object_code.problem([compiled(tmp_path, HARMLESS + text)])


def test_a_file_that_is_not_object_code_is_unreadable(tmp_path):
    whole = compiled(tmp_path, HARMLESS).read_bytes()
    for data in (b"", b"text", whole[:100], whole[:0x3A] + b"\xff" * 6 + whole[0x40:]):
        with pytest.raises(object_file.Unreadable):
            object_file.read(data, object_file.OF_OBJECT)


# -- the source --------------------------------------------------------------------------------------------------------

NINJA = """
rule compile
  command = {compiler} -I{folder} -MMD -MF $out.d -c $in -o $out
build answer.o: compile {folder}/translated/0_answer.cu.cpp
"""
UNTRACED = '#define UNTRACED __attribute__((no_sanitize("thread")))\nUNTRACED inline int of_header() { return 1; }\n'
LET_THROUGH = [
    "int f() { return of_header(); }  // asm and no_sanitize in a comment, #line 3 too",
    "// # 3 things: no directive\n#define SIZE 3\nint assembly[SIZE], line = 3;",
    '/* a note\n   on # hashes */\nvoid f() { __asm__ __volatile__("" ::: "memory"); }',
]
NOT_SEEN = {
    "void f(int* x) { __builtin_ia32_movnti(x, 3); }": "__builtin_ia32_movnti",
    "void f(float* x) { __builtin_sincosf(x[0], x, x + 1); }": "__builtin_sincosf",
    "UNTRACED void f() {}": "untraced",
    '#define JOIN(a, b) a##b\n__attribute__((JOIN(no_, sanitize)("thread"))) void f() {}': "untraced",
    "__attribute__((no_sani\\\ntize_thread)) void f() {}": "untraced",
    "[[gnu::no_sanitize_thread]] void f() {}": "untraced",
    'void f() { asm volatile("nop"); }': "asm statement",
    'void f() { __as\\\nm__("nop"); }': "asm statement",
    '#define JOIN(a, b) a##b\nvoid f() { JOIN(__as, m__)("nop"); }': "asm statement",
    'extern "C" void f() __asm__("__tsan_write4");': "asm statement",
    'void f() { __asm__ __volatile__("nop" ::: "memory"); }': "asm statement",
    '#line 3 "elsewhere"\nvoid f() {}': "#line",
    '  /* a */ # /* b */ 3 "elsewhere"\nvoid f() {}': "#line",
    '/*\n// */ #line 3 "elsewhere"\nvoid f() {}': "#line",
    '#li\\\nne 3 "elsewhere"\nvoid f() {}': "#line",
    '%: 3 "elsewhere"\nvoid f() {}': "#line",
}


def said(folder, text):
    source = folder / "answer.cu"
    (folder / "translated").mkdir()
    source.write_text(text)
    (folder / "untraced.h").write_text(UNTRACED)
    translated = f'#include "untraced.h"\n#line 1 "/source-0123/answer.cu"\n{text}\n'
    (folder / "translated" / "0_answer.cu.cpp").write_text(translated)
    (folder / "build.ninja").write_text(NINJA.format(compiler=libsimt.compiler(), folder=folder))
    return preprocessed.problem(text, source, folder)


@pytest.mark.parametrize("text", LET_THROUGH)
def test_a_source_that_the_tracer_sees_is_let_through(tmp_path, text):
    assert said(tmp_path, text) == ""


@pytest.mark.parametrize("text", NOT_SEEN)
def test_a_source_that_hides_code_from_the_tracer_is_refused(tmp_path, text):
    assert NOT_SEEN[text] in said(tmp_path, text)


@pytest.mark.skipif(not libsimt.finds_precompiled_headers(), reason="only g++ finds precompiled headers by itself")
def test_what_a_precompiled_header_defines_is_expanded_and_the_rest_of_it_left_out(tmp_path):
    (tmp_path / "untraced.h").write_text(UNTRACED)
    made = ["-x", "c++-header", "untraced.h", "-o", "untraced.h.gch"]
    subprocess.run([*libsimt.compiler().split(), f"-I{tmp_path}", *made], cwd=tmp_path, check=True)
    assert "untraced" in said(tmp_path, "UNTRACED void f() {}")
    assert preprocessed._expanded(tmp_path).count("of_header") == 0


def test_a_build_whose_headers_have_gone_is_stale_and_will_be_built_again(tmp_path):
    (record := tmp_path / cache.RECORD).write_text("{}")
    with pytest.raises(preprocessed.Stale, match=r"answer\.cu does not expand: .*gone\.h"):
        said(tmp_path, '#include "gone.h"\nvoid f() {}')
    assert not record.exists()


@pytest.mark.slow  # two builds of an answer
@pytest.mark.skipif(helpers.target != "simulator", reason="on a GPU, an answer's source is not expanded")
def test_an_answer_that_a_copy_of_the_course_built_which_has_gone_is_built_again(tmp_path):
    (answer := tmp_path / "roll.cu").write_text(registry.find("roll").solution.read_text() + "// built elsewhere\n")
    assert judge.check_file("roll", answer).accepted
    for ninja in cache.root().glob("roll-*/build.ninja"):
        source = ninja.parent / "translated" / "0_roll.cu.cpp"  # other builds of the name may have lost theirs
        if source.is_file() and "// built elsewhere" in source.read_text():
            ninja.write_text(ninja.read_text().replace("-I", "-I/gone").replace("-isystem ", "-isystem /gone"))
    assert judge.check_file("roll", answer).accepted
