"""my_op(a, b) = (a - b)^2 as an operator of PyTorch: differentiable, and known to torch.compile, export and vmap."""

from pathlib import Path

import torch

OLDEST = (2, 11)  # the version of PyTorch whose stable interface the library uses; see setup.py
_HERE = Path(__file__).resolve().parent


def check_version(version: str) -> None:
    """Raises ImportError if this PyTorch is older than the library needs."""
    if tuple(int(part) for part in version.split(".")[:2]) < OLDEST:
        oldest = ".".join(map(str, OLDEST))
        raise ImportError(f"my_op needs PyTorch {oldest} or newer and found {version}: pip install 'torch>={oldest}'")


def find_library(folder: Path) -> str:
    """The compiled part of the package. Raises ImportError if it was not built."""
    found = sorted(folder.glob("_C*.so"))
    if not found:
        raise ImportError(f"my_op is not built: no _C*.so in {folder}; pip install . in the folder of its setup.py")
    return str(found[0])


def load(library: str) -> None:
    """Registers the operator. Raises ImportError if it was built for a simulator that this machine does not have."""
    try:
        torch.ops.load_library(library)
    except OSError as error:
        if "libsimt" not in f"{error} {error.__context__}":  # newer versions of PyTorch wrap it
            raise
        raise ImportError(
            "this my_op was built for the Kernel Ladder's simulator, on another machine: build it here, with nvcc if "
            "there is a GPU (pip install --no-build-isolation . in the folder of its setup.py)"
        ) from error


check_version(torch.__version__)
load(find_library(_HERE))
my_op = torch.ops.my_op.my_op.default


def _backward(ctx, grad):
    a, b = ctx.saved_tensors
    grad_a = 2 * grad * (a - b)  # plain PyTorch, so second derivatives need no code
    return grad_a, -grad_a


def _vmap(info, in_dims, *arguments):
    """A batch of elementwise work is a larger tensor."""
    batches = [
        x.expand(info.batch_size, *x.shape) if dim is None else x.movedim(dim, 0)
        for x, dim in zip(arguments, in_dims, strict=True)
    ]
    return my_op(*(x.contiguous() for x in batches)), 0


torch.library.register_fake("my_op::my_op", lambda a, b: torch.empty_like(a))
torch.library.register_autograd(
    "my_op::my_op", _backward, setup_context=lambda ctx, inputs, output: ctx.save_for_backward(*inputs)
)
torch.library.register_vmap("my_op::my_op", _vmap)

__all__ = ["my_op"]
