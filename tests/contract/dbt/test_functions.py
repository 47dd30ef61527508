"""Functions of dbt in SQL and Python: the classes of dbt-tests-adapter, unmodified."""

from __future__ import annotations

import pytest
from dbt.tests.adapter.functions.test_udafs import (
    BasicPythonUDAF,
    BasicSQLUDAF,
    PythonUDAFDefaultArgSupport,
)
from dbt.tests.adapter.functions.test_udfs import (
    CanFindScalarFunctionRelation,
    DeterministicUDF,
    ErrorForUnsupportedType,
    NonDeterministicUDF,
    PythonUDFDefaultArgSupport,
    PythonUDFEntryPointRequired,
    PythonUDFRuntimeVersionRequired,
    PythonUDFSupported,
    PythonUDFVolatilitySupport,
    PythonUDFWithPackagesSupported,
    SqlUDFDefaultArgSupport,
    StableUDF,
    UDFsBasic,
)

pytestmark = pytest.mark.feature("dbt")


class TestUDFsBasic(UDFsBasic):
    pass


class TestDeterministicUDF(DeterministicUDF):
    pass


class TestStableUDF(StableUDF):
    pass


class TestNonDeterministicUDF(NonDeterministicUDF):
    pass


class TestErrorForUnsupportedType(ErrorForUnsupportedType):
    pass


class TestPythonUDFSupported(PythonUDFSupported):
    pass


class TestPythonUDFRuntimeVersionRequired(PythonUDFRuntimeVersionRequired):
    pass


class TestPythonUDFEntryPointRequired(PythonUDFEntryPointRequired):
    pass


class TestSqlUDFDefaultArgSupport(SqlUDFDefaultArgSupport):
    expect_default_arg_support = True


class TestPythonUDFDefaultArgSupport(PythonUDFDefaultArgSupport):
    expect_default_arg_support = True


class TestPythonUDFVolatilitySupport(PythonUDFVolatilitySupport):
    pass


class TestPythonUDFWithPackagesSupported(PythonUDFWithPackagesSupported):
    pass


class TestCanFindScalarFunctionRelation(CanFindScalarFunctionRelation):
    pass


class TestBasicSQLUDAF(BasicSQLUDAF):
    pass


class TestBasicPythonUDAF(BasicPythonUDAF):
    pass


class TestPythonUDAFDefaultArgSupport(PythonUDAFDefaultArgSupport):
    expect_default_arg_support = True
