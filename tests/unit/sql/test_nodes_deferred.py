"""Nodes of statements other than queries are imported at their first use."""

import subprocess
import sys

import pytest

from olapdb.sql import nodes
from olapdb.statements import texts

pytestmark = pytest.mark.feature("house")


def test_all_names_are_there() -> None:
    for name in nodes.__all__:
        assert getattr(nodes, name) is not None
    with pytest.raises(AttributeError):
        nodes.__getattr__("NoSuchNode")


def test_kinds_are_names_of_statements() -> None:
    for name in texts.KINDS:
        assert issubclass(getattr(nodes, name), nodes.Statement)


def test_a_query_needs_no_other_nodes() -> None:
    script = (
        "import sys\n"
        "from olapdb.sql.parser import parse\n"
        "parse('SELECT a, sum(b) FROM t GROUP BY a')\n"
        "assert not [m for m in ('alter', 'definitions', 'administration', 'data')\n"
        "            if f'olapdb.sql.nodes.{m}' in sys.modules]"
    )
    subprocess.run([sys.executable, "-c", script], check=True)
