"""Arrays and settings in one safe file.

The file is a safetensors file: 8 bytes with the length of a header, the header (JSON), the bytes
of the arrays. The header's `__metadata__` holds six texts::

    "format": "edgebelief", "version": "2", "kind": "...", "settings": "{...}",
    "arrays": "{...}", "header": "..."

`arrays` has the SHA-256 of each array's bytes by its name, and `header` that of the header itself,
computed with the text `header` empty. So a damaged file is refused, and the message says which
part is damaged. They are no signature: who can write the file can write the sums. Files of format
1 have neither `arrays` nor `header`, and are still read.

`settings` is strict JSON with unique keys, integers from -2**63 to 2**64 - 1, at most 32 levels.
JSON has no NaN and no infinity; such a float is an object with its 64 bits in hexadecimal, for
instance `{"__float__": "7ff0000000000000"}` for infinity, so the key `__float__` is reserved.

`read` trusts nothing: it looks at the header before it reserves memory for what the header claims,
and nothing in the file is run. It needs less than 10 MB besides the arrays themselves.
"""

import errno
import hashlib
import json
import math
import os
import re
import stat
from collections.abc import Mapping
from io import BufferedReader
from typing import Any, NamedTuple

import numpy as np
from safetensors.numpy import save

from ..atomic import replacing
from ..errors import InputError
from .strictjson import MAX_DEPTH, Damaged, NotStorable, dumps, loads, plain, restored, short

__all__ = ["VERSION", "ModelFile", "ModelFileError", "read", "write"]

VERSION = 2
MAX_FILE_BYTES = 2**28  # far above any posterior we keep; read within 2 s from a common disk
# JSON can make Python objects 35 times its length ('{"":0},'), hence 7 MB of the 10 above.
MAX_HEADER_BYTES = 200_000
MAX_DIMENSIONS = 32  # numpy 2 has 64, others that read the file fewer

_FORMAT = "edgebelief"
_GIVE = "give what GraphLearner.save or `edgebelief fit` wrote"
_METADATA = "__metadata__"
_KEYS = {"format", "version", "kind", "settings"}
_SUMS = {"arrays", "header"}  # from format 2 on
# The names of types in a safetensors file, and in numpy.
_DTYPES = {"BOOL": "b1", "F16": "f2", "F32": "f4", "F64": "f8"}
_DTYPES |= {f"{kind}{8 * size}": f"{kind.lower()}{size}" for kind in "UI" for size in (1, 2, 4, 8)}
# How other files begin, for a helpful message; a model file never gets as far as this.
_FOREIGN = {
    rb"\x80[\x00-\x05]|c[\w.]+\n\w|\([dl]p\d": "a pickle; models are never pickles, and it was not "
    "opened as one",
    rb"PK\x03\x04|PK\x05\x06": "a zip archive, as .npz is",
    rb"\x89HDF": "an HDF5 file",
    rb"\x93NUMPY": "a .npy file",
    rb"\x1f\x8b": "a gzip file",
    rb"[\t\n\r -~]+\Z": "text",
}


class ModelFileError(InputError):
    """A file that is no model of ours, or contents that a model file cannot hold."""


class ModelFile(NamedTuple):
    """What a model file holds: its kind, its settings, its arrays by name."""

    kind: str
    settings: dict[str, Any]
    arrays: dict[str, np.ndarray]


def write(
    path: str | os.PathLike[str],
    kind: str,
    settings: Mapping[str, Any],
    arrays: Mapping[str, np.ndarray],
) -> None:
    """Save arrays and settings in one file, which appears whole or not at all.

    The same contents give the same bytes. See `edgebelief.atomic.replacing` for what a crash
    leaves behind.

    Parameters
    ----------
    path : str or path-like
        The file to make or to replace.
    kind : str
        What the file describes; the reader decides by it.
    settings : mapping
        Dictionaries with text keys, lists, str, int, float, bool and None, nested at most 32 deep.
        Tuples come back as lists; everything else comes back equal, floats to the last bit, NaN
        and infinities too. Their text has at most 200 kB: what is large belongs in `arrays`.
    arrays : mapping of str to numpy.ndarray
        Booleans, integers, and floats of 16, 32 or 64 bits, of any shape.

    Raises
    ------
    ModelFileError
        If the contents cannot be stored so that `read` gives them back.
    OSError
        If the file cannot be written. An older file is still there then.

    Examples
    --------
    >>> import tempfile
    >>> path = os.path.join(tempfile.mkdtemp(), "model.safetensors")
    >>> write(path, "example", {"depth": 3, "prior": [0.1, math.inf]}, {"theta": np.ones(2)})
    >>> read(path).settings
    {'depth': 3, 'prior': [0.1, inf]}
    """
    name = os.fsdecode(path)
    try:
        header, body = _encoded(kind, settings, arrays)
    except (ModelFileError, NotStorable, Damaged) as error:
        raise ModelFileError(f"cannot save the model to {name!r}: {error}") from None
    with replacing(name) as temporary, open(temporary, "wb") as file:
        file.write(len(header).to_bytes(8, "little") + header)
        file.write(body)


def read(path: str | os.PathLike[str]) -> ModelFile:
    """Read what `write` saved, and refuse everything else.

    Nothing in the file is run, whatever it is. The arrays are in memory, owned by the caller, in
    the machine's byte order, sorted by name; the file may change afterwards.

    Parameters
    ----------
    path : str or path-like
        The file.

    Returns
    -------
    ModelFile
        `kind`, `settings` and `arrays`.

    Raises
    ------
    FileNotFoundError
        If there is no such file.
    ModelFileError
        If it cannot be read, is damaged, is something else, or is of a newer version.

    Examples
    --------
    >>> import tempfile
    >>> path = os.path.join(tempfile.mkdtemp(), "model.safetensors")
    >>> write(path, "example", {}, {"theta": np.arange(3)})
    >>> kind, settings, arrays = read(path)
    >>> arrays["theta"]
    array([0, 1, 2])
    """
    name = os.fsdecode(path)  # also refuses a number, which `open` takes for an open file
    try:
        with open(name, "rb", opener=_open_regular) as file:
            return _decoded(file)
    except FileNotFoundError:
        raise FileNotFoundError(errno.ENOENT, "no such model file", name) from None
    except OSError as error:
        problem = f"it cannot be opened or read ({error.strerror})"
    except Damaged as error:
        problem = str(_damaged(str(error)))
    except ValueError as error:  # ModelFileError, or a name that no file can have
        problem = str(error)
    raise ModelFileError(f"cannot read the model file {name!r}: {problem}")


# Writing


def _encoded(
    kind: str, settings: Mapping[str, Any], arrays: Mapping[str, np.ndarray]
) -> tuple[bytes, memoryview]:
    """Return header and body of the file."""
    if type(kind) is not str or not kind:
        raise ModelFileError(f"kind is {short(kind)}, but must be a text that is not empty")
    if not isinstance(settings, Mapping) or not isinstance(arrays, Mapping):
        raise ModelFileError("settings and arrays must be mappings, such as dictionaries")
    metadata = {
        "format": _FORMAT,
        "version": str(VERSION),
        "kind": kind,
        "settings": dumps(plain(dict(settings), "settings", MAX_DEPTH)),
    }
    storable = {name: _storable(name, array) for name, array in arrays.items()}
    size = sum(array.nbytes for array in storable.values())
    room = MAX_FILE_BYTES - MAX_HEADER_BYTES - 8
    if size > room:
        raise ModelFileError(f"its arrays take {size:,} bytes; a file holds {room:,}")
    try:
        sums = {name: _sum(array.reshape(-1).data) for name, array in sorted(storable.items())}
        metadata |= {"arrays": dumps(sums), "header": ""}
        blob = save(storable, metadata)
        start = 8 + int.from_bytes(blob[:8], "little")
        # safetensors writes metadata in random order; with ours, equal models are equal files.
        header = dumps({**json.loads(blob[8:start]), _METADATA: metadata}).encode()
    except UnicodeEncodeError:
        raise ModelFileError("a text in it has a lone surrogate, which is no Unicode") from None
    header += b" " * (-len(header) % 8)  # keeps the arrays aligned in the file; so does the sum
    header = header.replace(_stated(""), _stated(_sum(header)), 1)
    if len(header) > MAX_HEADER_BYTES:
        raise ModelFileError(
            f"its settings and array names take {len(header):,} bytes; a file holds "
            f"{MAX_HEADER_BYTES:,}: keep long lists as arrays"
        )
    body = memoryview(blob)[start:]
    _described(header, len(body))  # what `read` would refuse is refused now
    return header, body


def _sum(data: bytes | memoryview) -> str:
    return hashlib.sha256(data).hexdigest()


def _stated(digest: str) -> bytes:
    # Within another text, such as the settings, its quotes would be escaped: it is there once.
    return f'"header":"{digest}"'.encode()


def _storable(name: str, array: np.ndarray) -> np.ndarray:
    """Return the array as the file has it: little-endian, and contiguous as `save` assumes."""
    if type(name) is not str or name == _METADATA:
        raise ModelFileError(f"an array has the name {short(name)}; use another text")
    where = f"the array {short(name)}"
    if not isinstance(array, np.ndarray) or isinstance(array, np.ma.MaskedArray):
        raise ModelFileError(f"{where} is a {type(array).__name__}: pass a plain numpy array")
    if f"{array.dtype.kind}{array.dtype.itemsize}" not in _DTYPES.values():
        raise ModelFileError(
            f"{where} has dtype {array.dtype}; a file holds bool, int, uint and float up to 64 bits"
        )
    if array.ndim > MAX_DIMENSIONS:
        raise ModelFileError(f"{where} has {array.ndim} dimensions, more than {MAX_DIMENSIONS}")
    # Not `ascontiguousarray`, which gives an array without dimensions one.
    result = np.asarray(array, array.dtype.newbyteorder("<"), order="C")
    if not _are_booleans(result):
        raise ModelFileError(f"{where} is boolean but has bytes other than 0 and 1")
    return result


def _are_booleans(array: np.ndarray) -> bool:
    # Any other byte is undefined behaviour in numpy: True, and yet not equal to True.
    return array.dtype != bool or bool(array.view(np.uint8).max(initial=0) <= 1)


# Reading


class _Entry(NamedTuple):
    name: str
    dtype: np.dtype
    shape: tuple[int, ...]
    begin: int
    end: int
    sum: str | None  # None in a file of format 1


def _open_regular(path: str, flags: int) -> int:
    # The path is checked before it is opened, for opening a device can have effects, and the open
    # file is checked again. O_NONBLOCK: a pipe put there in between does not make us wait for its
    # writer.
    _require_regular(os.stat(path).st_mode)
    return os.open(path, flags | getattr(os, "O_NONBLOCK", 0))


def _require_regular(mode: int) -> None:
    if stat.S_ISDIR(mode):
        raise ModelFileError("it is a folder: give the name of a file")
    if not stat.S_ISREG(mode):
        raise ModelFileError("it is a device, pipe or socket: copy the model into a file")


def _decoded(file: BufferedReader) -> ModelFile:
    """Return what the file holds. Every byte is read once, so that none can change once checked."""
    status = os.fstat(file.fileno())
    _require_regular(status.st_mode)
    if status.st_size > MAX_FILE_BYTES:
        raise ModelFileError(
            f"it has {status.st_size:,} bytes, but no model exceeds {MAX_FILE_BYTES:,}: give a "
            "file that edgebelief saved"
        )
    start = file.read(8)
    length = int.from_bytes(start, "little")
    if len(start) < 8 or length > MAX_HEADER_BYTES:
        raise ModelFileError(_guess(start + file.read(56)))
    header = file.read(length)
    if len(header) < length:
        raise _damaged("it ends within its header")
    kind, settings, entries = _described(header, status.st_size - 8 - length)
    arrays = {entry.name: _array(file, entry) for entry in entries}
    return ModelFile(kind, settings, dict(sorted(arrays.items())))


def _guess(start: bytes) -> str:
    if not start:
        return "it is empty: save the model again, or copy the file again"
    for beginning, what in _FOREIGN.items():
        if re.match(beginning, start):
            return f"it is no edgebelief model, but looks like {what}: {_GIVE}"
    return f"it is no edgebelief model: {_GIVE}"


def _damaged(how: str) -> ModelFileError:
    return ModelFileError(f"it is damaged ({how}): copy it again, or save the model again")


def _described(header: bytes, size: int) -> tuple[str, dict[str, Any], list[_Entry]]:
    """Return kind, settings, and where the arrays lie in the `size` bytes after the header."""
    try:
        text = header.decode()
    except UnicodeDecodeError:
        raise _damaged("its header is not UTF-8") from None
    content = loads(text, 3)
    metadata = content.pop(_METADATA, None) if type(content) is dict else None
    if type(metadata) is not dict or metadata.get("format") != _FORMAT:
        raise ModelFileError(f"it was not saved by edgebelief: {_GIVE}")
    version = metadata.get("version")
    if type(version) is not str or not re.fullmatch("[1-9][0-9]{0,8}", version):
        raise _damaged("it has no version")
    if int(version) > VERSION:  # before all else: the rest may have changed
        raise ModelFileError(
            f"it was written by a newer edgebelief (format {version}; this one reads {VERSION}): "
            "upgrade"
        )
    has_sums = int(version) > 1
    expected = _KEYS | _SUMS if has_sums else _KEYS
    if set(metadata) != expected or not all(type(text) is str for text in metadata.values()):
        raise _damaged(f"its metadata is not {', '.join(sorted(expected))}")
    if has_sums:
        stated = metadata["header"]
        if _sum(header.replace(_stated(stated), _stated(""), 1)) != stated:
            raise _damaged("its header, with the settings, is not as it was saved")
    kind, settings = metadata["kind"], metadata["settings"]
    if not kind:
        raise _damaged("it has no kind")
    settings = loads(settings, MAX_DEPTH + 1, restored)  # one more for a float's own object
    if type(settings) is not dict:
        raise _damaged("its settings are no dictionary")
    sums = loads(metadata["arrays"], 1) if has_sums else dict.fromkeys(content)
    if type(sums) is not dict or set(sums) != set(content):
        raise _damaged("it has no checksum for each of its arrays")
    entries = [_entry(name, entry, sums[name]) for name, entry in content.items()]
    entries.sort(key=lambda entry: (entry.begin, entry.end))
    end = 0
    for entry in entries:
        if entry.begin != end:
            raise _damaged(f"the array {short(entry.name)} overlaps another or leaves a gap")
        end = entry.end
    if end != size:
        raise _damaged(f"its arrays take {end:,} bytes, but it has {size:,} for them")
    return kind, settings, entries


def _entry(name: str, entry: object, digest: str | None) -> _Entry:
    """Return where an array lies, by the header; refuse a claim that contradicts itself."""
    problem = _damaged(f"its header does not describe the array {short(name)}")
    if not isinstance(entry, dict) or set(entry) != {"dtype", "shape", "data_offsets"}:
        raise problem
    dtype, shape, offsets = entry["dtype"], entry["shape"], entry["data_offsets"]
    if type(dtype) is not str or dtype not in _DTYPES:
        raise _damaged(f"the array {short(name)} has the unknown dtype {short(dtype)}")
    if not _are_sizes(shape) or not _are_sizes(offsets) or len(offsets) != 2:
        raise problem
    itemsize = int(_DTYPES[dtype][1:])
    begin, end = offsets
    # numpy counts the other dimensions of an empty array, too, and has 63 bits for them.
    too_large = math.prod(max(n, 1) for n in shape) * itemsize >= 2**63
    if too_large or end - begin != math.prod(shape) * itemsize:
        raise problem
    type_ = np.dtype(_DTYPES[dtype]).newbyteorder("<")
    return _Entry(name, type_, tuple(shape), begin, end, digest)


def _are_sizes(value: object) -> bool:
    return (
        type(value) is list
        and len(value) <= MAX_DIMENSIONS
        and all(type(n) is int and n >= 0 for n in value)  # not True, which is an int as well
    )


def _array(file: BufferedReader, entry: _Entry) -> np.ndarray:
    data = np.empty(entry.end - entry.begin, np.uint8)
    if file.readinto(data.data) != data.size:
        raise _damaged("it became shorter while it was read")
    if entry.sum is not None and _sum(data.data) != entry.sum:
        raise _damaged(f"the array {short(entry.name)} is not as it was saved")
    array = data.view(entry.dtype).reshape(entry.shape)
    if not _are_booleans(array):
        raise _damaged(f"the array {short(entry.name)} is boolean but has bytes besides 0 and 1")
    return array.astype(entry.dtype.newbyteorder("="), copy=False)
