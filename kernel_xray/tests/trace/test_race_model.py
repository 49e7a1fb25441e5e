"""The race detector's model, compiled alone, and with planted errors that its test program has to notice."""

import shutil
import subprocess
from pathlib import Path

import pytest
from simt_programs import COMPILERS

from kernel_xray.machine.paths import INCLUDE, PACKAGE, RUNTIME, TRACE

PROGRAM = Path(__file__).parent / "race_model_test.cpp"

# In which file of trace/, what is there, what the error puts in its place
ERRORS = {
    "an epoch does not know itself": ("vector_clock.h", "epoch.clock <= clocks_[", "epoch.clock < clocks_["),
    "a clock goes backwards": ("vector_clock.h", "std::max(clocks_[epoch.slot], epoch.clock)", "epoch.clock"),
    "a join overwrites": ("vector_clock.h", "std::max(clocks_[s], other.clocks_[s])", "other.clocks_[s]"),
    "a release takes": ("vector_clock.h", "{ into.join(*this); }", "{ const_cast<VectorClock*>(this)->join(into); }"),
    "no fence is needed": ("vector_clock.h", "async.acquire(released.async)", "async.acquire(released.generic)"),
    "a fence does nothing": ("vector_clock.h", "void fence() { async.join(generic); }", "void fence() {}"),
    "any thread of a phase": ("vector_clock.h", "it->slot == epoch.slot && epoch.clock", "epoch.clock"),
    "an earlier phase wins": ("vector_clock.h", "if (new_phase > phase) {", "if (new_phase != phase) {"),
    "one thread of a phase": ("vector_clock.h", "all_.insert(it, epoch);", "all_ = {epoch};"),
    "a join of phases": ("vector_clock.h", "if (ours.phase == theirs.phase) ours", "ours"),
    "a strong epoch is plain": ("vector_clock.h", "(strong && known.strong", "(known.strong"),
    "strong epochs are not joined": ("vector_clock.h", "      ours.strong.join(theirs.strong);\n", ""),
    "stores in slots of threads": ("access.h", "return thread(i) + stores_;", "return thread(i);"),
    "a barrier not passed": ("access.h", "before.phase < now.phase", "before.phase <= now.phase"),
    "a barrier of another block": ("access.h", "same_block && before.phase", "before.phase"),
    "a lane of another warp": ("access.h", "same_warp && before.clock", "before.clock"),
    "TMA in step with threads": ("access.h", "!beside(before.agent) && !beside(now.agent)", "true"),
    "clusters in one": ("access.h", "(before.cluster == now.cluster && !beside(before", "(!beside(before"),
    "released to another cluster alone": ("shadow_memory.cpp", "(!same_cluster || !unit)", "!same_cluster"),
    "strong accesses race": ("access.h", "return scope == Scope::device;", "return false;"),
    "a write is enough to be strong": ("access.h", "std::min(scope, before.scope())", "before.scope()"),
    "the block is all": ("access.h", "return before.cluster == now.cluster && (", "return true || ("),
    "the cluster is a block": ("access.h", "(scope == Scope::cluster || ", "("),
    "the block is a cluster": ("access.h", "scope == Scope::cluster || (", "true || ("),
    "a scope of another kind": ("access.h", "kScopeShift = 3", "kScopeShift = 1"),
    "every write has the same value": ("shadow_memory.cpp", "event.value == before.value()", "true"),
    "unknown values are equal": ("shadow_memory.cpp", "event.value && event.value ==", "event.value =="),
    "a remark hides a race": ("shadow_memory.cpp", "(race && !found_.harmless())", "race"),
    "a read of another thread is validated": ("shadow_memory.cpp", " && read.slot == accessor.slot", ""),
    "one validated read": ("shadow_memory.cpp", "    mark(cell.concurrent->read_elsewhere);\n", ""),
    "one reader is enough": ("shadow_memory.cpp", "check(cell.concurrent->read_in_warp);", ""),
    "one warp of readers is enough": ("shadow_memory.cpp", "check(cell.concurrent->read_elsewhere);", ""),
    "one atomic update is enough": ("shadow_memory.cpp", "check(cell.concurrent->strong);", "{}"),
    "a split cell forgets": ("shadow_memory.cpp", "finer[i].write = cell.write;", ""),
    "shared memory outlives its cluster": ("shadow_memory.cpp", "page : shared_", "page : decltype(shared_){}"),
}


def run(compiler: str, runtime: Path, folder: Path) -> subprocess.CompletedProcess:
    program = folder / "race_model"
    command = [compiler, "-std=c++17", "-Wall", "-Wextra", f"-I{runtime}", f"-I{RUNTIME}", "-include"]
    subprocess.run([*command, str(runtime / "trace" / "shadow_memory.cpp"), PROGRAM, "-o", program], check=True)
    return subprocess.run([program], capture_output=True, text=True, check=False, timeout=60)


def test_the_model_orders_what_it_should(compiler, tmp_path):
    done = run(compiler, PACKAGE, tmp_path)
    assert (done.returncode, done.stdout) == (0, "all right\n"), done.stdout


@pytest.mark.slow  # a program each; in the quick suite X-rays of planted races show what the model misses
@pytest.mark.parametrize("error", ERRORS)
def test_the_program_notices_a_planted_error(error, tmp_path):
    name, good, bad = ERRORS[error]
    runtime = tmp_path / "runtime"
    shutil.copytree(TRACE, runtime / "trace", ignore=shutil.ignore_patterns("*.py", "__pycache__"))
    shutil.copytree(INCLUDE / "simt", runtime / "include" / "simt")
    file = runtime / "trace" / name
    text = file.read_text()
    assert text.count(good) == 1, f"{name} has {good!r} {text.count(good)} times"
    file.write_text(text.replace(good, bad))
    done = run(COMPILERS[0], runtime, tmp_path)
    assert done.returncode != 0 and "not " in done.stdout, "the error was not noticed"
