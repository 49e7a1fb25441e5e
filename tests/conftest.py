"""The order of the tests: files that take longest first, so that two processes end at about the same time."""

LONGEST = tuple(f"test_{name}.py" for name in ("seed_documents", "exercises", "contract", "loader", "simt_headers"))


def pytest_collection_modifyitems(items):
    items.sort(key=lambda item: LONGEST.index(item.path.name) if item.path.name in LONGEST else len(LONGEST))
