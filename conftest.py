"""Runs the longest tests and notebooks first, so that parallel workers finish at about the same time.

Tests and notebooks that check exercises do not touch the progress of the person who runs them.
"""

import os

os.environ["KERNEL_LADDER_PROGRESS"] = os.devnull

LONGEST = [
    *("test_seed_documents", "test_exercises", "test_contract", "test_simt_headers"),
    *("14_packaging", "12_torch_library", "16_many_gpus", "test_xray_units", "08_matmul", "02_elementwise_mult"),
    *(
        "test_nvcc",
        "09_matmul_fast",
        "10_tensor_cores",
        "11_hopper",
        "test_xray",
        "test_loader",
        "test_torch_library",
        "test_simt_hostile",
    ),
]


def pytest_collection_modifyitems(items):
    items.sort(key=lambda item: LONGEST.index(item.path.stem) if item.path.stem in LONGEST else len(LONGEST))
