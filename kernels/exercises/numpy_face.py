# numpy_face.py: A friendly front for a strict function. Exercise 2 of lesson 14, about 15 minutes.
#
# `island.add` of this lesson takes only contiguous float32 arrays of one shape. Write the function that users call: it
# broadcasts `x` and `y` as NumPy does, makes contiguous what is not, and converts dtypes whose values float32 holds
# exactly, such as int16. For any other dtype, such as float64, it raises a TypeError that names the argument and its
# dtype, so that nobody loses digits silently.
#
# Check this file with: python -m helpers check numpy_face

from pathlib import Path

import numpy as np
import torch

import helpers

island = helpers.load("island", [Path(helpers.__file__).parent.parent / "kernels" / "island.cu"])


def add(x, y):
    """x + y for NumPy arrays that broadcast, as float32. Raises TypeError for a dtype that float32 cannot hold.

    np is NumPy; island.add(a, b) adds contiguous float32 arrays of one shape.
    """
    # YOUR CODE HERE: about 6 lines


def numpy_face(x, y):
    return torch.from_numpy(np.array(add(x.cpu().numpy(), y.cpu().numpy()))).to(x.device)


numpy_face.add = add
