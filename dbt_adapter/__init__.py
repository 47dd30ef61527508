"""dbt's adapter for olapdb: `type: olapdb` in a profile."""

from dbt.adapters.base import AdapterPlugin
from dbt.include import olapdb

from .column import OlapdbColumn
from .connections import OlapdbConnectionManager
from .credentials import OlapdbCredentials
from .impl import OlapdbAdapter
from .relation import OlapdbRelation

__all__ = [
    "OlapdbAdapter",
    "OlapdbColumn",
    "OlapdbConnectionManager",
    "OlapdbCredentials",
    "OlapdbRelation",
    "Plugin",
]

Plugin = AdapterPlugin(
    adapter=OlapdbAdapter,
    credentials=OlapdbCredentials,
    include_path=olapdb.PACKAGE_PATH,
    # By default dbt uses the folder's name, which differs in an editable installation.
    project_name="dbt_olapdb",
)
