"""Sources given as strings: written to files, with the bindings that PyTorch would generate."""

import json
from collections.abc import Sequence
from pathlib import Path


def bindings(functions: str | Sequence[str] | dict[str, str], *, wrapped: bool) -> str:
    """A PYBIND11_MODULE for the functions; `wrapped`: their C++ exceptions arrive as PyTorch's own errors do."""
    if isinstance(functions, str):
        functions = [functions]
    if not isinstance(functions, dict):
        if not isinstance(functions, (list, tuple)):
            raise TypeError(f"functions is {functions!r}; give a name, a list of names or a dict of docstrings")
        functions = {f: f for f in functions}
    lines = ["PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {"]
    for function, doc in functions.items():
        bound = f"torch::wrap_pybind_function({function})" if wrapped else f"&{function}"
        lines.append(f"  m.def({json.dumps(function)}, {bound}, {json.dumps(doc)});")
    return "\n".join([*lines, "}"])


def write_sources(folder: Path, name: str, cpp: list[str], cuda: list[str], *, implicit_headers: bool) -> list[Path]:
    """Writes the strings to files; line numbers in messages count from the first line of the string."""
    cpp_head = "#include <torch/extension.h>\n" if implicit_headers else ""
    cuda_head = "#include <torch/types.h>\n#include <cuda.h>\n#include <cuda_runtime.h>\n" if implicit_headers else ""
    paths = []
    for suffix, head, texts in ((".cpp", cpp_head, cpp), (".cu", cuda_head, cuda)):
        if not any(text.strip() for text in texts):
            continue
        raw = folder / f"{name}{suffix}"
        body = "\n".join(texts)
        _write_if_changed(raw, body)
        path = raw
        if head:
            path = folder / f"main{suffix}"
            _write_if_changed(path, f'{head}#line 1 "{raw}"\n{body}\n')
        paths.append(path)
    return paths


def _write_if_changed(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    if not path.is_file() or path.read_text() != text:
        path.write_text(text)
