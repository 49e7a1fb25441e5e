# numpy_face.py: A friendly front for a strict function. Exercise 2 of lesson 11, about 15 minutes.
#
# `island.add` of this lesson takes only contiguous float32 arrays of one shape. Write the function that users call: it
# broadcasts `a` and `b` as NumPy does, makes contiguous what is not, and converts dtypes whose values float32 holds
# exactly, such as int16. For any other dtype, such as float64, it raises a TypeError that names the argument and its
# dtype, so that nobody loses digits silently.
#
# Check this file with: python -m helpers check numpy_face
#
# [hints]
# - numpy.can_cast(dtype, numpy.float32) says whether float32 holds every value of a dtype.
# - numpy.broadcast_arrays(a, b) returns both with one shape, as views with strides of 0: not contiguous, and not to be
#   handed to a kernel as they are.
# - numpy.ascontiguousarray(x, dtype) copies only if it has to. A zero-dimensional array comes back with one dimension:
#   reshape the result to the shape that broadcasting gave.
# [end]

from pathlib import Path

import numpy as np
import torch

import helpers

island = helpers.load("island", [Path(helpers.__file__).parent.parent / "kernels" / "island.cu"])


# [cell]
def add(a, b):
    """a + b for NumPy arrays that broadcast, as float32. Raises TypeError for a dtype that float32 cannot hold."""
    # [solution: about 7 lines]
    for name, x in (("a", a), ("b", b)):
        if not np.can_cast(x.dtype, np.float32):
            raise TypeError(f"{name} must have a dtype that float32 holds exactly, got {x.dtype}")
    a, b = np.broadcast_arrays(a, b)
    shape = a.shape
    a, b = (np.ascontiguousarray(x, np.float32) for x in (a, b))
    return island.add(a, b).reshape(shape)
    # [end]


# [end]
def numpy_face(a, b):
    return torch.from_numpy(np.ascontiguousarray(add(a.cpu().numpy(), b.cpu().numpy()))).to(a.device)


numpy_face.add = add
