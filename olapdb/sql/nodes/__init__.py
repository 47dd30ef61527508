"""The syntax tree: frozen nodes, each with its place in the text.

Nothing is resolved here: names are as written, functions are not looked up, `*` is a node.
A tuple is used wherever there is a list, None where a clause is absent.  `position` takes no
part in equality, so two texts with the same meaning of tokens give equal trees.

In the order of the grammar: `base`, `expressions`, `queries`, `definitions`, `alter`, `data`,
`administration`.
"""

from olapdb.sql.nodes.administration import (
    CheckTable,
    Describe,
    ExistsObject,
    Kill,
    Optimize,
    SetSettings,
    Show,
    System,
    SystemView,
    Transaction,
    Use,
)
from olapdb.sql.nodes.alter import (
    AddColumn,
    Alter,
    AlterAction,
    ClearColumn,
    CommentColumn,
    ConstraintAction,
    DeleteWhere,
    DropColumn,
    IndexAction,
    MaterializeColumn,
    MaterializeTtl,
    ModifyColumn,
    ModifyComment,
    ModifyOrderBy,
    ModifyQuery,
    ModifySetting,
    ModifyTtl,
    OtherAction,
    PartitionAction,
    PartitionReference,
    RenameColumn,
    UpdateWhere,
)
from olapdb.sql.nodes.base import Expression, Node, Query, Relation, Setting, Statement, TableName
from olapdb.sql.nodes.data import Delete, Insert, Update, ValuesData
from olapdb.sql.nodes.definitions import (
    Attach,
    ColumnDefinition,
    ConstraintDefinition,
    CreateDatabase,
    CreateMaterializedView,
    CreateTable,
    CreateView,
    Detach,
    Drop,
    EngineClause,
    Exchange,
    IndexDefinition,
    ProjectionDefinition,
    Rename,
    StorageClause,
    Truncate,
    TruncateAll,
    TtlItem,
    Undrop,
)
from olapdb.sql.nodes.expressions import (
    Alias,
    ArrayLiteral,
    Cast,
    Exists,
    FrameBound,
    Function,
    Identifier,
    In,
    IntervalLiteral,
    Lambda,
    Literal,
    OrderItem,
    Parameter,
    Star,
    Subquery,
    TupleLiteral,
    WindowSpec,
)
from olapdb.sql.nodes.queries import (
    ArrayJoin,
    Explain,
    Join,
    LimitBy,
    Select,
    SetOperation,
    SubqueryRelation,
    TableFunction,
    TableReference,
    WithItem,
)

__all__ = [
    "AddColumn", "Alias", "Alter", "AlterAction", "ArrayJoin", "ArrayLiteral", "Attach", "Cast",
    "CheckTable", "ClearColumn", "ColumnDefinition", "CommentColumn", "ConstraintAction",
    "ConstraintDefinition", "CreateDatabase", "CreateMaterializedView", "CreateTable",
    "CreateView", "Delete", "DeleteWhere", "Describe", "Detach", "Drop", "DropColumn",
    "EngineClause", "Exchange", "Exists", "ExistsObject", "Explain", "Expression", "FrameBound",
    "Function", "Identifier", "In", "IndexAction", "IndexDefinition", "Insert", "IntervalLiteral",
    "Join", "Kill", "Lambda", "LimitBy", "Literal", "MaterializeColumn", "MaterializeTtl",
    "ModifyColumn", "ModifyComment", "ModifyOrderBy", "ModifyQuery", "ModifySetting", "ModifyTtl",
    "Node", "Optimize", "OrderItem", "OtherAction", "Parameter", "PartitionAction",
    "PartitionReference", "ProjectionDefinition", "Query", "Relation", "Rename", "RenameColumn",
    "Select", "SetOperation", "SetSettings", "Setting", "Show", "Star", "Statement",
    "StorageClause", "Subquery", "SubqueryRelation", "System", "SystemView", "TableFunction",
    "TableName", "TableReference", "Transaction", "Truncate", "TruncateAll", "TtlItem",
    "TupleLiteral", "Undrop", "Update", "UpdateWhere", "Use", "ValuesData", "WindowSpec",
    "WithItem",
]  # fmt: skip
