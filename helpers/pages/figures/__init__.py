"""Figures that a reader moves: pages of one file without a kernel and without a network, for lessons and the book.

`load_cost()` asks what one load of a warp costs; its arithmetic is compared with the X-ray's. `where_bytes_go()` climbs
the matmul ladder: nested tiles, bytes per FLOP of each level of memory, and the recorded speed. The film of a traced
kernel, which they share their shell with, is in `kernel_xray.report`.
"""
