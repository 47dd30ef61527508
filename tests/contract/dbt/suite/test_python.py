"""Python models and functions: literals are PostgreSQL's, and parameters have defaults here."""

from __future__ import annotations

from typing import ClassVar

import pytest
from dbt.tests.adapter.functions.test_udafs import PythonUDAFDefaultArgSupport
from dbt.tests.adapter.functions.test_udfs import (
    PythonUDFDefaultArgSupport,
    SqlUDFDefaultArgSupport,
)
from dbt.tests.adapter.python_model.test_python_model import (
    BasePythonEmptyTests,
    BasePythonSampleTests,
)

from tests.contract.dbt.suite.translation import Rules

pytestmark = pytest.mark.feature("dbt")

TIMES: Rules = ((r"TIMESTAMP '([^']*)-0'", r"toDateTime('\1')"),)


class TestPythonEmpty(BasePythonEmptyTests):
    rules: ClassVar[Rules] = TIMES


class TestPythonSample(BasePythonSampleTests):
    rules: ClassVar[Rules] = TIMES


class TestSqlUDFDefaultArgSupport(SqlUDFDefaultArgSupport):
    expect_default_arg_support = True


class TestPythonUDFDefaultArgSupport(PythonUDFDefaultArgSupport):
    expect_default_arg_support = True


class TestPythonUDAFDefaultArgSupport(PythonUDAFDefaultArgSupport):
    expect_default_arg_support = True
