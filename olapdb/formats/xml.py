"""XML: a result as one document."""

from __future__ import annotations

import re

import pyarrow as pa
import pyarrow.compute as pc

from olapdb import types
from olapdb.formats.base import Ending, Format, Header, Writer
from olapdb.formats.texts import body, joined_rows, shown, with_null
from olapdb.functions.kernels import columns
from olapdb.functions.variants.values import gathered

_IS_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]*")


def xml_escaped(text: str) -> str:
    """Escape a text for XML."""
    return text.replace("&", "&amp;").replace("<", "&lt;")


def _elements(offsets: object, texts: pa.Array, tag: str) -> pa.Array:
    """Join the texts of each list, each in an element of its own, inside an element `tag`."""
    inside = pc.binary_join(columns.lists_from(offsets, texts), "")  # type: ignore[arg-type]
    return pc.binary_join_element_wise(f"<{tag}>", inside, f"</{tag}>", "")


def xml_texts(array: pa.Array, data_type: types.DataType, header: Header) -> pa.Array:
    """Return values as escaped XML, the elements of containers in tags; NULL is `\\N`."""
    plain = types.plain(data_type)
    match plain:
        case types.Array(inner):
            offsets, values = columns.elements_of(array)
            return _elements(offsets, _tagged("elem", xml_texts(values, inner, header)), "array")
        case types.Map():
            offsets = columns.offsets_of(array)
            entries = slice(int(offsets[0]), int(offsets[-1]))
            keys = _tagged("key", xml_texts(array.keys[entries], plain.key, header))
            values = _tagged("value", xml_texts(array.items[entries], plain.value, header))
            pairs = _tagged("elem", pc.binary_join_element_wise(keys, values, ""))
            return _elements(offsets - offsets[0], pairs, "map")
        case types.Variant() | types.Dynamic():
            texts = gathered(array, plain, lambda v, t: xml_texts(v, t, header), pa.string())
            return with_null(texts, "\\N")
        case types.Tuple():
            if not plain.elements:
                return pa.array(["<tuple></tuple>"] * len(array), pa.string())
            fields = [
                _tagged("elem", xml_texts(field, element, header))
                for field, element in zip(columns.struct_fields(array), plain.elements, strict=True)
            ]
            return _tagged("tuple", joined_rows(fields, ""))
        case _:
            shown_texts = shown(array, data_type, header)
            for character, escaped in (("&", "&amp;"), ("<", "&lt;")):
                shown_texts = pc.replace_substring(shown_texts, character, escaped)
            return with_null(shown_texts, "\\N")


def _tagged(tag: str, texts: pa.Array) -> pa.Array:
    """Return each text inside an element `tag`."""
    return pc.binary_join_element_wise(f"<{tag}>", texts, f"</{tag}>", "")


class XmlWriter(Writer):
    """A writer of XML: columns, rows, their number, statistics."""

    def __init__(self, header: Header) -> None:
        """Take the columns of the result."""
        super().__init__(header)
        self._tags = [name if _IS_NAME.fullmatch(name) else "field" for name in header.names]

    def start(self) -> bytes:
        """Return the columns, and what comes before the rows."""
        indent = "\t\t\t\t"
        columns_text = "".join(
            f"\t\t\t<column>\n{indent}<name>{xml_escaped(name)}</name>\n"
            f"{indent}<type>{xml_escaped(data_type.name)}</type>\n\t\t\t</column>\n"
            for name, data_type in zip(self.header.names, self.header.types, strict=True)
        )
        return (
            "<?xml version='1.0' encoding='UTF-8' ?>\n<result>\n\t<meta>\n\t\t<columns>\n"
            f"{columns_text}\t\t</columns>\n\t</meta>\n\t<data>\n"
        ).encode()

    def _values(self, batch: pa.RecordBatch, indent: str) -> list[pa.Array]:
        """Format the columns as elements, each on its line after `indent`."""
        columns_read = zip(self._tags, batch.columns, self.header.types, strict=True)
        return [
            pc.binary_join_element_wise(
                f"{indent}<{tag}>", xml_texts(column, data_type, self.header), f"</{tag}>\n", ""
            )
            for tag, column, data_type in columns_read
        ]

    def write(self, batch: pa.RecordBatch) -> bytes:
        """Return the rows."""
        rows = joined_rows(self._values(batch, "\t\t\t"), "", "\t\t<row>\n", "\t\t</row>\n")
        return _valid(body(rows))

    def finish(self, ending: Ending) -> bytes:
        """Return the totals, the extremes, the number of rows, and the statistics."""
        text = b"\t</data>\n"
        if ending.totals is not None:
            totals = body(joined_rows(self._values(ending.totals, "\t\t"), ""))
            text += b"\t<totals>\n" + _valid(totals) + b"\t</totals>\n"
        if ending.extremes is not None:
            ends = [
                body(joined_rows(self._values(ending.extremes.slice(at, 1), "\t\t\t"), ""))
                for at in (0, 1)
            ]
            least, greatest = map(_valid, ends)
            text += b"\t<extremes>\n\t\t<min>\n" + least + b"\t\t</min>\n"
            text += b"\t\t<max>\n" + greatest + b"\t\t</max>\n\t</extremes>\n"
        text += f"\t<rows>{ending.rows}</rows>\n".encode()
        read = ending.statistics
        if read is not None and read.rows_before_limit is not None:
            count = read.rows_before_limit
            text += f"\t<rows_before_limit_at_least>{count}</rows_before_limit_at_least>\n".encode()
        if self.header.settings.boolean("output_format_write_statistics"):
            text += (
                f"\t<statistics>\n\t\t<elapsed>{ending.elapsed_seconds:.9f}</elapsed>\n"
                f"\t\t<rows_read>{read.rows_read if read else 0}</rows_read>\n"
                f"\t\t<bytes_read>{read.bytes_read if read else 0}</bytes_read>\n\t</statistics>\n"
            ).encode()
        return text + b"</result>\n"


def _valid(text: bytes) -> bytes:
    """Replace invalid UTF-8 in the text by the replacement character."""
    return text.decode("utf-8", "replace").encode()


FORMATS = (Format("XML", "One XML document.", XmlWriter, endings=("xml",), appends=False),)
