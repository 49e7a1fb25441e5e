"""Whatever happens to the build cache and to those who build in it, the next load answers right without a hand's help.

KERNEL_XRAY_FAULT_ROUNDS is the number of rounds, 20 by default; KERNEL_XRAY_FAULT_SEED picks them.
"""

import contextlib
import os
import random
import signal
import time
from collections import Counter, defaultdict

import pytest
from fault_rounds import Loads, quick_compiler, write_kernel

import kernel_xray
from kernel_xray.machine import cache

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(7200),
    pytest.mark.skipif(kernel_xray.target != "simulator", reason="it damages the parts of the simulator"),
]


class Rounds:
    """A kernel that is edited, a cache, processes that load from it, and the generator that chooses what goes wrong."""

    def __init__(self, folder, loads, chance):
        self.folder, self.loads, self.chance = folder, loads, chance
        self.source, self.cache = folder / "k.cu", folder / "cache"
        self.in_header, self.in_source = 0, 0
        self.edit()
        self.answer()
        self.edit()
        began = time.monotonic()
        self.answer()
        self.seconds = time.monotonic() - began  # of a build

    def edit(self):
        """Nothing of the kernel is in the cache any more: its number is another one, here or in a header."""
        if self.chance.random() < 0.5:
            self.in_header += 1
        else:
            self.in_source += 1
        write_kernel(self.folder, self.in_source, self.in_header)

    def start(self, count=1, **options):
        return [self.loads.start(self.source, **options) for _ in range(count)]

    def check(self, load):
        """It printed the sum of the kernel's four results."""
        code, printed = load.end()
        assert code == 0 and printed.split()[-1] == str(4.0 * (self.in_header + self.in_source)), (code, printed)

    def answer(self):
        """A new process answers right, and no process remains that it, or one before it, has started."""
        (load,) = self.start()
        self.check(load)
        end = time.monotonic() + 30
        while (left := self.loads.parts()) and time.monotonic() < end:
            time.sleep(0.01)
        assert left == {}

    def wait(self):
        """Until some time in a build."""
        time.sleep(self.chance.uniform(0, self.seconds))


def files(folder):
    return sorted(path for path in folder.rglob("*") if path.is_file())


def truncate(rounds):
    """A file of the kernel's build, of the simulator, of the bridge, of the compiled headers, or a list of headers."""
    kinds = defaultdict(list)
    for folder in sorted(place for place in rounds.cache.iterdir() if place.is_dir()):
        kinds[folder.name.rpartition("-")[0]].append(folder)
    of_a_kind = kinds[rounds.chance.choice(sorted(kinds))]
    path = rounds.chance.choice(files(max(of_a_kind, key=lambda folder: folder.stat().st_mtime)))
    os.truncate(path, rounds.chance.randrange(path.stat().st_size + 1))


def kill_processes(rounds, group=False):
    rounds.edit()
    builders = rounds.start(3)
    rounds.wait()
    for builder in builders:
        builder.kill(group=group)
    for builder in builders:
        builder.end()


def kill_groups(rounds):
    kill_processes(rounds, group=True)


def kill_a_part(rounds):
    """Ninja, a compiler, an assembler, a linker, or what watches them."""
    rounds.edit()
    (builder,) = rounds.start()
    rounds.wait()
    if parts := sorted(rounds.loads.parts()):
        with contextlib.suppress(ProcessLookupError):
            os.kill(rounds.chance.choice(parts), signal.SIGKILL)
    builder.end()


def build_at_once(rounds):
    rounds.edit()
    for builder in rounds.start(4):
        rounds.check(builder)


def set_clock_back(rounds):
    """All that was written seems to have been written tomorrow."""
    tomorrow = time.time() + 86400
    for path in [*files(rounds.cache), rounds.source, rounds.source.with_name("value.h")]:
        os.utime(path, (tomorrow, tomorrow))


def fill_disk(rounds):
    """No file may grow beyond a limit: that of the library, the object, the translated source, or that of a lock."""
    rounds.edit()
    (builder,) = rounds.start(most=rounds.chance.choice((0, 100, 1_000, 30_000, 42_000, 100_000)))
    builder.end()


FAULTS = (truncate, kill_processes, kill_groups, kill_a_part, build_at_once, set_clock_back, fill_disk)


def test_after_any_fault_a_load_answers_right(tmp_path):
    count, seed = (int(os.environ.get(f"KERNEL_XRAY_FAULT_{name}", n)) for name, n in (("ROUNDS", 20), ("SEED", 0)))
    chance, happened = random.Random(seed), Counter()
    environment = {cache.VARIABLE: str(tmp_path / "cache"), **quick_compiler(tmp_path / "bin")}
    with Loads(tmp_path, environment) as loads:
        rounds = Rounds(tmp_path, loads, chance)
        began = time.monotonic()
        for i in range(count):
            faults = chance.choices(FAULTS, k=chance.choice((1, 1, 2)))
            happened.update(names := [fault.__name__ for fault in faults])
            try:
                for fault in faults:
                    fault(rounds)
                rounds.answer()
            except AssertionError as error:
                raise AssertionError(f"seed {seed}, round {i}: {', '.join(names)}") from error
        seconds = (time.monotonic() - began) / count
    print(f"seed {seed}: {count} of {count} rounds right, {seconds:.2f} s each;", *sorted(happened.items()))
