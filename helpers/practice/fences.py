"""Tensors between fences, which reveal reads and writes outside them.

Each tensor is a view into the middle of a larger one. NaNs surround an input, so that a read past its ends spoils the
result. A pattern surrounds an output; a write past the ends changes it. (Neither the simulator nor a GPU reliably
reports such a write: the memory behind a tensor usually belongs to another tensor.)
"""

from itertools import zip_longest

import torch

from helpers.practice.cases import Case

FENCE = 4096  # elements on either side of a tensor: more than the 1,024 by which a block can miss it
PATTERN = -7.0  # around outputs


class Fenced:
    """A copy of a tensor inside a larger one filled with `around`, `offset` elements after a multiple of 64 bytes."""

    def __init__(self, tensor: torch.Tensor, around: float, device: torch.device, offset: int = 0):
        size, start = tensor.numel(), FENCE + offset
        whole = torch.full((size + 2 * start,), around if tensor.is_floating_point() else -7, dtype=tensor.dtype)
        whole[start : start + size] = tensor.flatten()
        self.whole = whole.to(device)
        self.before = self.whole.clone()
        self.size, self.start = size, start
        self.view = self.whole[start : start + size].view(tensor.shape)

    def damage(self) -> int | None:
        """The index of the first changed element of the fence, counted from the tensor's first element, or None."""
        same = (self.whole == self.before) | (self.whole.isnan() & self.before.isnan())
        same[self.start : self.start + self.size] = True
        changed = (~same).nonzero().flatten()
        return int(changed[0]) - self.start if len(changed) else None


def fenced_arguments(case: Case, device: torch.device) -> tuple[list, dict[str, Fenced]]:
    """The arguments of a case's call, with tensors as views between fences, and its outputs by name as Fenced."""
    tensors = [x for x in case.inputs if isinstance(x, torch.Tensor)]
    offsets = (offset for _, offset in zip_longest([*tensors, *case.outputs], case.offsets, fillvalue=0))
    nan = float("nan")
    inputs = [Fenced(x, nan, device, next(offsets)).view if isinstance(x, torch.Tensor) else x for x in case.inputs]
    outputs = {name: Fenced(x, PATTERN, device, next(offsets)) for name, x in case.outputs.items()}
    return [*inputs, *(fenced.view for fenced in outputs.values())], outputs
