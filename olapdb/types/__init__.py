"""ClickHouse's data types, their names and their Arrow form.

A `DataType` is a frozen value; `str(t)` is ClickHouse's name of it, `t.arrow` the Arrow type that
columns of it have in memory and in parts.  The Arrow form is chosen so that any Parquet reader
opens a part: no dictionaries, no extension types; a `LowCardinality(T)` is a plain `T`, a
`Nullable(T)` the same Arrow type with nulls, a `DateTime` a timestamp in seconds with its zone, an Enum its numbers, of
which users get the texts (`exported` in `arrow`).  Columns of a type without `Nullable` hold no null.

`scalars`, `compound`, `named`, `variant` and `dynamic` define the types, `names` parses their names, with `aliases`. `arrow` has the Arrow forms
and is not imported here: only it loads pyarrow.
"""

from olapdb.types.base import *  # noqa: F403
from olapdb.types.compound import *  # noqa: F403
from olapdb.types.dynamic import *  # noqa: F403
from olapdb.types.named import *  # noqa: F403
from olapdb.types.names import *  # noqa: F403
from olapdb.types.scalars import *  # noqa: F403
from olapdb.types.variant import *  # noqa: F403
