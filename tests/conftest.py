"""The order of the tests: files that take longest first, so that two processes end at about the same time."""

SLOW_FIRST = ("test_seed_documents.py", "test_exercises.py", "test_loader.py", "test_simt_headers.py")


def pytest_collection_modifyitems(items):
    items.sort(key=lambda item: SLOW_FIRST.index(item.path.name) if item.path.name in SLOW_FIRST else len(SLOW_FIRST))
