"""Turns CUDA C++ into C++ for the host's compiler, line by line in place.

What the headers in `include/` cannot do is done here, on the tokens of the learner's text:

- `kernel<<<grid, block>>>(arguments)` becomes a call of `simt::launcher`;
- `__shared__` declarations become references into the block's shared-memory arena;
- a few names get their simulator twin, of the same length where possible so that the columns of compiler messages
  hold: tensors live on the CPU, so `is_cuda` is `is_cpu`, and the dispatch key CUDA is CPU;
- what the simulator cannot do is refused with a sentence: an error directive that only fires if the compiler gets
  there, so that code behind an `#if` does not count.

Nothing is split at commas and no type is parsed: what stands between the brackets goes to the compiler as it is.
"""

from __future__ import annotations

import re

from helpers.simt.lexer import Token, tokenize

TWINS = {
    "is_cuda": "is_cpu ",
    "kCUDA": "kCPU ",
    "aoti_torch_device_type_cuda": "aoti_torch_device_type_cpu ",
    "__CUDACC__": "__SIMTCC__",
    "__CUDA_ARCH__": "__SIMT_ARCH__",
    "__noinline__": "__attribute__((noinline))",
    "assert": "simt_assert",
}
# Marks a refusal in the compiler's output; `helpers.compile_errors` looks for it.
REFUSAL = "not supported by the simulator: "

_TEXTURES = "textures and surfaces; read the array through a pointer"
_GRAPHS = "CUDA graphs; launch the kernels one after another"
_COOPERATIVE = "grid-wide synchronisation; split the kernel in two launches"
REFUSED = {
    "asm": "inline PTX; keep it behind a function with a second body for the simulator (#ifdef __SIMT__)",
    "cudaLaunchKernel": "cudaLaunchKernel; launch with kernel<<<grid, block>>>(...)",
    "cudaLaunchKernelEx": "cudaLaunchKernelEx; launch with kernel<<<grid, block>>>(...)",
    "cudaLaunchCooperativeKernel": _COOPERATIVE,
    "this_grid": _COOPERATIVE,
    "this_cluster": "thread-block clusters; they need a GPU of compute capability 9.0",
} | dict.fromkeys(("cudaTextureObject_t", "cudaSurfaceObject_t", "cudaCreateTextureObject"), _TEXTURES)
REFUSED |= dict.fromkeys(("__asm__", "__asm"), REFUSED["asm"])
REFUSED |= dict.fromkeys(("cudaGraph_t", "cudaGraphExec_t", "cudaGraphCreate", "cudaStreamBeginCapture"), _GRAPHS)
_TEXTURE_CALL = re.compile(r"(?:tex(?:1D|2D|3D|Cubemap)|surf(?:1D|2D|3D))\w*$|texture$|surface$")
_NESTED_LAUNCH = "dynamic parallelism; launch from the host"
_OPENING = {"(": ")", "[": "]", "{": "}"}


class RewriteError(ValueError):
    """Text that no compiler could make sense of either. `line` counts from 1."""

    def __init__(self, message: str, line: int):
        super().__init__(message)
        self.line = line


def rewrite(source: str, *, cuda_registered: bool = False) -> str:
    """Returns `source` as host C++ with every line where it was.

    `cuda_registered`: some source of the extension registers operators for the key CUDA. Its CPU registrations then
    give way (they go to a key that nothing uses), since in the simulator both would be for CPU tensors.
    Raises RewriteError or LexError with the line.
    """
    return _Rewriter(source, cuda_registered).run()


def registers_cuda(source: str) -> bool:
    """Whether the text registers operators for the dispatch key CUDA."""
    return re.search(r"TORCH_LIBRARY_IMPL\s*\(\s*[^,()]+,\s*CUDA\s*,", source) is not None


class _Rewriter:
    def __init__(self, source: str, cuda_registered: bool):
        self.source = source
        self.cuda_registered = cuda_registered
        self.tokens = [t for t in tokenize(source) if not t.blank]
        self.edits: list[tuple[int, int, str]] = []  # start, end, replacement; insertions have start == end
        self.shared_count = 0

    def run(self) -> str:
        device_until = -1  # index of the brace that closes the innermost device function
        scopes: list[str] = []  # what each open brace belongs to: "namespace" or "other"
        for i, token in enumerate(self.tokens):
            text = token.text
            if text == "{":
                scopes.append("namespace" if self._opens_namespace(i) else "other")
            elif text == "}" and scopes:
                scopes.pop()
            elif text == "<<<":
                self._launch(i, in_device_code=i < device_until)
            elif token.kind != "name":
                continue
            elif text in ("__global__", "__device__"):
                device_until = max(device_until, self._body_end(i))
            elif text == "__shared__":
                self._shared(i, at_namespace_scope="other" not in scopes)
            elif text in ("TORCH_LIBRARY_IMPL", "STABLE_TORCH_LIBRARY_IMPL"):
                self._registration(i)
            elif text == "CUDA" and self._text(i - 1) == "::" and self._text(i - 2) in ("DeviceType", "DispatchKey"):
                self._replace(token, "CPU ")
            elif text == "cuda" and self._text(i - 1) in (".", "->") and self._text(i + 1) == "(":
                self._replace(token, "cpu ")
            elif text in TWINS and not (text == "assert" and self._text(i + 1) != "("):
                self._replace(token, TWINS[text])
            elif text in REFUSED:
                self._refuse(token, REFUSED[text])
            elif _TEXTURE_CALL.match(text) and self._text(i + 1) in ("(", "<"):
                self._refuse(token, _TEXTURES)
        return self._apply()

    # -- launches --------------------------------------------------------------------------------------------------

    def _launch(self, i: int, in_device_code: bool) -> None:
        opening = self.tokens[i]
        first = self._callee_start(i)
        closing = self._find(i + 1, ">>>")
        if first == i or closing is None:
            what = "has no kernel before it" if first == i else "has no matching `>>>`"
            raise RewriteError(f"the launch's `<<<` {what}", opening.line)
        if self._text(closing + 1) != "(":
            raise RewriteError("the launch has no argument list: `>>>` must be followed by `(`", opening.line)
        if in_device_code:
            self._refuse(self.tokens[first], _NESTED_LAUNCH)
        self._null_arguments(closing + 1)
        begin = self.tokens[first].start
        callee = re.sub(r"\s+|\\\r?\n", " ", self.source[begin : opening.start]).strip()
        broken = self.source[begin : opening.end]
        kept = "".join(re.findall(r"\\\r?\n|\n", broken))  # as many lines as before
        name = callee.replace("\\", "").replace('"', "'")
        self.edits.append(
            (begin, opening.end, f'::simt::launcher({{"{name}", __FILE__, __LINE__}}, ::simt::Config({kept}')
        )
        body = f"), [&](auto&... simt_arguments) {{ {callee}(simt_arguments...); }})"
        self._replace(self.tokens[closing], body)

    def _callee_start(self, i: int) -> int:
        """Index of the first token of the kernel's name that ends just before token i: `a::b<c>`, `(*f)`, `table[k]`."""
        j = i
        while j > 0:
            text, kind = self._text(j - 1), self.tokens[j - 1].kind
            if text in (">", ">>", ">>>"):
                j = self._back_over_template(j - 1)
            elif text in (")", "]"):
                j = self._back_over_brackets(j - 1)
            elif kind == "name" and text not in ("return", "else", "do", "case"):
                j -= 1
            else:
                break
            before = self._text(j - 1)
            if before == "template":
                j, before = j - 1, self._text(j - 2)
            if before in ("::", ".", "->"):
                j -= 1
                if j > 0 and (self.tokens[j - 1].kind == "name" or self._text(j - 1) in (">", ")", "]")):
                    continue
                break
            if text in (">", ">>", ">>>", ")", "]") and j > 0 and self.tokens[j - 1].kind == "name":
                if self._text(j - 1) not in ("return", "else", "do", "case") and text != ")":
                    continue
            break
        return j

    def _back_over_template(self, j: int) -> int:
        depth = 0
        while j >= 0:
            text = self._text(j)
            if text in (")", "]", "}"):
                j = self._back_over_brackets(j)
            elif text and set(text) == {">"}:
                depth += len(text)
            elif text and set(text) == {"<"}:
                depth -= len(text)
                if depth <= 0:
                    return j
            elif text in (";", "{"):
                break
            j -= 1
        raise RewriteError("cannot find where the kernel's template arguments begin", self.tokens[max(j, 0)].line)

    def _back_over_brackets(self, j: int) -> int:
        depth = 0
        for k in range(j, -1, -1):
            text = self._text(k)
            depth += text in (")", "]", "}")
            depth -= text in ("(", "[", "{")
            if depth == 0:
                return k
        raise RewriteError(f"`{self._text(j)}` has no opening bracket", self.tokens[j].line)

    def _null_arguments(self, i: int) -> None:
        """NULL as a whole argument becomes nullptr: it is forwarded, where the literal would turn into an integer."""
        depth = 0
        for k in range(i, self._match(i)):
            depth += (self._text(k) in _OPENING) - (self._text(k) in _OPENING.values())
            alone = self._text(k - 1) in ("(", ",") and self._text(k + 1) in (")", ",")
            if self._text(k) == "NULL" and depth == 1 and alone:
                self._replace(self.tokens[k], "nullptr")

    # -- shared memory ---------------------------------------------------------------------------------------------

    def _shared(self, i: int, at_namespace_scope: bool) -> None:
        """`__shared__ T a[m], b;` -> `typedef T A[m], B; auto& a = <place of an A in the arena>; auto& b = ...;`"""
        first = i
        while self._text(first - 1) in ("extern", "static", "volatile", "const"):
            first -= 1
        last = self._find(i + 1, ";")
        if last is None:
            raise RewriteError("the __shared__ declaration never ends: `;` is missing", self.tokens[i].line)
        dynamic, alignment, declared, text = False, "1", [], []
        k, expecting_name = first, True
        position = self.tokens[first].start
        while k < last:
            token = self.tokens[k]
            word = token.text
            text.append(self.source[position : token.start])
            position = token.end
            if word in ("__shared__", "static", "extern"):
                dynamic = dynamic or word == "extern"
            elif word in ("__align__", "alignas") and self._text(k + 1) == "(":
                end = self._match(k + 1)
                alignment = self.source[self.tokens[k + 1].start : self.tokens[end].end]
                k, position = end, self.tokens[end].end
            elif word in _OPENING or (word == "<" and self.tokens[k - 1].kind == "name"):
                end = self._match(k) if word in _OPENING else self._template_end(k)
                inner = [t for t in range(k, end) if self.tokens[t].kind == "name"]
                if word == "(" and expecting_name and inner:  # `float (*rows)[4]`
                    raise RewriteError("write the __shared__ declaration with a typedef, not with brackets", token.line)
                text.append(self.source[token.start : self.tokens[end].end])
                k, position = end, self.tokens[end].end
            elif word == ",":
                expecting_name = True
                text.append(word)
            elif word == "=":
                raise RewriteError("a __shared__ variable cannot have an initialiser", token.line)
            elif token.kind == "name" and expecting_name and self._text(k + 1) in ("[", ",", ";"):
                self.shared_count += 1
                alias = f"simt_shared_{self.shared_count}_t"
                declared.append((word, alias))
                text.append(alias)
                expecting_name = False
            else:
                text.append(word)
            k += 1
        if not declared:
            raise RewriteError("cannot find the name that the __shared__ declaration declares", self.tokens[i].line)
        code = "typedef " + "".join(text).strip() + ";"
        for name, alias in declared:
            if at_namespace_scope:
                if not dynamic:
                    raise RewriteError("a __shared__ variable must be declared in a kernel", self.tokens[i].line)
                code += f" static const ::simt::DynamicShared<{alias}> {name}{{}};"
            elif dynamic:
                code += f" auto& {name} = *reinterpret_cast<{alias}*>(::simt::shared_dynamic());"
            else:
                code += (
                    f" static ::simt::SharedSite {alias}_site; auto& {name} = *static_cast<{alias}*>("
                    f"::simt::shared_static(&{alias}_site, sizeof({alias}), "
                    f"alignof({alias}) > {alignment} ? alignof({alias}) : {alignment}));"
                )
        code += "\n" * (self.source.count("\n", self.tokens[first].start, self.tokens[last].end) - code.count("\n"))
        self.edits.append((self.tokens[first].start, self.tokens[last].end, code))

    def _template_end(self, i: int) -> int:
        depth = 0
        for k in range(i, len(self.tokens)):
            text = self._text(k)
            if set(text) == {"<"}:
                depth += len(text)
            elif set(text) == {">"}:
                depth -= len(text)
                if depth <= 0:
                    return k
        raise RewriteError("template arguments never end", self.tokens[i].line)

    # -- names -----------------------------------------------------------------------------------------------------

    def _registration(self, i: int) -> None:
        if self._text(i + 1) != "(":
            return
        for k in range(i + 2, self._match(i + 1)):
            if self._text(k) == "CUDA":
                self._replace(self.tokens[k], "CPU ")
            elif self._text(k) == "CPU" and self.cuda_registered:
                self._replace(self.tokens[k], "PrivateUse1")

    def _opens_namespace(self, i: int) -> bool:
        j = i - 1
        while j >= 0 and (self.tokens[j].kind == "name" or self._text(j) == "::"):
            if self._text(j) == "namespace":
                return True
            j -= 1
        return self._text(i - 1).startswith('"') and self._text(i - 2) == "extern"

    def _body_end(self, i: int) -> int:
        """Index of the brace that ends the body of the function or lambda declared at token i; i if it has none."""
        if "__host__" in (self._text(i - 1), self._text(i + 1)):
            return i
        k = i + 1
        while k < len(self.tokens):
            text = self._text(k)
            if text in (";", "=", ")"):
                return i
            if text == "{":
                return self._match(k)
            k = self._match(k) + 1 if text in ("(", "[") else k + 1
        return i

    def _refuse(self, token: Token, sentence: str) -> None:
        self.edits.append((token.start, token.start, f'_Pragma("GCC error \\"{REFUSAL}{sentence}\\"") '))

    # -- tokens and edits ------------------------------------------------------------------------------------------

    def _text(self, i: int) -> str:
        return self.tokens[i].text if 0 <= i < len(self.tokens) else ""

    def _match(self, i: int) -> int:
        """Index of the bracket that closes the one at token i."""
        depth = 0
        for k in range(i, len(self.tokens)):
            text = self._text(k)
            depth += text in _OPENING
            depth -= text in _OPENING.values()
            if depth == 0:
                return k
        raise RewriteError(f"`{self._text(i)}` is never closed", self.tokens[i].line)

    def _find(self, i: int, wanted: str) -> int | None:
        """Index of the next `wanted` outside brackets that open after token i; None if there is none."""
        while i < len(self.tokens):
            text = self._text(i)
            if text == wanted:
                return i
            if text in _OPENING.values():
                return None
            i = self._match(i) + 1 if text in _OPENING else i + 1
        return None

    def _replace(self, token: Token, text: str) -> None:
        self.edits.append((token.start, token.end, text))

    def _apply(self) -> str:
        pieces, position = [], 0
        for start, end, text in sorted(self.edits, key=lambda edit: (edit[0], edit[1])):
            if start < position:  # inside text that is already replaced as a whole
                continue
            pieces += [self.source[position:start], text]
            position = end
        return "".join(pieces) + self.source[position:]
