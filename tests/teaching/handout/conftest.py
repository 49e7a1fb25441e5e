import pytest

from helpers.teaching.handout import command


@pytest.fixture(scope="session")
def released(tmp_path_factory):
    """The folder with student/ and student.zip of the ready-made afternoon. Tests that change it work on a copy."""
    out = tmp_path_factory.mktemp("handout")
    assert command.main(["afternoon", "--out", str(out)]) == 0
    return out
