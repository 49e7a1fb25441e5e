"""`make new-op NAME=...`: the package that it writes builds, passes its own tests, and gives one stable wheel."""

import re
import shutil
import sys
import zipfile

import pytest
import running

import helpers
from helpers.pages.notebooks import new_op
from helpers.pages.notebooks.new_op import NewOpError, check, write
from kernel_xray.build.packaging import simulator_extension

pytestmark = pytest.mark.slow


def run(*arguments, cwd):
    """The target is this one's also where there is an nvcc and no GPU."""
    return running.python(*arguments, cwd=cwd, status=None, KERNEL_LADDER_TARGET=helpers.target)


@pytest.fixture(scope="module")
def package(tmp_path_factory):
    return write("brand_new", tmp_path_factory.mktemp("packages"))


@pytest.fixture(scope="module")
def own_tests(package):
    return run("-m", "pytest", "-p", "no:cacheprovider", cwd=package)


def test_the_packages_own_tests_pass_at_once(own_tests):
    assert own_tests.returncode == 0, own_tests.stdout[-3000:]
    assert re.search(r"\b\d\d passed", own_tests.stdout)


def test_nothing_of_the_template_is_left(package):
    texts = {path: path.read_text() for path in package.rglob("*") if path.suffix in (".py", ".cu", ".toml", ".md")}
    assert len(texts) >= 6
    assert [path for path, text in texts.items() if "my_op" in text or "my_op" in path.name] == []
    assert (package / "csrc" / "launch.h").read_text() == new_op.HEADER.read_text()


def test_its_tests_find_a_wrong_kernel_and_a_wrong_gradient(own_tests, package):
    wrong = {
        package / "csrc" / "brand_new.cu": ("difference * difference", "difference"),
        package / "brand_new" / "__init__.py": ("2 * grad", "grad"),
    }
    right = {path: path.read_text() for path in wrong}
    try:
        for path, (old, new) in wrong.items():
            assert old in right[path]
            path.write_text(right[path].replace(old, new))
        done = run("-m", "pytest", "-q", "-k", "warp or gradients", "-p", "no:cacheprovider", cwd=package)
        assert "FAILED tests/test_brand_new.py::test_gradients" in done.stdout
        assert "FAILED tests/test_brand_new.py::test_sizes_on_both_sides_of_a_warp_and_a_block[257" in done.stdout
    finally:
        for path, text in right.items():
            path.write_text(text)


def test_an_unsupported_pytorch_gets_a_sentence(own_tests, package):
    done = run("-c", "import torch; torch.__version__ = '2.10.0'; import brand_new", cwd=package)
    assert done.stderr.splitlines()[-1] == (
        "ImportError: brand_new needs PyTorch 2.11 or newer and found 2.10.0: pip install 'torch>=2.11'"
    )


@pytest.mark.skipif(helpers.target != "simulator", reason="a CUDA build needs no simulator")
def test_a_simulator_build_says_so_where_there_is_no_simulator(own_tests, package, tmp_path):
    (library,) = (package / "brand_new").glob("_C*.so")
    copied = tmp_path / "brand_new"
    shutil.copytree(library.parent, copied, ignore=shutil.ignore_patterns("__pycache__"))
    whole, elsewhere = library.read_bytes(), b"libsimt_elsewhere"
    (name,) = set(re.findall(rb"libsimt[^\0/]*\.so", whole))
    (copied / library.name).write_bytes(whole.replace(name, elsewhere[: len(name)].ljust(len(name), b"_")))
    done = run("-c", "import brand_new", cwd=tmp_path)
    assert "ImportError: this brand_new was built for the Kernel Ladder's simulator, on another machine" in done.stderr


# -- The wheel ---------------------------------------------------------------------------------------------------------


def unstable(symbols):
    """Of the symbols that a library wants from others: those of Python, or of PyTorch's C++ interface."""
    return [s for s in symbols if re.match(r"_?Py[A-Z_]|_ZNK?\d*(?:2at|3c10|5torch)\d|_ZNK?(?:2at|3c10|5torch)", s)]


@pytest.mark.skipif(sys.platform != "linux", reason="nm -D reads Linux libraries")
def test_one_wheel_without_unstable_symbols(package, tmp_path):
    command = ("-m", "pip", "wheel", "-q", "--no-build-isolation", "--no-deps", "--no-index", "-w", tmp_path, ".")
    done = run(*command, cwd=package)
    (wheel,) = tmp_path.glob("*.whl")
    label = "+simulator" if helpers.target == "simulator" else ""
    assert wheel.name.startswith(f"brand_new-0.1.0{label}-cp310-abi3-"), done.stderr
    contents = zipfile.ZipFile(wheel)
    contents.extract("brand_new/_C.abi3.so", tmp_path)
    metadata = contents.read(f"brand_new-0.1.0{label}.dist-info/METADATA").decode()
    assert f"\nVersion: 0.1.0{label}\n" in metadata
    library = tmp_path / "brand_new" / "_C.abi3.so"
    listed = running.run("nm", "-D", "--undefined-only", library).stdout
    symbols = [line.split()[-1] for line in listed.splitlines()]
    assert "aoti_torch_get_numel" in symbols
    assert unstable(symbols) == []


def test_unstable_symbols_are_recognised():
    wanted = ["PyErr_SetString", "_Py_NoneStruct", "_ZN3c105ErrorC2ESs", "_ZNK2at10TensorBase4sizeEl", "_ZN2at5emptyE"]
    assert unstable([*wanted, "aoti_torch_get_dim", "_ZNSt6vectorIiE", "cudaLaunchKernel"]) == wanted


# -- What is refused ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["", "2fast", "Gelu", "my-op", "class", "torch", "json", "a b", "../up"])
def test_impossible_names_are_refused(name, tmp_path):
    with pytest.raises(NewOpError):
        check(name)
    with pytest.raises(NewOpError):
        write(name, tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_an_existing_folder_is_not_overwritten(tmp_path):
    (tmp_path / "mine").mkdir()
    with pytest.raises(NewOpError, match="already exists"):
        write("mine", tmp_path)


def test_the_command(tmp_path, capsys):
    assert new_op.main(["mine", "--into", str(tmp_path)]) == 0
    assert f"-m pytest {tmp_path / 'mine'}" in capsys.readouterr().out
    assert new_op.main(["mine", "--into", str(tmp_path)]) == 2
    assert new_op.main([""]) == 2
    assert "make new-op NAME=" in capsys.readouterr().err


def test_a_missing_source_is_named(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"none\.cu"):
        simulator_extension("x._C", [str(tmp_path / "none.cu")])
