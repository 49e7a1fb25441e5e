"""The operators of a test module: of the kernels that it is named after, and of their wrong versions."""

import pytest

from helpers.ladder.pytorch.operators import library


@pytest.fixture(scope="module")
def ops(request):
    name = request.module.__name__.removeprefix("test_")
    return library(name, f"{name}.cu")


@pytest.fixture(scope="module")
def wrong(request):
    name = getattr(request.module, "WRONG", request.module.__name__.removeprefix("test_"))
    return library(f"{name}_wrong", f"wrong/{name}.cu")
