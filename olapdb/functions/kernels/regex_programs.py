"""Regular expressions as programs of the kernel that matches ASCII texts, `native/regexes.c`.

Read is what most patterns have: characters, classes, groups, alternatives, repetition (also lazy), and the ends of the
text. What RE2 has beside that is left to it, and so are wrong patterns, so that an error is RE2's.

    ^https?://([^/]+)    BEGIN "http" RUN(s, 0, 1) "://" SAVE 2 RUN_ALL([^/], 1, -1) SAVE 3 MATCH
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import TypeAlias

import numpy as np

from olapdb.native.regexes import Program
from olapdb.records import dataclass

_MATCH, _CHAR, _SET, _RUN, _RUN_ALL, _LAZY, _SPLIT, _JUMP, _SAVE, _BEGIN, _END = range(11)
_SET_BYTES = 128
_INSTRUCTIONS_MAX = 300
_SETS_MAX = 64
_GROUPS_MAX = 9
_REPEATS_MAX = 1_000
_PROGRAMS_KEPT = 256

Bytes: TypeAlias = frozenset[int]
"""The bytes that one place of a text may have."""

_ALL = frozenset(range(_SET_BYTES))
_DIGITS = frozenset(b"0123456789")
_LOWER = frozenset(b"abcdefghijklmnopqrstuvwxyz")
_UPPER = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZ")
_WORD = _DIGITS | _LOWER | _UPPER | {ord("_")}
_CLASSES = {"d": _DIGITS, "w": _WORD, "s": frozenset(b"\t\n\f\r ")}
_CONTROLS = {"n": 10, "t": 9, "r": 13, "f": 12, "v": 11, "a": 7}
_FLAGS = re.compile(r"\(\?([is]+)\)")
_NAME = re.compile(r"\?P<([A-Za-z_][A-Za-z0-9_]*)>")
_HEX = re.compile("[0-7][0-9a-fA-F]")
_COUNTS = re.compile(r"\{([0-9]+)(?:(,)([0-9]*))?\}")


class _Unknown(Exception):
    """The pattern has a part that is not read here."""


@dataclass(frozen=True)
class _Repeat:
    """A node, `least` to `most` times, without end if `most` is None."""

    node: Node
    least: int
    most: int | None
    lazy: bool


@dataclass(frozen=True)
class _Group:
    """A group that captures, with its number."""

    number: int
    node: Node


@dataclass(frozen=True)
class _Sequence:
    """Nodes that follow one another."""

    nodes: tuple[Node, ...]


@dataclass(frozen=True)
class _Branch:
    """Alternatives, the first of which is preferred."""

    nodes: tuple[Node, ...]


Node: TypeAlias = "Bytes | int | _Repeat | _Group | _Sequence | _Branch"
"""A part of a pattern. An integer is _BEGIN or _END."""


@lru_cache(_PROGRAMS_KEPT)
def program_of(pattern: str) -> Program | None:
    """Return the program of a regular expression in RE2's syntax; None where RE2 has to match it."""
    try:
        parser = _Parser(pattern)
        node = parser.whole()
        return _Compiler(parser.names).program(node)
    except (_Unknown, RecursionError):
        return None


class _Parser:
    """Reads a pattern from left to right."""

    def __init__(self, pattern: str) -> None:
        self.names: list[str | None] = []
        self._text = pattern
        self._at = 0
        self._ignores_case = self._dot_is_all = False
        if not pattern.isascii():
            raise _Unknown
        while flags := _FLAGS.match(pattern, self._at):
            self._at = flags.end()
            self._ignores_case |= "i" in flags[1]
            self._dot_is_all |= "s" in flags[1]

    def whole(self) -> Node:
        """Read the whole pattern."""
        node = self._branch()
        if self._at < len(self._text):
            raise _Unknown
        return node

    def _branch(self) -> Node:
        """Read alternatives, up to a closing parenthesis or the end."""
        nodes = [self._sequence()]
        while self._takes("|"):
            nodes.append(self._sequence())
        return nodes[0] if len(nodes) == 1 else _Branch(tuple(nodes))

    def _sequence(self) -> Node:
        """Read nodes that follow one another, each with its repetition."""
        nodes: list[Node] = []
        while self._at < len(self._text) and self._text[self._at] not in "|)":
            nodes.append(self._repeated(self._atom()))
        return nodes[0] if len(nodes) == 1 else _Sequence(tuple(nodes))

    def _repeated(self, node: Node) -> Node:
        """Read what repeats the node, if anything does."""
        counts = _COUNTS.match(self._text, self._at)
        if counts:
            self._at = counts.end()
            least = int(counts[1])
            most = (int(counts[3]) if counts[3] else None) if counts[2] else least
        elif self._at < len(self._text) and self._text[self._at] in "*+?":
            sign = self._text[self._at]
            self._at += 1
            least, most = int(sign == "+"), 1 if sign == "?" else None
        else:
            return node
        lazy = self._takes("?")
        is_wrong = isinstance(node, int) or self._text.startswith(("*", "+", "?", "{"), self._at)
        if is_wrong or max(least, most or 0) > _REPEATS_MAX or (most is not None and most < least):
            raise _Unknown
        return _Repeat(node, least, most, lazy)

    def _atom(self) -> Node:
        """Read a character, a class, a group or an end."""
        char = self._text[self._at]
        self._at += 1
        match char:
            case "^":
                return _BEGIN
            case "$":
                return _END
            case ".":
                return _ALL if self._dot_is_all else _ALL - {10}
            case "[":
                return self._class()
            case "(":
                return self._group()
            case "\\":
                return self._folded(self._escaped())
            case "*" | "+" | "?" | "{" | "}" | "]":
                raise _Unknown
            case _:
                return self._folded(frozenset((ord(char),)))

    def _group(self) -> Node:
        """Read a group behind its opening parenthesis."""
        number = None
        if not self._text.startswith("?:", self._at):
            name = _NAME.match(self._text, self._at)
            if name is None and self._text.startswith("?", self._at):
                raise _Unknown
            if name is not None and name[1] in self.names:
                raise _Unknown
            self._at = self._at if name is None else name.end()
            self.names.append(None if name is None else name[1])
            number = len(self.names)
        else:
            self._at += 2
        node = self._branch()
        if not self._takes(")"):
            raise _Unknown
        return node if number is None else _Group(number, node)

    def _class(self) -> Bytes:
        """Read a class behind its opening bracket."""
        negated = self._takes("^")
        members: set[int] = set()
        is_first = True
        while is_first or not self._text.startswith("]", self._at):
            first = self._member()
            if (
                self._text.startswith("-", self._at)
                and self._text[self._at + 1 : self._at + 2] != "]"
            ):
                self._at += 1
                last = self._member()
                if len(first) != 1 or len(last) != 1 or max(last) < max(first):
                    raise _Unknown
                first = frozenset(range(max(first), max(last) + 1))
            members |= first
            is_first = False
        self._at += 1
        folded = self._folded(frozenset(members))
        return _ALL - folded if negated else folded

    def _member(self) -> Bytes:
        """Read a character or an escaped class within a class."""
        char = self._text[self._at : self._at + 1]
        self._at += 1
        if not char or (char == "[" and self._text[self._at : self._at + 1] in (":", ".", "=")):
            raise _Unknown
        return self._escaped() if char == "\\" else frozenset((ord(char),))

    def _escaped(self) -> Bytes:
        """Read what stands behind a backslash: a class, a control character, a code, or punctuation."""
        char = self._text[self._at : self._at + 1]
        self._at += 1
        if char.lower() in _CLASSES and char:
            members = _CLASSES[char.lower()]
            return members if char.islower() else _ALL - members
        if char in _CONTROLS and char:
            return frozenset((_CONTROLS[char],))
        code = _HEX.match(self._text, self._at)
        if char == "x" and code:
            self._at = code.end()
            return frozenset((int(code[0], 16),))
        if not char or ord(char) in _WORD:
            raise _Unknown
        return frozenset((ord(char),))

    def _folded(self, members: Bytes) -> Bytes:
        """Return the bytes with their other case too, where the pattern ignores case."""
        if not self._ignores_case:
            return members
        return members | {byte ^ 32 for byte in members if byte in _LOWER or byte in _UPPER}

    def _takes(self, text: str) -> bool:
        """Return whether `text` comes next, and go behind it."""
        if not self._text.startswith(text, self._at):
            return False
        self._at += len(text)
        return True


class _Compiler:
    """Writes the instructions of a pattern with the named groups `names`."""

    def __init__(self, names: list[str | None]) -> None:
        self._names = tuple(names)
        self._code: list[list[int]] = []
        self._sets: dict[Bytes, int] = {}
        if len(names) > _GROUPS_MAX:
            raise _Unknown

    def program(self, node: Node) -> Program:
        """Return the program of a whole pattern."""
        self._write(node)
        self._emit(_MATCH)
        self._commit_runs()
        first, may_be_empty = self._first(0)
        anchored = all(self._code[at][0] == _BEGIN for at in self._starts(0))
        single = next(iter(first)) if len(first) == 1 and not may_be_empty else -1
        table = -1 if may_be_empty else self._set(first)
        header = [
            2 * (len(self._names) + 1),
            int(anchored),
            table,
            single,
            self._leading_run(),
            0,
            0,
            0,
        ]
        words = header + [word for instruction in self._code for word in instruction]
        tables = np.zeros((max(len(self._sets), 1), _SET_BYTES), np.uint8)
        for members, number in self._sets.items():
            tables[number, sorted(members)] = 1
        return Program(np.array(words, np.int32), tables.reshape(-1), self._names, may_be_empty)

    def _emit(self, operation: int, *arguments: int) -> int:
        """Append an instruction; return its place."""
        if len(self._code) >= _INSTRUCTIONS_MAX:
            raise _Unknown
        self._code.append([operation, *arguments, *[0] * (3 - len(arguments))])
        return len(self._code) - 1

    def _set(self, members: Bytes) -> int:
        """Return the number of a set."""
        number = self._sets.setdefault(members, len(self._sets))
        if number >= _SETS_MAX:
            raise _Unknown
        return number

    def _write(self, node: Node) -> None:
        """Write the instructions of a node."""
        match node:
            case int():
                self._emit(node)
            case frozenset():
                if len(node) == 1:
                    self._emit(_CHAR, next(iter(node)))
                else:
                    self._emit(_SET, self._set(node))
            case _Sequence(nodes=nodes):
                for part in nodes:
                    self._write(part)
            case _Group(number=number, node=inner):
                self._emit(_SAVE, 2 * number)
                self._write(inner)
                self._emit(_SAVE, 2 * number + 1)
            case _Branch(nodes=nodes):
                self._write_branch(nodes)
            case _Repeat():
                self._write_repeat(node)

    def _write_branch(self, nodes: tuple[Node, ...]) -> None:
        """Write alternatives, each of which jumps behind the last one."""
        jumps = []
        for node in nodes[:-1]:
            split = self._emit(_SPLIT, len(self._code) + 1)
            self._write(node)
            jumps.append(self._emit(_JUMP))
            self._code[split][2] = len(self._code)
        self._write(nodes[-1])
        for jump in jumps:
            self._code[jump][1] = len(self._code)

    def _write_repeat(self, repeat: _Repeat) -> None:
        """Write a repetition: of one place as a run; of a group by its copies, and by a loop where it has no end."""
        node, least, most = repeat.node, repeat.least, repeat.most
        if isinstance(node, frozenset):
            end = -1 if most is None else most
            self._emit(_LAZY if repeat.lazy else _RUN, self._set(node), least, end)
            return
        if _may_be_empty(node):
            raise _Unknown
        for _ in range(least):
            self._write(node)
        if most is None:
            self._write_optional(node, repeat.lazy, loops=True)
        elif most - least > 1:
            raise _Unknown
        elif most > least:
            self._write_optional(node, repeat.lazy, loops=False)

    def _write_optional(self, node: Node, lazy: bool, *, loops: bool) -> None:
        """Write a node that may be absent, and with `loops` may come again."""
        split = self._emit(_SPLIT)
        self._write(node)
        if loops:
            self._emit(_JUMP, split)
        ways = [split + 1, len(self._code)]
        self._code[split][1:3] = reversed(ways) if lazy else ways

    def _commit_runs(self) -> None:
        """Let runs keep all their bytes where no shorter run could match: what follows begins with none of them, and does
        not ask for the beginning of the text, where a run has none."""
        sets = {number: members for members, number in self._sets.items()}
        for at, instruction in enumerate(self._code):
            operation, members, _, most = instruction
            if operation != _RUN or most != -1 or sets[members] & self._first(at + 1)[0]:
                continue
            if all(self._code[place][0] != _BEGIN for place in self._starts(at + 1)):
                instruction[0] = _RUN_ALL

    def _leading_run(self) -> int:
        """Return the set of a run of any length with which the pattern begins, if it keeps all its bytes; else -1."""
        code = next(c for c in self._code if c[0] != _SAVE)
        return code[1] if code[0] == _RUN_ALL and code[2] > 0 else -1

    def _first(self, at: int) -> tuple[Bytes, bool]:
        """Return the bytes with which a match from instruction `at` on may begin, and whether it may have none."""
        sets = {number: members for members, number in self._sets.items()}
        first: set[int] = set()
        may_be_empty = False
        for place in self._starts(at):
            operation, argument, _, _ = self._code[place]
            if operation == _CHAR:
                first.add(argument)
            elif operation in (_SET, _RUN, _RUN_ALL, _LAZY):
                first |= sets[argument]
            elif operation == _MATCH:
                may_be_empty = True
            elif operation in (_BEGIN, _END):
                others, is_empty = self._first(place + 1)
                first |= others
                may_be_empty |= is_empty
        return frozenset(first), may_be_empty

    def _starts(self, at: int) -> Iterator[int]:
        """Yield the instructions at which a match from `at` on may read its first byte or test the text's ends, and MATCH
        where it may read none."""
        seen: set[int] = set()
        waiting = [at]
        while waiting:
            place = waiting.pop()
            if place in seen:
                continue
            seen.add(place)
            operation, first, second, _ = self._code[place]
            if operation == _SPLIT:
                waiting += [first, second]
            elif operation == _JUMP:
                waiting.append(first)
            elif operation == _SAVE:
                waiting.append(place + 1)
            else:
                yield place
                if operation in (_RUN, _RUN_ALL, _LAZY) and second == 0:
                    waiting.append(place + 1)


def _may_be_empty(node: Node) -> bool:
    """Return whether a node may match no byte."""
    match node:
        case int():
            return True
        case frozenset():
            return False
        case _Sequence(nodes=nodes):
            return all(map(_may_be_empty, nodes))
        case _Branch(nodes=nodes):
            return any(map(_may_be_empty, nodes))
        case _Group(node=inner):
            return _may_be_empty(inner)
        case _Repeat(node=inner, least=least):
            return least == 0 or _may_be_empty(inner)
