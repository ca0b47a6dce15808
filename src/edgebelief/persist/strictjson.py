"""Strict JSON, for texts that may be hostile.

Keys are unique, integers have 64 bits, floats are kept to the last bit, the depth is bounded. JSON
has no NaN and no infinity: `plain` makes such a float an object with its 64 bits in hexadecimal,
and `restored` turns it back.
"""

import json
import math
import re
import reprlib
import struct
from collections.abc import Callable
from typing import Any

from ..errors import InputError

MAX_DEPTH = 32  # of settings; a raised recursion limit would let deep JSON overflow C's stack
FLOAT = "__float__"
Pairs = list[tuple[str, Any]]


class NotStorable(InputError):
    """A value that JSON cannot hold and give back."""


class Damaged(InputError):
    """A text that `dumps` did not write."""


def plain(value: Any, where: str, depth: int) -> Any:
    """Return the value in JSON's own types; refuse subclasses, which would come back as a base."""
    if type(value) is int and not -(2**63) <= value < 2**64:
        raise NotStorable(f"{where} does not fit in 64 bits")
    if value is None or type(value) in (bool, str, int):
        return value
    if type(value) is float:
        return value if math.isfinite(value) else {FLOAT: struct.pack(">d", value).hex()}
    if depth == 0:  # catches a list that contains itself, too
        raise NotStorable(f"its settings are nested deeper than {MAX_DEPTH} levels")
    if type(value) in (list, tuple):
        return [plain(item, f"{where}[{i}]", depth - 1) for i, item in enumerate(value)]
    if type(value) is dict:
        for key in value:
            if type(key) is not str or key == FLOAT:
                raise NotStorable(
                    f"{where} has the key {short(key)}; keys are texts other than {FLOAT!r}"
                )
        return {k: plain(item, f"{where}[{short(k)}]", depth - 1) for k, item in value.items()}
    raise NotStorable(
        f"{where} is of type {type(value).__name__}; settings hold dict, list, str, int, float, "
        "bool and None: convert it, or keep it as an array"
    )


def dumps(value: object) -> str:
    """Return strict JSON without spaces."""
    return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))


def unique(pairs: Pairs) -> dict[str, Any]:
    """Return a dictionary; refuse a key that is there twice."""
    result = dict(pairs)
    if len(result) != len(pairs):
        raise Damaged("its header has the same key twice")
    return result


def loads(text: str, depth: int, make_object: Callable[[Pairs], Any] = unique) -> Any:
    """Read strict JSON; refuse what `json.loads` takes beyond the standard or beyond our limits."""
    unescaped = text.replace("\\\\", "")
    # `dumps` writes characters, not escapes: it never writes an escaped surrogate, lone or paired.
    if re.search(r"\\u[dD][89a-fA-F]", unescaped):
        raise Damaged("a text in its header has a surrogate")
    if is_deep(unescaped, depth):
        raise Damaged("its header is nested too deeply")
    try:
        return json.loads(
            text,
            object_pairs_hook=make_object,
            parse_int=_integer,
            parse_float=_float,
            parse_constant=_constant,
        )
    except json.JSONDecodeError:
        raise Damaged("its header is not JSON") from None


def is_deep(text: str, depth: int) -> bool:
    """Whether a JSON text has lists and objects nested deeper than `depth`."""
    outside = "".join(re.sub(r"\\.", "", text).split('"')[::2])  # of texts, without escapes
    level = 0
    for mark in re.finditer(r"[\[\]{}]", outside):
        level += 1 if mark[0] in "[{" else -1
        if level > depth:
            return True
    return False


def restored(pairs: Pairs) -> dict[str, Any] | float:
    """Return a dictionary of the settings, or the float that JSON could not hold."""
    result = unique(pairs)
    if FLOAT not in result:
        return result
    bits = result[FLOAT]
    if len(result) == 1 and type(bits) is str and re.fullmatch("[0-9a-f]{16}", bits):
        number = struct.unpack(">d", bytes.fromhex(bits))[0]
        if not math.isfinite(number):
            return number
    raise Damaged("its settings have a float that is none")


def _integer(text: str) -> int:
    if len(text) > 20 or not -(2**63) <= int(text) < 2**64:  # 20 digits: time is quadratic in them
        raise Damaged("a number in its header does not fit in 64 bits")
    return int(text)


def _float(text: str) -> float:
    if len(text) > 24 or math.isinf(float(text)):  # 24: "-2.2250738585072014e-308", the longest
        raise Damaged("a number in its header is no float of 64 bits")
    return float(text)


def _constant(text: str) -> float:
    raise Damaged(f"its header has {text}, which is not JSON")


def short(value: object) -> str:
    """Return `repr` in few characters and on one line, for messages: the value may be hostile."""
    return reprlib.repr(value)
