"""Functions of dbt whose parameters have defaults, which few adapters have."""

from __future__ import annotations

import pytest
from dbt.tests.adapter.functions.test_udafs import PythonUDAFDefaultArgSupport
from dbt.tests.adapter.functions.test_udfs import (
    PythonUDFDefaultArgSupport,
    SqlUDFDefaultArgSupport,
)

pytestmark = pytest.mark.feature("dbt")


class TestSqlUDFDefaultArgSupport(SqlUDFDefaultArgSupport):
    expect_default_arg_support = True


class TestPythonUDFDefaultArgSupport(PythonUDFDefaultArgSupport):
    expect_default_arg_support = True


class TestPythonUDAFDefaultArgSupport(PythonUDAFDefaultArgSupport):
    expect_default_arg_support = True
