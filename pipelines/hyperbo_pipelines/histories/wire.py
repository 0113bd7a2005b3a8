"""The fields of a message of protocol buffers, without its schema: what Vizier and Weights & Biases store."""

from __future__ import annotations

import struct

from hyperbo.errors import InvalidInputError

# A field is bytes (a text, a message, packed numbers), an integer, or the bytes of a fixed number.
Fields = dict[int, list[bytes | int]]
_MOST_BYTES = 10
_FIXED = {1: 8, 5: 4}


def fields_of(message: bytes) -> Fields:
    """The values of each field of a message, by the number of the field, in order.

    Raises:
      InvalidInputError: the bytes are no message, or end within a field.

    >>> fields_of(bytes([8, 150, 1, 18, 2, 104, 105]))
    {1: [150], 2: [b'hi']}
    """
    found: Fields = {}
    place = 0
    while place < len(message):
        key, place = _varint(message, place)
        kind = key & 7
        value: bytes | int
        if kind == 0:
            value, place = _varint(message, place)
        else:
            if kind == 2:
                length, place = _varint(message, place)
            elif kind in _FIXED:
                length = _FIXED[kind]
            else:
                raise _damaged()
            value = message[place : place + length]
            if len(value) < length:
                raise _damaged()
            place += length
        found.setdefault(key >> 3, []).append(value)
    return found


def message_of(fields: Fields, number: int) -> Fields:
    """The last message of a field; an absent one is empty."""
    return fields_of(_bytes(fields[number][-1])) if number in fields else {}


def messages_of(fields: Fields, number: int) -> list[Fields]:
    """All messages of a field."""
    return [fields_of(_bytes(value)) for value in fields.get(number, ())]


def text_of(fields: Fields, number: int) -> str:
    """The last text of a field; an absent one is empty.

    Raises:
      InvalidInputError: the field holds no text.
    """
    return _text(fields[number][-1]) if number in fields else ""


def texts_of(fields: Fields, number: int) -> list[str]:
    """All texts of a field."""
    return [_text(value) for value in fields.get(number, ())]


def integer_of(fields: Fields, number: int) -> int:
    """The last integer of a field, signed; an absent one is 0."""
    value = fields[number][-1] if number in fields else 0
    if not isinstance(value, int):
        raise _damaged()
    return value - (1 << 64) if value >> 63 else value


def doubles_of(fields: Fields, number: int) -> list[float]:
    """All float64 of a field, packed or not.

    >>> doubles_of({1: [struct.pack("<2d", 0.5, 2.0)]}, 1)
    [0.5, 2.0]
    """
    found: list[float] = []
    for value in fields.get(number, ()):
        content = _bytes(value)
        if len(content) % 8:
            raise _damaged()
        found += struct.unpack(f"<{len(content) // 8}d", content)
    return found


def double_of(fields: Fields, number: int) -> float:
    """The last float64 of a field; an absent one is 0."""
    return (doubles_of(fields, number) or [0.0])[-1]


def integers_of(fields: Fields, number: int) -> list[int]:
    """All integers of a field, packed or not."""
    found = []
    for value in fields.get(number, ()):
        if isinstance(value, int):
            found.append(value)
            continue
        place = 0
        while place < len(value):
            one, place = _varint(value, place)
            found.append(one)
    return [value - (1 << 64) if value >> 63 else value for value in found]


def _varint(message: bytes, place: int) -> tuple[int, int]:
    value = 0
    for count, byte in enumerate(message[place : place + _MOST_BYTES]):
        value |= (byte & 0x7F) << (7 * count)
        if byte < 0x80:
            return value & ((1 << 64) - 1), place + count + 1
    raise _damaged()


def _bytes(value: bytes | int) -> bytes:
    if isinstance(value, int):
        raise _damaged()
    return value


def _text(value: bytes | int) -> str:
    try:
        return _bytes(value).decode("utf-8")
    except UnicodeDecodeError as error:
        raise _damaged() from error


def _damaged() -> InvalidInputError:
    return InvalidInputError("a stored message is damaged", fix="export it again")
