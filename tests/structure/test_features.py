"""Each test file names its features, and tests/README.md lists them."""

from __future__ import annotations

import pytest

from tests.features import FEATURES, README, TESTS, features_of, files_of_tests, readme

pytestmark = pytest.mark.feature("house")


def test_each_file_names_known_features() -> None:
    named = {str(path.relative_to(TESTS)): features_of(path) for path in files_of_tests()}
    assert not [path for path, features in named.items() if not features], "name a feature"
    assert {feature for features in named.values() for feature in features} <= set(FEATURES)


def test_the_readme_is_current() -> None:
    assert README.read_text() == readme(), "run python -m tests.features"
