"""encrypt, decrypt, tryDecrypt, aes_encrypt_mysql and aes_decrypt_mysql: AES in its modes.

Rows of one key are computed at once; Python is called once for each distinct key.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from olapdb.errors import BadArguments, OpensslError
from olapdb.functions import scalar
from olapdb.functions.base import Argument
from olapdb.functions.kernels import aes, cipher_modes, columns
from olapdb.functions.strings.arguments import TEXT_TYPES
from olapdb.records import dataclass
from olapdb.types import STRING, DataType, make_nullable

_MODE = re.compile(r"aes-(128|192|256)-(ecb|cbc|cfb1|cfb8|cfb|ofb|ctr|gcm)")
_PADDED = frozenset({"ecb", "cbc"})
_VECTOR_BYTES = 16

Bytes = tuple[np.ndarray, np.ndarray]
"""Texts as (offsets from 0, bytes)."""


@dataclass(frozen=True)
class _Cipher:
    """The variant of a cipher function: encrypt or decrypt, MySQL's rules of keys or not, NULL or an error for what
    is not decrypted."""

    decrypt: bool = False
    mysql: bool = False
    or_null: bool = False

    def rule(
        self, name: str, types: tuple[DataType, ...], arguments: Sequence[Argument]
    ) -> DataType:
        """Return String, Nullable for tryDecrypt; raise for a bad mode or other types.

        Raises IllegalColumn, IllegalTypeOfArgument and BadArguments."""
        scalar.require(name, types, TEXT_TYPES, "a String")
        mode = scalar.constant_text(name, arguments, 0, "the mode")
        match = _MODE.fullmatch(mode)
        if match is None:
            raise BadArguments(f"Invalid mode: {mode}.", hint="Such as 'aes-256-gcm'.")
        if self.mysql and match[2] in ("gcm", "ctr"):
            raise BadArguments(f"{name} has no mode {mode}.", hint="encrypt has it.")
        if len(types) > 4 and match[2] != "gcm":
            raise BadArguments("Additional data is for modes of GCM only.")
        return make_nullable(STRING) if self.or_null else STRING

    def kernel(self, arrays: list[pa.Array], call: scalar.Invocation) -> pa.Array:
        """Encrypt or decrypt the rows of each key together, and return them in the order of the rows.

        Raises BadArguments for sizes that do not fit, OpensslError for what is not decrypted."""
        match = _MODE.fullmatch(str(call.constant(0)))
        assert match is not None
        texts = [columns.binary(array) for array in arrays[1:]]
        encoded = pc.dictionary_encode(texts[1])
        codes = columns.numpy_values(encoded.indices)
        parts, order = [], []
        for code, key in enumerate(encoded.dictionary.to_pylist()):
            rows = np.flatnonzero(codes == code)
            run = _Run(match[2], self._key(key, int(match[1]) // 8), self)
            chosen = [text.take(pa.array(rows)) for text in (texts[0], *texts[2:])]
            parts.append(run.result(chosen, rows))
            order.append(rows)
        if not parts:
            return pa.nulls(0, pa.string())
        places = np.argsort(np.concatenate(order), kind="stable")
        return pa.concat_arrays(parts).take(pa.array(places))

    def _key(self, key: bytes, size: int) -> np.ndarray:
        """Return the round keys of AES; MySQL's functions fold a key that is longer than `size` bytes. Raises
        BadArguments for another size."""
        if self.mysql and len(key) > size:
            folded = np.zeros(size, np.uint8)
            for at in range(0, len(key), size):
                part = np.frombuffer(key[at : at + size], np.uint8)
                folded[: len(part)] ^= part
            key = folded.tobytes()
        if len(key) != size:
            raise BadArguments(f"Invalid key size: {len(key)}, expected {size}.")
        return aes.round_keys(key)


@dataclass(frozen=True)
class _Run:
    """The encryption or decryption of the rows that have one key."""

    mode: str
    keys: np.ndarray
    cipher: _Cipher

    def result(self, texts: list[pa.Array], rows: np.ndarray) -> pa.Array:
        """Return the results for (text[, IV[, additional data]]); `rows` are the rows' positions in the block, for
        errors."""
        data = columns.bytes_of(texts[0])
        vectors = columns.bytes_of(texts[1]) if len(texts) > 1 else _empty(len(rows))
        if self.mode == "gcm":
            additional = columns.bytes_of(texts[2]) if len(texts) > 2 else _empty(len(rows))
            return self._with_tag(data, vectors, additional, rows)
        blocks = self._vectors(vectors, rows)
        padded = self.mode in _PADDED
        if not self.cipher.decrypt:
            given = cipher_modes.in_blocks(*data, padded=padded)
            sizes = np.diff(given.starts) * 16 if padded else given.sizes
            return self._finished(given, blocks, sizes, None)
        sizes = np.diff(data[0])
        given = cipher_modes.in_blocks(*data)
        if not padded:
            return self._finished(given, blocks, sizes, None)
        return self._unpadded(given, blocks, rows)

    def _finished(
        self,
        given: cipher_modes.Texts,
        vectors: np.ndarray,
        sizes: np.ndarray,
        valid: np.ndarray | None,
    ) -> pa.Array:
        """Run the mode over the texts' blocks and return the first `sizes` bytes of each; NULL where `valid` is
        false."""
        blocks = cipher_modes.run(self.mode, given, self.keys, vectors, decrypt=self.cipher.decrypt)
        made = cipher_modes.Texts(blocks, given.starts, given.sizes)
        return columns.strings_from(*cipher_modes.in_bytes(made, sizes), valid)

    def _vectors(self, vectors: Bytes, rows: np.ndarray) -> np.ndarray:
        """Return the IVs as blocks of 16 bytes; an empty IV is zeros, and MySQL's functions cut longer ones.

        Raises BadArguments for an IV of another size, or one in the mode ECB."""
        offsets, data = vectors
        sizes = np.diff(offsets)
        longer = (sizes > _VECTOR_BYTES) & self.cipher.mysql
        wrong = (sizes != 0) & (sizes != _VECTOR_BYTES) & ~longer
        if self.mode == "ecb":
            wrong = (sizes != 0) & (not self.cipher.mysql)
        if wrong.any():
            at = int(np.argmax(wrong))
            expected = 0 if self.mode == "ecb" else _VECTOR_BYTES
            raise BadArguments(f"Invalid IV size: {sizes[at]}, expected {expected}.")
        blocks = np.zeros((len(sizes), _VECTOR_BYTES), np.uint8)
        given = np.flatnonzero(sizes)
        blocks[given] = data[offsets[given][:, None] + np.arange(_VECTOR_BYTES)]
        return blocks

    def _unpadded(
        self, given: cipher_modes.Texts, vectors: np.ndarray, rows: np.ndarray
    ) -> pa.Array:
        """Decrypt texts and drop their PKCS#7 padding. A text without it raises OpensslError with its row, or
        becomes NULL in tryDecrypt."""
        whole = given.sizes % 16 == 0
        blocks = cipher_modes.run(self.mode, given, self.keys, vectors, decrypt=True)
        filled = given.sizes > 0
        last = blocks[np.maximum(given.starts[1:] - 1, 0)] if len(blocks) else _no_blocks(filled)
        padding = np.where(filled, last[:, -1], 0).astype(np.int64)
        is_pad = np.arange(16) >= 16 - padding[:, None]
        right = ((last == last[:, -1:]) | ~is_pad).all(axis=1) & (padding > 0) & (padding <= 16)
        valid = self._checked(whole & (right | ~filled), rows, "The padding is not PKCS#7's.")
        made = cipher_modes.Texts(blocks, given.starts, given.sizes)
        sizes = np.where(valid, given.sizes - padding, 0)
        return columns.strings_from(*cipher_modes.in_bytes(made, sizes), valid)

    def _with_tag(
        self, data: Bytes, vectors: Bytes, additional: Bytes, rows: np.ndarray
    ) -> pa.Array:
        """Encrypt texts in GCM with the tag behind them, or decrypt texts that have it.

        Raises BadArguments for sizes that do not fit, OpensslError for a wrong tag."""
        sizes = np.diff(vectors[0])
        if (sizes == 0).any():
            raise BadArguments("Invalid IV size 0 != expected size 12.")
        others = [cipher_modes.in_blocks(*vectors), cipher_modes.in_blocks(*additional)]
        if not self.cipher.decrypt:
            given = cipher_modes.in_blocks(*data)
            blocks, tags = cipher_modes.gcm(given, self.keys, *others, decrypt=False)
            made = cipher_modes.Texts(blocks, given.starts, given.sizes)
            body = columns.strings_from(*cipher_modes.in_bytes(made, given.sizes))
            return _joined(body, tags)
        sizes = np.diff(data[0]) - cipher_modes.TAG_BYTES
        if (sizes < 0).any():
            raise BadArguments("Encrypted data is smaller than the tag of GCM.")
        wanted = data[1][data[0][1:][:, None] + np.arange(-cipher_modes.TAG_BYTES, 0)]
        kept = np.arange(len(data[1])) < np.repeat(data[0][:-1] + sizes, np.diff(data[0]))
        given = cipher_modes.in_blocks(columns.offsets_from_counts(sizes), data[1][kept])
        blocks, tags = cipher_modes.gcm(given, self.keys, *others, decrypt=True)
        valid = self._checked((tags == wanted).all(axis=1), rows, "The tag is another one.")
        made = cipher_modes.Texts(blocks, given.starts, given.sizes)
        return columns.strings_from(*cipher_modes.in_bytes(made, np.where(valid, sizes, 0)), valid)

    def _checked(self, right: np.ndarray, rows: np.ndarray, reason: str) -> np.ndarray:
        """Return `right` as given: it marks the rows that decrypted. Raises OpensslError for the first other one,
        unless such rows become NULL."""
        if not right.all() and not self.cipher.or_null:
            row = int(rows[np.argmin(right)])
            raise OpensslError(f"Cannot decrypt. {reason}", hint="Use tryDecrypt.").at_row(row)
        return right


def _empty(rows: int) -> Bytes:
    """Return `rows` empty texts, as offsets and bytes."""
    return np.zeros(rows + 1, np.int64), np.zeros(0, np.uint8)


def _no_blocks(rows: np.ndarray) -> np.ndarray:
    """Return a block of 16 zero bytes for each row."""
    return np.zeros((len(rows), 16), np.uint8)


def _joined(texts: pa.Array, tags: np.ndarray) -> pa.Array:
    """Return each text with its tag behind it."""
    ends = pa.Array.from_buffers(
        pa.binary(cipher_modes.TAG_BYTES), len(tags), [None, pa.py_buffer(tags.tobytes())]
    )
    whole = pc.binary_join_element_wise(columns.binary(texts), columns.binary(ends), b"")
    return columns.text(whole)


def _define(name: str, cipher: _Cipher, most: int) -> scalar.ScalarDefinition:
    """Define a function of (mode, text, key[, IV[, additional data]])."""
    return scalar.define(name, cipher.rule, cipher.kernel, count=(3, most))


DEFINITIONS: tuple[scalar.ScalarDefinition, ...] = (
    _define("encrypt", _Cipher(), 5),
    _define("decrypt", _Cipher(decrypt=True), 5),
    _define("tryDecrypt", _Cipher(decrypt=True, or_null=True), 5),
    _define("aes_encrypt_mysql", _Cipher(mysql=True), 4),
    _define("aes_decrypt_mysql", _Cipher(decrypt=True, mysql=True), 4),
)
