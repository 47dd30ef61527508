"""regexpPosition: where a regular expression matches in a text, in bytes from 1."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from olapdb.errors import BadArguments, IndexOfPositionalArgument
from olapdb.functions import scalar
from olapdb.functions.base import Argument, ScalarCall
from olapdb.functions.kernels.by_value import text_of, values_by_row
from olapdb.functions.strings.search_many import pattern_of
from olapdb.types import STRING, UINT64, Integer, plain


def _resolve(name: str, arguments: Sequence[Argument]) -> ScalarCall:
    """Resolve regexpPosition(text, pattern[, position[, occurrence[, return_option[, match_type[,
    group]]]]]): the start of that match, its end with return_option 1, 0 if there is none.

    Raises BadArguments and IndexOfPositionalArgument."""
    scalar.require(name, [plain(arguments[0].type)], type(STRING), "a String")
    pattern = scalar.constant_text(name, arguments, 1, "the pattern").encode()
    scalar.require(name, [plain(a.type) for a in arguments[2:5]], Integer, "an integer")
    flags = scalar.constant_text(name, arguments, 5, "the match type") if len(arguments) > 5 else ""
    group = scalar.constant_integer(name, arguments, 6, "the group") if len(arguments) > 6 else 0
    if set(flags) - set("icmns"):
        raise BadArguments(f"{name} takes letters of 'icmns' as the match type.")
    letters = ("m" if "m" in flags else "") + ("s" if "s" in flags else "-s")
    compiled = pattern_of(f"(?{letters}:".encode() + pattern + b")", "i" in flags)
    if not 0 <= group <= compiled.groups:
        raise IndexOfPositionalArgument(
            f"The pattern of {name} has {compiled.groups} groups, not {group}."
        )

    def position(text: bytes, start: int = 1, occurrence: int = 1, at_end: int = 0) -> int:
        """Return the byte, from 1, where the match starts or ends in one text; 0 without a match.

        Raises BadArguments for a position, occurrence or option that is out of range."""
        for word, number in (("position", start), ("occurrence", occurrence)):
            if number < 1:
                raise BadArguments(
                    f"Argument {word!r} for function {name} must be >= 1, got {number}."
                )
        if at_end not in (0, 1):
            raise BadArguments(f"{name} takes 0 or 1 as the return option, not {at_end}.")
        decoded = text_of(text)
        before = text_of(text[: start - 1])
        if start > len(text) + 1:
            return 0
        matches = compiled.finditer(decoded, len(before))
        if occurrence > 1:  # further occurrences are of matches that are not empty
            matches = (match for match in matches if match.end() > match.start())
        for count, hit in enumerate(matches, 1):
            if count == occurrence:
                at = hit.end(group) if at_end else hit.start(group)
                return 0 if at < 0 else len(decoded[:at].encode("utf-8", "surrogateescape")) + 1
        return 0

    def kernel(arrays: list[pa.Array], call: scalar.Invocation) -> pa.Array:
        """Search each distinct text."""
        return values_by_row([arrays[0], *arrays[2:5]], position, call.result.arrow)

    return scalar.standard_call(name, arguments, UINT64, kernel)


DEFINITIONS: tuple[scalar.ScalarDefinition, ...] = (
    scalar.custom(
        "regexpPosition",
        _resolve,
        count=(2, 7),
        aliases=("regexpInstr", "regexp_instr", "REGEXP_INSTR"),
    ),
)
