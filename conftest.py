"""The order of tests and notebooks: what takes longest first, so that two processes end at about the same time."""

LONGEST = [
    *("test_seed_documents", "test_exercises", "test_contract"),
    *("13_many_gpus", "09_torch_library", "11_packaging", "07_matmul", "03_fused_muladd"),
    *("test_loader", "test_simt_headers", "test_simt_hostile"),
]


def pytest_collection_modifyitems(items):
    items.sort(key=lambda item: LONGEST.index(item.path.stem) if item.path.stem in LONGEST else len(LONGEST))
