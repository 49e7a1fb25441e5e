# numpy_face.py: A friendly front for a strict function. Exercise 2 of lesson 14, about 15 minutes.
#
# `island.add` of this lesson takes only contiguous float32 arrays of one shape. Write the function that users call: it
# broadcasts `x` and `y` as NumPy does, arrays without dimensions too, makes contiguous what is not, and converts dtypes
# whose values float32 holds exactly, such as int16. For any other dtype, such as float64, it raises a TypeError that
# names the argument and its dtype, so that nobody loses digits silently.
#
# Check this file with: python -m helpers check numpy_face
#
# [hints]
# - numpy.can_cast(dtype, numpy.float32) says whether float32 holds every value of a dtype.
# - numpy.broadcast_arrays(x, y) returns both with one shape, as views with strides of 0: not contiguous, and not to be
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
def add(x, y):
    """x + y for NumPy arrays that broadcast, as float32; TypeError for a dtype that it cannot hold.

    np is NumPy; island.add(a, b) adds contiguous float32 arrays of one shape.
    """
    # [solution: about 6 lines]
    for name, array in (("x", x), ("y", y)):
        if not np.can_cast(array.dtype, np.float32):
            raise TypeError(f"{name} must have a dtype that float32 holds exactly, got {array.dtype}")
    x, y = np.broadcast_arrays(x, y)
    a, b = (np.ascontiguousarray(array, np.float32) for array in (x, y))
    return island.add(a, b).reshape(x.shape)
    # [end]


# [end]
def numpy_face(x, y):
    return torch.from_numpy(np.array(add(x.cpu().numpy(), y.cpu().numpy()))).to(x.device)


numpy_face.add, numpy_face.island_add = add, island.add
