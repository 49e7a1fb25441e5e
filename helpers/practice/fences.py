"""Tensors with something around them, so that a kernel which leaves their ends is seen.

Tensors are views into the middle of larger ones. Around an input lie NaNs, so that what is read past its ends spoils
the result; around an output lies a pattern that must survive, so that a write past its ends is seen. (Neither the
simulator nor a GPU need notice one: behind a tensor lies, most often, some other tensor.)
"""

from __future__ import annotations

from itertools import zip_longest
from typing import TYPE_CHECKING

import torch

if TYPE_CHECKING:
    from helpers.practice.cases import Case

FENCE = 4096  # elements on either side of a tensor: more than a whole block can miss it by
PATTERN = -7.0  # around outputs


class Fenced:
    """A tensor within a larger one whose other elements are `around`; `offset` elements from a multiple of 64 bytes."""

    def __init__(self, tensor: torch.Tensor, around: float, device: torch.device, offset: int = 0):
        size, start = tensor.numel(), FENCE + offset
        whole = torch.full((size + 2 * start,), around if tensor.is_floating_point() else -7, dtype=tensor.dtype)
        whole[start : start + size] = tensor.flatten()
        self.whole = whole.to(device)
        self.before = self.whole.clone()
        self.size, self.start = size, start
        self.view = self.whole[start : start + size].view(tensor.shape)

    def damage(self) -> int | None:
        """The index, counted from the tensor's first element, of the first changed element around it."""
        same = (self.whole == self.before) | (self.whole.isnan() & self.before.isnan())
        same[self.start : self.start + self.size] = True
        changed = (~same).nonzero().flatten()
        return int(changed[0]) - self.start if len(changed) else None


def fenced_tensors(case: Case, device: torch.device) -> tuple[list, dict[str, Fenced]]:
    """The inputs of a case, tensors as Fenced, and the outputs."""
    tensors = [x for x in case.inputs if isinstance(x, torch.Tensor)]
    offsets = (offset for _, offset in zip_longest([*tensors, *case.outputs], case.offsets, fillvalue=0))
    nan = float("nan")
    inputs = [Fenced(x, nan, device, next(offsets)) if isinstance(x, torch.Tensor) else x for x in case.inputs]
    return inputs, {name: Fenced(x, PATTERN, device, next(offsets)) for name, x in case.outputs.items()}


def arguments_of(inputs: list, outputs: dict[str, Fenced]) -> list:
    """What the function is called with."""
    return [x.view if isinstance(x, Fenced) else x for x in (*inputs, *outputs.values())]
