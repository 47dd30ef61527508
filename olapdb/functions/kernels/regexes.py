"""Extraction and replacement by regular expressions in RE2's syntax.

A kernel matches what most patterns have in ASCII texts, and tells groups in a sixth of RE2's time. All else is matched by
Arrow, which calls RE2: other patterns, texts with other characters, matches that take many steps.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from olapdb.lazy import LazyModule
from olapdb.native.library import library
from olapdb.types.arrow_values import from_numpy

if TYPE_CHECKING:
    from olapdb.functions.kernels import regex_programs
    from olapdb.native import regexes
    from olapdb.native.regexes import Program
else:
    regex_programs = LazyModule("olapdb.functions.kernels.regex_programs")
    regexes = LazyModule("olapdb.native.regexes")

_ROWS_MIN = 64
"""Fewer texts are left to RE2: a pattern is compiled here in some 200 microseconds."""
_ROW_SHARE = 0.5
"""Where the kernel gives up more of the first texts than this share, RE2 matches all."""
_SAMPLE_ROWS = 256
_REFERENCE = re.compile(r"\\(.?)", re.DOTALL)


def extracted(texts: pa.Array, pattern: str) -> pa.StructArray:
    """Return the groups of each text's first match as a struct; NULL for NULL and where there is none. A group without a
    part of the text is ''. Each group of the pattern has a name. Raises pyarrow.ArrowInvalid for a wrong pattern."""
    program = _program(texts, pattern)
    if program is None or None in program.names or not program.names:
        return pc.extract_regex(texts, pattern)
    outcomes, fields = regexes.groups(program, texts, texts.type)
    left = _given_up(outcomes, texts)
    matched = outcomes == 1
    if left is not None:
        others = pc.extract_regex(texts.filter(left), pattern)
        matched[np.asarray(left)] = np.asarray(others.is_valid())
        fields = [
            pc.replace_with_mask(field, left, pc.fill_null(other, ""))
            for field, other in zip(fields, others.flatten(), strict=True)
        ]
    if texts.null_count:
        matched &= np.asarray(texts.is_valid())
    names = [name for name in program.names if name is not None]
    return pa.StructArray.from_arrays(fields, names=names, mask=from_numpy(~matched))


def replaced(
    texts: pa.Array, pattern: str, replacement: str, max_replacements: Literal[1] | None = None
) -> pa.Array:
    """Replace the first match in each text for 1, all matches for None; NULL stays NULL. In the replacement \\0 is
    the match, and \\1 to \\9 are its groups. Raises pyarrow.ArrowInvalid for a wrong pattern or reference."""
    by_kernel = _replaced_by_kernel(texts, pattern, replacement, max_replacements)
    if by_kernel is None:
        return _replaced_by_re2(texts, pattern, replacement, max_replacements)
    outcomes, new = by_kernel
    left = _given_up(outcomes, texts)
    if left is not None:
        others = _replaced_by_re2(texts.filter(left), pattern, replacement, max_replacements)
        new = pc.replace_with_mask(new, left, others)
    return pc.if_else(texts.is_valid(), new, None) if texts.null_count else new


def _replaced_by_kernel(
    texts: pa.Array, pattern: str, replacement: str, max_replacements: Literal[1] | None
) -> tuple[np.ndarray, pa.Array] | None:
    """Return the outcome of each text and the new texts; None where RE2 has to replace all: matches may be empty, or RE2
    could not replace the texts that are left over as the kernel does."""
    program = _program(texts, pattern)
    if program is None or program.may_be_empty:
        return None
    if max_replacements == 1 and _shifted(replacement) is None:
        return None
    pieces = _pieces(replacement, len(program.names))
    if pieces is None:
        return None
    return regexes.replaced(program, texts, max_replacements or -1, pieces)


def _replaced_by_re2(
    texts: pa.Array, pattern: str, replacement: str, max_replacements: int | None
) -> pa.Array:
    """Replace matches by Arrow as `replaced` does.

    Arrow replaces a single match by looking at the match alone, where `$` holds and another alternative may match. So
    the text before the match is matched too, from the beginning of the text, where there is one match at most."""
    shifted = _shifted(replacement)
    if max_replacements is None or shifted is None:
        return pc.replace_substring_regex(
            texts, pattern, replacement, max_replacements=max_replacements
        )
    pc.replace_substring_regex(texts.slice(0, 0), pattern, replacement)  # raises for a wrong one
    return pc.replace_substring_regex(texts, rf"\A(?s:(.*?))({pattern})", rf"\1{shifted}")


def _shifted(replacement: str) -> str | None:
    """Return the replacement with the numbers of its groups two larger; None if one is larger than 7."""
    references = [m[1] for m in _REFERENCE.finditer(replacement) if m[1].isdigit()]
    if any(number in "89" for number in references):
        return None
    return _REFERENCE.sub(lambda m: f"\\{int(m[1]) + 2}" if m[1].isdigit() else m[0], replacement)


def _program(texts: pa.Array, pattern: str) -> Program | None:
    """Return the pattern's program if the kernel is to match these texts: there is a library, the pattern can be read, and
    most of the first texts are matched."""
    is_text = isinstance(texts, pa.Array) and texts.type in (pa.string(), pa.binary())
    if not is_text or len(texts) < _ROWS_MIN or library() is None:
        return None
    program = regex_programs.program_of(pattern)
    if program is None:
        return None
    sample = texts.slice(0, _SAMPLE_ROWS)
    given_up = np.count_nonzero(regexes.matches(program, sample) == regexes.GAVE_UP)
    return program if given_up <= _ROW_SHARE * len(sample) else None


def _given_up(outcomes: np.ndarray, texts: pa.Array) -> pa.Array | None:
    """Return the mask of the rows that are not NULL and that the kernel gave up; None if there are none."""
    left = outcomes == regexes.GAVE_UP
    if not left.any():
        return None
    if texts.null_count:
        left &= np.asarray(texts.is_valid())
    return from_numpy(left)


def _pieces(replacement: str, groups: int) -> list[int | bytes] | None:
    """Return the texts and the numbers of groups of a replacement; None if it is wrong."""
    pieces: list[int | bytes] = []
    end = 0
    for reference in _REFERENCE.finditer(replacement):
        pieces.append(replacement[end : reference.start()].encode())
        end = reference.end()
        if reference[1] == "\\":
            pieces.append(b"\\")
        elif reference[1].isdigit() and reference[1].isascii() and int(reference[1]) <= groups:
            pieces.append(int(reference[1]))
        else:
            return None
    pieces.append(replacement[end:].encode())
    return [piece for piece in pieces if piece != b""]
