"""The public DB-API 2.0 suite (PyPI: dbapi-compliance), on an olapdb in memory."""

import dbapi20
import pytest

import olapdb

pytestmark = pytest.mark.feature("python")


class TestCompliance(dbapi20.DatabaseAPI20Test):
    driver = olapdb
    connect_args = ()
    connect_kw_args: dict[str, object] = {}
    ddl1 = f"create table {dbapi20.DatabaseAPI20Test.table_prefix}booze (name varchar(20)) ORDER BY tuple()"
    ddl2 = f"create table {dbapi20.DatabaseAPI20Test.table_prefix}barflys (name varchar(20), drink Nullable(String)) ORDER BY tuple()"
    lower_func = None

    # The suite was written for unittest's old names.
    failUnless = dbapi20.unittest.TestCase.assertTrue
    assertEquals = dbapi20.unittest.TestCase.assertEqual
    assert_ = dbapi20.unittest.TestCase.assertTrue

    @pytest.fixture(autouse=True)
    def _one_warehouse(self, tmp_path):
        type(self).connect_args = (str(tmp_path / "warehouse"),)
        return

    def test_nextset(self):
        """The suite asks drivers to override it; there is one result set, and asking for more is
        a NotSupportedError."""
        cursor = self._connect().cursor()
        with pytest.raises(olapdb.NotSupportedError):
            cursor.nextset()

    def test_setoutputsize(self):
        """The suite asks drivers to override it; sizes are accepted and change nothing."""
        cursor = self._connect().cursor()
        cursor.setoutputsize(1000)
        cursor.setoutputsize(1000, 0)
        cursor.execute("SELECT 'abc'")
        assert cursor.fetchone() == ("abc",)

    def test_non_idempotent_close(self):
        """PEP 249 leaves a second close() open; ours does nothing, as in most drivers."""
        connection = self._connect()
        connection.close()
        connection.close()
        with pytest.raises(olapdb.InterfaceError):
            connection.cursor()
