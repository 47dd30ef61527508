"""Scripts that random search found, shrunk as far as possible; none may show a finding now.

A case is a file of `cases/`: comments (`--#`) say what was wrong and which seed found it. A newer
release may refuse one of its statements. It must not give a false verdict, a mend that does not
end, or an internal error."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.definitions.run import run_script
from tests.definitions.steps import MEND, Script, Step, read_script, recut

pytestmark = pytest.mark.feature("provability")

CASES = sorted((Path(__file__).parent / "cases").glob("*.sql"))


@pytest.mark.parametrize("path", CASES, ids=lambda path: path.stem)
def test_case(path: Path) -> None:
    script = read_script(path.read_text())
    finding = run_script(script)
    assert finding is None, f"\n{finding}"
    finding = run_script(Script((*script.steps, Step(MEND))))
    assert finding is None, f"when it is mended:\n{finding}"


@pytest.mark.parametrize("path", CASES, ids=lambda path: path.stem)
def test_case_cut_otherwise(path: Path) -> None:
    finding = run_script(recut(read_script(path.read_text())))
    assert finding is None, f"\n{finding}"
