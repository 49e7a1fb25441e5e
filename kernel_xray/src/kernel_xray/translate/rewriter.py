"""Turns CUDA C++ into C++ for the host's compiler, line by line in place.

It edits the tokens of the learner's text where the headers in `include/` cannot help:

- launches (launches.py), `__shared__` declarations (shared_memory.py) and inline PTX (ptx.py) become calls of the
  run-time;
- kernels that are launched through pointers are remembered with their types (kernel_pointers.py), and `__device__`
  variables by their addresses (device_variables.py);
- uses of `threadIdx` and its like become calls (names.py);
- a kernel's bounds on its registers, and its clusters, become a call at its beginning (launch_bounds.py);
- calls of member templates get the word `template`, which g++ needs and nvcc does not (member_templates.py);
- `return;` in `int main`, of which nvcc only warns, returns 0; a macro that stands for `#pragma unroll` gets no text;
  `x.operator __half()` is a cast;
- a few names get their simulator twin, of the same length where possible so that the columns in compiler messages
  stay right: tensors live on the CPU, so `is_cuda` is `is_cpu`, and the dispatch key CUDA is CPU;
- features that the simulator lacks are refused with a sentence (refusals.py).
"""

import re
from collections import Counter
from collections.abc import Mapping

from kernel_xray.translate.device_variables import rewrite_device_variable
from kernel_xray.translate.edits import RewriteError, Text
from kernel_xray.translate.kernel_pointers import BEGINNINGS, KernelPointers
from kernel_xray.translate.launch_bounds import CALLS as BOUNDS
from kernel_xray.translate.launch_bounds import rewrite_bounds
from kernel_xray.translate.launch_macros import brings_clusters, define_clusters, launch_macros, with_launches
from kernel_xray.translate.launches import Declared, launch_bracket, rewrite_launch
from kernel_xray.translate.lexer import DEFINE, Token
from kernel_xray.translate.member_templates import calls_member_template, member_templates
from kernel_xray.translate.mutual_calls import with_calls_apart
from kernel_xray.translate.names import BUILT_IN, is_use
from kernel_xray.translate.ptx_macros import ASM, Macro, Macros
from kernel_xray.translate.refusals import CUBE_MAP_CALL, CUBE_MAPS, TEXTURES, WAIT_IN_KERNEL, refuse
from kernel_xray.translate.shared_memory import rewrite_shared, shared_words
from kernel_xray.translate.twins import TWINS

__all__ = ["RewriteError", "defined_kernels", "registers_cuda", "rewrite"]

_HALVES = ("__half", "__nv_bfloat16")
_TELLING = ("(", "<", "<<", "<<<", "{", "}", "#")  # where a cast, a launch, a scope or a directive begins or ends

# A kernel's name, and what follows its parameters: the beginning of its body, or the end of its declaration.
# The brackets of attributes match in one way alone: a text that defines macros has many, and no end of a declaration.
_INSIDE = r"(?:[^;{}()]|\((?:[^;{}()]|\([^;{}()]*\))*\))*"
_KERNEL = re.compile(rf"__global__\b(?:__\w+\s*\({_INSIDE}\)|[^;{{}}()])*?\b(?!__)(\w+)\s*\([^;{{}}]*\)\s*([;{{])")


def rewrite(
    source: str,
    *,
    cuda_registered: bool = False,
    kernels: Mapping[str, int] | None = None,
    macros: Macros | None = None,
    launches: Mapping[str, Macro] | None = None,
) -> str:
    """Returns `source` as host C++ with every line where it was.

    `cuda_registered`: a source of the extension registers operators for the key CUDA. The extension's CPU registrations
    then move to a key that nothing uses, because in the simulator both would serve CPU tensors.
    `kernels`: the kernels of the program's files, each with the number of its definitions (`defined_kernels`).
    `macros` and `launches`: those of the program's files; by default, of this one.
    Raises RewriteError or LexError with the line.
    """
    source = with_calls_apart(source)
    launches = launch_macros([source]) if launches is None else launches
    source = with_launches(source, launches)
    text = Text(source)
    macros = macros or Macros([source])
    declared, shared = Declared.of(text, kernels or {}), shared_words(text)
    members = member_templates(source)
    pointers = KernelPointers(text, declared.named)
    device_until = -1  # index of the brace that closes the innermost device function
    scopes = Scopes()
    parameters: set[str] = set()  # of the macro whose body is being rewritten
    stands_for_asm = False  # that macro; its uses are rewritten in its place
    outer_shared: set[str] = set()  # names of __shared__ variables outside functions
    for i, token in enumerate(text.tokens):
        word = token.text
        if token.kind in ("punct", "number", "string") and word not in _TELLING:
            continue
        if word in BEGINNINGS:
            pointers.visit(i)
        if word in ("{", "}", "#"):
            scopes.pass_token(text, i)
        if token.kind == "define":
            parameters = text.parameters(i)
            stands_for_asm = _macro_name(token) in macros.statements
            _rename_macro(text, token)
            _drop_pragma(text, i)
            if brings_clusters(_macro_name(token), launches):
                define_clusters(text, i)
        elif word in ("<<", "<<<") and (last := launch_bracket(text, i)) is not None:
            rewrite_launch(text, i, last, declared)
        elif token.kind != "name" or (text.in_macro(i) and (stands_for_asm or word in parameters)):
            continue
        elif token.directive and not text.in_macro(i):  # the condition of an #if
            if word in TWINS:
                text.replace(token, TWINS[word])
        elif word in ("__global__", "__device__", "__managed__"):
            device_until = max(device_until, _body_end(text, i))
            if word != "__global__" and scopes.at_namespace and not text.in_macro(i):
                rewrite_device_variable(text, i)
        elif word in BOUNDS:
            rewrite_bounds(text, i)
        elif word in shared:
            outer_shared |= set(rewrite_shared(text, i, scopes.at_namespace and not text.in_macro(i)))
        elif word in ("TORCH_LIBRARY_IMPL", "STABLE_TORCH_LIBRARY_IMPL"):
            _rewrite_registration(text, i, cuda_registered)
        elif word == "cudaDeviceSynchronize" and i < device_until:
            refuse(text, token, WAIT_IN_KERNEL)
        elif word in ASM or (word in macros.statements and text.text(i + 1) == "("):
            from kernel_xray.translate.ptx import rewrite_asm  # makes a table of rules, which few sources need

            rewrite_asm(text, i, macros, text.in_macro(i) or not scopes.at_namespace)
        elif word in TEXTURES and _declares_template(text, i):
            refuse(text, token, TEXTURES[word])
        elif CUBE_MAP_CALL.match(word) and text.text(i + 1) in ("(", "<"):
            refuse(text, token, CUBE_MAPS)
        elif word in BUILT_IN and is_use(text, i):
            text.replace(token, BUILT_IN[word])
        elif calls_member_template(text, i, members):
            text.replace(token, f"template {word}")
        elif word in outer_shared and is_use(text, i):
            text.replace(token, f"::simt::here({word})")
        elif word == "operator" and text.text(i + 1) in _HALVES:
            _cast(text, i)
        elif word == "main" and text.text(i - 1) == "int" and scopes.at_namespace:
            _return_zero(text, i)
        elif twin := _twin(text, i):
            text.replace(token, twin)
    return text.result()


class Scopes:
    """The braces that are open, outside macros: whether only namespaces are. The branches of an #if begin alike."""

    def __init__(self) -> None:
        self._open: list[bool] = []  # for each brace, whether it is a namespace's
        self._begun: list[list[bool]] = []  # what was open at each #if

    @property
    def at_namespace(self) -> bool:
        return all(self._open)

    def pass_token(self, text: Text, i: int) -> None:
        word, directive = text.text(i), text.tokens[i].directive
        if word == "#" and directive.startswith("if"):
            self._begun.append(list(self._open))
        elif word == "#" and directive.startswith("el") and self._begun:
            self._open = list(self._begun[-1])
        elif word == "#" and directive == "endif" and self._begun:
            self._begun.pop()
        elif word == "{" and not directive:
            self._open.append(_opens_namespace(text, i))
        elif word == "}" and not directive and self._open:
            self._open.pop()


def registers_cuda(source: str) -> bool:
    """Whether the text registers operators for the dispatch key CUDA."""
    return re.search(r"TORCH_LIBRARY_IMPL\s*\(\s*[^,()]+,\s*CUDA\s*,", source) is not None


def defined_kernels(source: str) -> Counter[str]:
    """How often the text defines a kernel of each name; 0 if it only declares one."""
    found: Counter[str] = Counter()
    for name, after in re.findall(_KERNEL, source):
        found[name] += after == "{"
    return found


def _twin(text: Text, i: int) -> str | None:
    """The simulator's name for the name at token i; None if it keeps its name."""
    word = text.text(i)
    if word == "CUDA" and text.text(i - 1) == "::" and text.text(i - 2) in ("DeviceType", "DispatchKey"):
        return "CPU "
    if word == "cuda" and text.text(i - 1) in (".", "->") and text.text(i + 1) == "(":
        return "cpu "
    return TWINS.get(word)


def _macro_name(head: Token) -> str:
    match = DEFINE.fullmatch(head.text)
    return match["name"] if match else ""


def _rename_macro(text: Text, head: Token) -> None:
    """Gives a macro that has the name of a twin the twin's name, as its uses get it."""
    name = _macro_name(head)
    twin = TWINS.get(name, "").strip()
    if twin.isidentifier():
        text.replace(head, head.text.replace(name, twin, 1))


def _drop_pragma(text: Text, i: int) -> None:
    """Empties the macro whose head is token i if it stands for `#pragma unroll`, which nvcc takes anywhere."""
    body = text.tokens[i + 1 : text.limit(i + 1)]
    if [token.text for token in body[:2]] == ["#", "pragma"] and "unroll" in "".join(token.text for token in body[2:3]):
        for token in body:
            text.replace(token, "")


def _cast(text: Text, i: int) -> None:
    """Makes `x.operator __half()`, whose `operator` is token i, a cast: PyTorch's types have it with nvcc alone."""
    tokens = text.tokens[max(i - 2, 0) : i + 4]
    alone = tokens[0].kind == "name" and text.text(i - 3) not in (".", "->", "::")
    if alone and text.text(i - 1) == "." and (text.text(i + 2), text.text(i + 3)) == ("(", ")"):
        text.replace_span(tokens[0].start, tokens[-1].end, f"static_cast<{text.text(i + 1)}>({tokens[0].text})")


def _return_zero(text: Text, i: int) -> None:
    """Gives 0 to each `return;` of the function main whose name is token i; lambdas in it keep theirs."""
    end = _body_end(text, i)
    k = text.find(i + 1, "{") or end
    while k < end:
        if text.text(k) == "[":
            k = _lambda_end(text, k)
        elif text.text(k) == "return" and text.text(k + 1) == ";":
            text.replace(text.tokens[k], "return 0")
        k += 1


def _lambda_end(text: Text, i: int) -> int:
    """Index of the brace that ends the lambda which begins at token i; of the `]` if none does."""
    closing = k = text.match(i)
    while text.text(k + 1) not in ("{", "}", ";", "", ",", ")", "]", "="):
        k = text.match(k + 1) if text.text(k + 1) == "(" else k + 1
    return text.match(k + 1) if text.text(k + 1) == "{" else closing


def _rewrite_registration(text: Text, i: int, cuda_registered: bool) -> None:
    if text.text(i + 1) != "(":
        return
    for k in range(i + 2, text.match(i + 1)):
        if text.text(k) == "CUDA":
            text.replace(text.tokens[k], "CPU ")
        elif text.text(k) == "CPU" and cuda_registered:
            text.replace(text.tokens[k], "PrivateUse1")


def _declares_template(text: Text, i: int) -> bool:
    """Whether a declaration begins at token i with a template's name: `texture<float> t;`, not `x = texture < 2;`."""
    before = text.tokens[i - 1] if i else None
    begins = before is None or before.kind in ("include", "directive")
    begins = begins or text.text(i - 1) in (";", "{", "}", ":", "static", "extern", "const", "__device__")
    return begins and text.text(i + 1) == "<"


def _opens_namespace(text: Text, i: int) -> bool:
    j = i - 1
    while j >= 0 and (text.tokens[j].kind == "name" or text.text(j) == "::"):
        if text.text(j) == "namespace":
            return True
        j -= 1
    return text.text(i - 1).startswith('"') and text.text(i - 2) == "extern"


def _body_end(text: Text, i: int) -> int:
    """Index of the brace that ends the body of the function or lambda declared at token i; i if none is found."""
    if "__host__" in (text.text(i - 1), text.text(i + 1)):
        return i
    k = i + 1
    while k < len(text.tokens):
        word = text.text(k)
        if word in (";", "=", ")"):
            return i
        try:
            if word == "{":
                return text.match(k)
            k = text.match(k) + 1 if word in ("(", "[") else k + 1
        except RewriteError:  # branches of an #if open more brackets than one closes
            return i
    return i
