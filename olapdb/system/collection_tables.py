"""system.named_collections. Its values are hidden, as they may be passwords."""

from __future__ import annotations

from collections.abc import Iterator

from olapdb.model.named_collection import CollectionEntry, NamedCollection
from olapdb.system.registry import Row, SystemContext, SystemTable
from olapdb.types import quote_identifier

_HIDDEN = "[HIDDEN]"


def _create_query(collection: NamedCollection) -> str:
    """Return the CREATE NAMED COLLECTION of a collection, with its values hidden."""
    name = quote_identifier(collection.name)
    return f"CREATE NAMED COLLECTION {name} AS {', '.join(map(_item, collection.entries))}"


def _item(entry: CollectionEntry) -> str:
    """Return an entry as SQL, with its value hidden."""
    text = f"{quote_identifier(entry.key)} = '{_HIDDEN}'"
    if entry.overridable is None:
        return text
    return f"{text} OVERRIDABLE" if entry.overridable else f"{text} NOT OVERRIDABLE"


def _named_collections(context: SystemContext) -> Iterator[Row]:
    """List the named collections by name."""
    for name, collection in sorted(context.snapshot.named_collections.items()):
        hidden = [(entry.key, _HIDDEN) for entry in collection.entries]
        yield name, hidden, "SQL", _create_query(collection)


TABLES = (
    SystemTable(
        "named_collections",
        "name String, collection Map(String, String), source String, create_query String",
        _named_collections,
        "Arguments that CREATE NAMED COLLECTION keeps under a name. Their values are hidden",
    ),
)
