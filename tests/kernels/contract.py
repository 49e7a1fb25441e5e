"""The contract: what every operator of the course must do, whatever it computes.

A point is a function that takes an `Operator` and raises ContractBroken if the operator breaks it; POINTS has all of
them. contracted.py makes the operators of the catalogue, test_contract.py holds each to every point and rejects planted
wrong ones.

"Refused" means: a RuntimeError, TypeError or ValueError whose message says "NAME must ...", with the name of an
argument at fault. A wrong result, or an error that names no argument, breaks the contract.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property

import torch

import helpers
from helpers.ladder.checking.checker import check
from kernel_xray.runtime.streams import Watched, side_stream

# Straddle warp and block; odd; 766 vectors of 4 and 3, which is 3 blocks and a thread; large.
SIZES = (0, 1, 31, 32, 33, 255, 256, 257, 1001, 3067, 100_003)
NAMES = ("float64", "float32", "float16", "bfloat16", "int64", "int32", "uint8", "bool", "complex64")
ALL_DTYPES = [getattr(torch, name) for name in NAMES]
Tensors = Sequence[torch.Tensor]


class ContractBroken(AssertionError):
    """An operator breaks the contract. The message says which point, and with which input."""


class NotHere(Exception):
    """The operator is excused from the point, or this machine cannot check the point; the message says why."""


@dataclass(frozen=True)
class Operator:
    """Everything the contract needs of an operator.

    name            in messages
    load            builds the operator and returns the function to call
    reference       the same computation in PyTorch; it gets float64
    arguments       the names of the tensor arguments, in order, as in the operator's messages
    dtypes          that it takes; it must refuse all others
    shape           (size, position of the argument) -> its shape; by default 1-D
    spread          the standard deviation of the arguments
    elementwise     whether all arguments have one shape, and any shape will do
    sizes           to try; `shape` defines what a size means
    accumulation    size -> how many terms an output element adds up, for the tolerance
    widened         positions of results that must be float32 where the arguments have 16 bits
    differentiable  loads the differentiable form, which takes float64 among other dtypes
    overload        loads the registered operator, with fake and autograd, for opcheck
    every_kernel    makes arguments for calls that together run each of its kernels, if one call does not
    excused         point -> the reason why the operator need not keep it
    """

    name: str
    load: Callable[[], Callable]
    reference: Callable
    arguments: tuple[str, ...]
    dtypes: tuple[torch.dtype, ...] = (torch.float32,)
    shape: Callable[[int, int], Sequence[int]] = lambda size, position: (size,)
    spread: float = 3
    elementwise: bool = True
    sizes: tuple[int, ...] = SIZES
    accumulation: Callable[[int], int] = lambda size: 1
    widened: Sequence[int] = ()
    differentiable: Callable[[], Callable] | None = None
    overload: Callable[[], torch._ops.OpOverload] | None = None
    every_kernel: Callable[[], Iterable[Sequence[torch.Tensor]]] = lambda: ()
    excused: Mapping[str, str] = field(default_factory=dict)

    @cached_property
    def function(self) -> Callable:
        return self.load()

    def inputs(self, size: int, dtype: torch.dtype, device: torch.device | str = helpers.device) -> list[torch.Tensor]:
        """Arguments of this size, the same at every call."""
        return [self._argument(size, dtype, i).to(device) for i in range(len(self.arguments))]

    def _argument(self, size: int, dtype: torch.dtype, number: int) -> torch.Tensor:
        generator = torch.Generator().manual_seed(number)
        values = torch.randn(self.shape(size, number), generator=generator, dtype=torch.float64)
        return (values.abs() * 10 if dtype in (torch.uint8, torch.bool) else values * self.spread).to(dtype)


# -- Shared by the points ----------------------------------------------------------------------------------------------


def agree(operator: Operator, inputs: Tensors, case: str, size: int = 1, reference: Callable | None = None) -> None:
    """Checks the operator's result against a reference, by default its own. Raises ContractBroken."""
    options = {"reference": reference or operator.reference, "accumulation": operator.accumulation(size)}
    options["name"] = operator.name
    with breaks_if_raised(f"{operator.name}, {case}"):
        check(narrowed(operator) if operator.widened else operator.function, *inputs, **options)


def on_the_cpu(reference: Callable) -> Callable:
    """The reference for tensors of any device, computed on the CPU.

    PyTorch's fused CUDA kernels differ where a sum is infinite: that of RMSNorm makes a whole row NaN that divided by
    infinity would be 0 (2.11, on an H200).
    """

    def call(*inputs: torch.Tensor) -> list[torch.Tensor]:
        return [x.to(inputs[0].device) for x in outputs(reference(*(x.cpu() for x in inputs)))]

    return call


def narrowed(operator: Operator) -> Callable:
    """The operator's function with all results in the dtype of its first argument, as `check` wants them."""
    function = operator.function

    def call(*inputs: torch.Tensor) -> list[torch.Tensor]:
        results, dtype = outputs(function(*inputs)), inputs[0].dtype
        wide = torch.promote_types(dtype, torch.float32)
        wanted = [wide if i in operator.widened else dtype for i in range(len(results))]
        if (got := [x.dtype for x in results]) != wanted:
            raise helpers.CheckFailed(f"{operator.name}: wrong dtypes: expected {wanted}, got {got}")
        return [x.to(dtype) for x in results]

    return call


def refused(operator: Operator, inputs: Sequence[torch.Tensor], at: Sequence[int], case: str) -> None:
    """Checks that the operator refuses the inputs and blames an argument at one of the positions `at`."""
    function = operator.function
    try:
        result = function(*inputs)
    except helpers.KernelFault as error:
        raise ContractBroken(f"{operator.name}, {case}: the kernel ran and failed: {error}") from error
    except (RuntimeError, TypeError, ValueError) as error:
        if any(blames(str(error), operator.arguments[i]) for i in at):
            return
        names = " or ".join(operator.arguments[i] for i in at)
        raise ContractBroken(f"{operator.name}, {case}: refused without saying '{names} must ...': {error}") from error
    raise ContractBroken(f"{operator.name}, {case}: neither refused nor handled; got {describe(result)}")


def handled_or_refused(operator: Operator, inputs: Tensors, at: Sequence[int], case: str, size: int = 1) -> None:
    """Checks that the result is right or the inputs are refused."""
    try:
        agree(operator, inputs, case, size)
    except ContractBroken as broken:
        if isinstance(broken.__cause__, helpers.CheckFailed):
            raise
        refused(operator, inputs, at, case)


@contextmanager
def breaks_if_raised(case: str) -> Iterator[None]:
    """Whatever is raised within becomes a ContractBroken that says of which case."""
    try:
        yield
    except Exception as error:
        raise ContractBroken(f"{case}: {type(error).__name__}: {error}") from error


def differentiable_inputs(operator: Operator, size: int) -> Iterator[tuple[str, list[torch.Tensor]]]:
    """Arguments in float64, of which all require a gradient, then each alone; and the names of these."""
    every = range(len(operator.arguments))
    for wanted in (every, *([i] for i in every)):
        inputs = operator.inputs(size, torch.float64)
        for i in wanted:
            inputs[i].requires_grad_()
        yield ", ".join(operator.arguments[i] for i in wanted), inputs


def blames(message: str, name: str) -> bool:
    """Whether a message says "NAME must" or "NAME and OTHER must"; elsewhere "a" is only an article."""
    return bool(re.search(rf"(?:^|[,:;] )(?:\w+ and )?{re.escape(name)}(?: and \w+)? must\b", message, re.MULTILINE))


def describe(result: object) -> str:
    return f"a {result.dtype} tensor" if isinstance(result, torch.Tensor) else type(result).__name__


def same_bits(x: torch.Tensor, y: torch.Tensor) -> bool:
    return torch.equal(x.contiguous().view(torch.uint8), y.contiguous().view(torch.uint8))


def outputs(result: object) -> list[torch.Tensor]:
    return [result] if isinstance(result, torch.Tensor) else list(result)


def needs_gpu() -> None:
    if helpers.target != "gpu":
        raise NotHere("there is no GPU here")


def on_a_busy_stream(function: Callable, values: Sequence[torch.Tensor]) -> list[torch.Tensor]:
    """Results on a side stream, where on a GPU the inputs get their values only 0.1 s later."""
    if helpers.target != "gpu":
        with side_stream():
            return outputs(function(*values))
    late = [torch.zeros_like(x) for x in values]
    torch.cuda.synchronize()
    with torch.cuda.stream(torch.cuda.Stream()):
        torch.cuda._sleep(200_000_000)  # clock cycles: a busy host launches late
        for x, y in zip(late, values, strict=True):
            x.copy_(y)
        results = outputs(function(*late))
    torch.cuda.synchronize()
    return results


def stray_launches(function: Callable, calls: Iterable[Sequence[torch.Tensor]]) -> Watched:
    """What the simulator sees of launches in another stream than the current one, whichever kernel a call takes."""
    with side_stream() as watched:
        for inputs in calls:
            function(*inputs)
    return watched


# -- The points --------------------------------------------------------------------------------------------------------


def sizes(operator: Operator) -> None:
    """Correct for no element, one, many, and sizes on both sides of a warp and a block; for any shape."""
    for size in operator.sizes:
        agree(operator, operator.inputs(size, operator.dtypes[0]), f"size {size}", size)
    if operator.elementwise:
        for shape in ((3, 5, 7), (1, 257), (257, 1), (2, 0, 3), ()):
            inputs = operator.inputs(torch.Size(shape).numel(), operator.dtypes[0])
            agree(operator, [x.view(shape) for x in inputs], f"shape {shape}")
    else:
        inputs = operator.inputs(257, operator.dtypes[0])
        rows = len(inputs[0])
        agree(operator, [x[:0] if len(x) == rows else x for x in inputs], "no rows", 257)


def views(x: torch.Tensor) -> Iterator[tuple[str, torch.Tensor]]:
    """Views with the values of x (1-D or more, at least 2 elements) that begin inside their storage or have strides.

    Memory between the elements holds NaN, which exposes a kernel that reads it.
    """
    for offset in (1, 2, 4):  # of these, only 4 floats and 2 or 4 doubles are a multiple of 16 bytes
        flat = x.new_full((x.numel() + offset,), float("nan"))
        view = flat[offset:].view(x.shape)
        yield f"storage offset {offset}", view.copy_(x)
    wide = x.new_full((*x.shape[:-1], 2 * x.shape[-1]), float("nan"))
    yield "every other element", wide[..., ::2].copy_(x)
    if x.dim() > 1:
        yield "transposed", x.transpose(0, 1).contiguous().transpose(0, 1)
    yield "expanded", x[..., :1].expand(x.shape)


def layouts(operator: Operator) -> None:
    """Strided tensors, and tensors that begin inside their storage, are handled or refused, never misread."""
    for dtype in operator.dtypes:
        inputs = operator.inputs(60, dtype)
        for shape in [(60,), (6, 10)] if operator.elementwise else [None]:
            shaped = [x.view(shape) for x in inputs] if shape else inputs
            for i, name in enumerate(operator.arguments):
                for kind, view in views(shaped[i]):
                    case = f"{kind} in {name}, {dtype}"
                    handled_or_refused(operator, [*shaped[:i], view, *shaped[i + 1 :]], [i], case, 60)
            case = f"every argument transposed, {dtype}"
            if shape and len(shape) > 1:
                turned = [x.t().contiguous().t() for x in shaped]
                handled_or_refused(operator, turned, range(len(turned)), case, 60)


def shapes(operator: Operator) -> None:
    """Arguments of different shapes are handled by PyTorch's rules or refused, even with equal element counts."""
    if not operator.elementwise or len(operator.arguments) < 2:
        raise NotHere("its arguments have different shapes by design")
    for first, second in (((4, 1), (1, 4)), ((12,), (1,)), ((3, 4), (4, 3)), ((12,), (3, 4)), ((12,), (11,))):
        for i, name in enumerate(operator.arguments):
            others = [j for j in range(len(operator.arguments)) if j != i]
            inputs = [x.view(first) for x in operator.inputs(torch.Size(first).numel(), operator.dtypes[0])]
            inputs[i] = operator.inputs(torch.Size(second).numel(), operator.dtypes[0])[i].view(second)
            handled_or_refused(operator, inputs, [i, *others], f"{name} of shape {second}, the others of {first}")


def dtypes(operator: Operator) -> None:
    """Correct to the dtype's rounding for every dtype that it takes; other dtypes, and mixtures, are refused."""
    for dtype in operator.dtypes:
        agree(operator, operator.inputs(1001, dtype), str(dtype), 1001)
    for dtype in ALL_DTYPES:
        if dtype not in operator.dtypes:
            refused(operator, operator.inputs(64, dtype), range(len(operator.arguments)), str(dtype))
    for dtype in (torch.float64, torch.float32):
        inputs = operator.inputs(64, operator.dtypes[0])
        for i, name in enumerate(operator.arguments):
            if dtype != operator.dtypes[0] and len(inputs) > 1:
                mixed = [*inputs[:i], inputs[i].to(dtype), *inputs[i + 1 :]]
                handled_or_refused(operator, mixed, range(len(inputs)), f"only {name} is {dtype}", 64)


def special_values(operator: Operator) -> None:
    """NaN, infinities, zeros of both signs, the largest and the smallest values: the same results as the reference."""
    for dtype in operator.dtypes:
        info = torch.finfo(dtype)
        special = [float("nan"), float("inf"), -float("inf"), 0.0, -0.0, info.max, info.tiny, info.tiny / 2]
        for i, name in enumerate(operator.arguments):
            inputs = operator.inputs(67, dtype)
            flat = inputs[i].view(-1)
            for k in range(min(flat.numel(), 2 * len(special))):
                flat[k] = special[k % len(special)]
            agree(operator, inputs, f"special values in {name}, {dtype}", 67, on_the_cpu(operator.reference))
    inputs = operator.inputs(67, operator.dtypes[0])
    for x in inputs:
        x.view(-1)[3] = float("inf")  # infinity times, plus or minus infinity
    agree(operator, inputs, "infinities in all arguments", 67, on_the_cpu(operator.reference))


def determinism(operator: Operator) -> None:
    """The same inputs give the same bits at every call."""
    for dtype in operator.dtypes:
        inputs = operator.inputs(10_007, dtype)
        first = [x.clone() for x in outputs(operator.function(*inputs))]
        for run in range(5):
            for x, y in zip(first, outputs(operator.function(*inputs)), strict=True):
                if not same_bits(x, y):
                    raise ContractBroken(f"{operator.name}, {dtype}: run {run + 2} gave different bits from run 1")


def gradients(operator: Operator) -> None:
    """First and second derivatives are correct in float64, for all arguments together and for each alone."""
    if operator.differentiable is None:
        raise ContractBroken(f"{operator.name} has no differentiable form; if it needs none, say so in `excused`")
    function = operator.differentiable()
    for names, inputs in (*differentiable_inputs(operator, 1), *differentiable_inputs(operator, 5)):
        for test in (torch.autograd.gradcheck, torch.autograd.gradgradcheck):
            with breaks_if_raised(f"{operator.name}, {test.__name__} for {names}"):
                test(function, inputs)
    inputs = operator.inputs(5, torch.float64)
    if any(x.requires_grad for x in outputs(function(*inputs))):
        raise ContractBroken(f"{operator.name}: the output requires a gradient although no input does")


def registration(operator: Operator) -> None:
    """The registered operator passes torch.library.opcheck: schema, fake kernel, autograd, torch.compile's tracing."""
    if operator.overload is None:
        raise ContractBroken(f"{operator.name} has no registered overload; if it needs none, say so in `excused`")
    for dtype in operator.dtypes[:2]:
        inputs = operator.inputs(37, dtype)
        if operator.differentiable is not None:
            inputs = [x.requires_grad_() for x in inputs]
        with breaks_if_raised(f"{operator.name}, opcheck, {dtype}"):
            torch.library.opcheck(operator.overload(), tuple(inputs))


def stream(operator: Operator) -> None:
    """Launches go to PyTorch's current stream: after the kernels that write the inputs."""
    if helpers.target != "gpu":
        calls = [operator.inputs(257, operator.dtypes[0]), *operator.every_kernel()]
        if problem := stray_launches(operator.function, calls).problem:
            raise ContractBroken(f"{operator.name}: {problem}")
        return
    wanted = operator.inputs(100_003, operator.dtypes[0])
    expected, got = outputs(operator.function(*wanted)), on_a_busy_stream(operator.function, wanted)
    if not all(same_bits(x, y) for x, y in zip(got, expected, strict=True)):
        raise ContractBroken(f"{operator.name}: on a busy side stream it ran before its inputs were written")


def device(operator: Operator) -> None:
    """It runs on its inputs' device, whatever device is current, keeps the current device, and refuses a mixture."""
    needs_gpu()
    if torch.cuda.device_count() < 2:
        raise NotHere("there is only one GPU")
    inputs = operator.inputs(1001, operator.dtypes[0], "cuda:1")
    with torch.cuda.device(0):
        agree(operator, inputs, "inputs on cuda:1, cuda:0 current", 1001)
        if torch.cuda.current_device() != 0:
            raise ContractBroken(f"{operator.name}: it changed the current device")
        if len(inputs) > 1:
            mixed = [*inputs[:-1], inputs[-1].to("cuda:0")]
            refused(operator, mixed, range(len(inputs)), "inputs on two devices")


def graph_capture(operator: Operator) -> None:
    """It can be captured in a CUDA graph, and a replay uses the inputs' new values."""
    needs_gpu()
    inputs = operator.inputs(10_007, operator.dtypes[0])
    operator.function(*inputs)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with breaks_if_raised(f"{operator.name}: it cannot be captured in a CUDA graph"):
        with torch.cuda.graph(graph):
            captured = outputs(operator.function(*inputs))
        for x in inputs:
            x.copy_(x.flip(0))
        for x in captured:
            x.fill_(float("nan"))
        graph.replay()
        torch.cuda.synchronize()
    for x, y in zip(captured, outputs(operator.function(*inputs)), strict=True):
        if not same_bits(x, y):
            raise ContractBroken(f"{operator.name}: a replayed CUDA graph gave a different result")


CHECKED = (sizes, layouts, shapes, dtypes, special_values, determinism, gradients, registration, stream, device)
POINTS: dict[str, Callable[[Operator], None]] = {point.__name__: point for point in (*CHECKED, graph_capture)}


def hold(operator: Operator, point: str) -> None:
    """Holds an operator to the point of that name. Raises ContractBroken, or NotHere if it cannot be checked."""
    if point in operator.excused:
        raise NotHere(operator.excused[point])
    POINTS[point](operator)
