"""The one error tree: PEP 249 classes, each leaf with a ClickHouse error name and code.

A caller decides by class (`except UnknownTable`) or by `error.name`, never by the text of a
message.  Messages say what was wrong and what to do next.

`tree` has the classes of PEP 249. `data`, `integrity`, `operational` and `programming` have the
leaves of one of them each, `names` those of ProgrammingError about names. `foreign` and `system`
translate errors of Python, Arrow and the operating system.
"""

from olapdb.errors.clause import *  # noqa: F403
from olapdb.errors.data import *  # noqa: F403
from olapdb.errors.foreign import *  # noqa: F403
from olapdb.errors.integrity import *  # noqa: F403
from olapdb.errors.names import *  # noqa: F403
from olapdb.errors.operational import *  # noqa: F403
from olapdb.errors.programming import *  # noqa: F403
from olapdb.errors.system import *  # noqa: F403
from olapdb.errors.tree import *  # noqa: F403
