"""Each test file names its features, tests/README.md lists them, and the long files exist."""

from __future__ import annotations

import pytest

from tests.features import FEATURES, README, TESTS, features_of, files_of_tests, readme
from tests.harness.order import LONG_FILES

pytestmark = pytest.mark.feature("house")


def test_each_file_names_known_features() -> None:
    named = {str(path.relative_to(TESTS)): features_of(path) for path in files_of_tests()}
    assert not [path for path, features in named.items() if not features], "name a feature"
    assert {feature for features in named.values() for feature in features} <= set(FEATURES)


def test_the_readme_is_current() -> None:
    assert README.read_text() == readme(), "run python -m tests.features"


def test_the_long_files_exist() -> None:
    assert [name for name in LONG_FILES if not (TESTS.parent / name).exists()] == []
