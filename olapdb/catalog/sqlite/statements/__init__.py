"""The catalog's statements by subject; calling one runs it on a connection.

    sql.newest_block.value(connection, of_table=table_id)

Their texts are generated from `olapdb.catalog.core`; `history` has those by which vacuum purges rows of the other subjects.
"""

from olapdb.catalog.sqlite.statements.base import *  # noqa: F403
from olapdb.catalog.sqlite.statements.blocks import *  # noqa: F403
from olapdb.catalog.sqlite.statements.commits import *  # noqa: F403
from olapdb.catalog.sqlite.statements.damage import *  # noqa: F403
from olapdb.catalog.sqlite.statements.deliveries import *  # noqa: F403
from olapdb.catalog.sqlite.statements.history import *  # noqa: F403
from olapdb.catalog.sqlite.statements.jobs import *  # noqa: F403
from olapdb.catalog.sqlite.statements.leases import *  # noqa: F403
from olapdb.catalog.sqlite.statements.parts import *  # noqa: F403
from olapdb.catalog.sqlite.statements.schema import *  # noqa: F403
from olapdb.catalog.sqlite.statements.views import *  # noqa: F403
