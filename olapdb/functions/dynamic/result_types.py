"""Types that functions of a Dynamic have whatever the types of its values."""
from olapdb.types import DataType
RESULT_TYPES: dict[str, DataType] = {}
