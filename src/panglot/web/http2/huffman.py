"""The Huffman code of HPACK (RFC 7541, appendix B), read only: our own headers are written plain.

The code is canonical, so the lengths of its 257 words tell all of it.
"""

from __future__ import annotations

import functools
from typing import NamedTuple

LENGTHS = (
    "ISXXXXXXXTZXXZXXXXXXXXZXXXXXXXXXBFFHIBDGFFDGDBBBAAABBBBBBBCDKBHFIBCCCCCCCCCCCCCCCCCCCCCCDCDIOIJBKABA"
    "BABBBACCBBBABCBAABCCCCCKGJIXPRPPRRRSRSSSSSTSTTRSTSSSSQRSRSSTRQPRRSSQSRRTQRSSQQRQSRSSPRRRSRRSVVPORSRU"
    "VVVWWVTUOQVWWVWTQQVVXWWWPTPQRQQSRRUUTTVSVWVVWWWWWXWWWWWVZ"
)
"""The length of each byte's word, and last of the one that ends a text: A is 5 bits, Z is 30."""
SHORTEST, LONGEST, END = 5, 30, 256
AT_ONCE = 8
"""Bits that are looked up together; most words are no longer."""


class HuffmanWords(NamedTuple):
    """The code by the beginning of a word, and longer ones by their length and bits."""

    short: list[tuple[int, int]]
    """By eight bits: the byte whose word they begin with, and its length; a length of 0 means a longer word."""
    long: dict[tuple[int, int], int]


@functools.cache
def words() -> HuffmanWords:
    """The code, made when a client first uses it."""
    lengths = [SHORTEST + ord(letter) - ord("A") for letter in LENGTHS]
    short, long = [(0, 0)] * (1 << AT_ONCE), {}
    code = before = 0
    for byte in sorted(range(len(lengths)), key=lambda byte: (lengths[byte], byte)):
        length = lengths[byte]
        code <<= length - before
        before = length
        if length <= AT_ONCE:
            rest = AT_ONCE - length
            short[code << rest : (code + 1) << rest] = [(byte, length)] * (1 << rest)
        else:
            long[length, code] = byte
        code += 1
    return HuffmanWords(short, long)


def decode(data: bytes) -> bytes:
    """The text of these bits. Raises ValueError where they are none."""
    short, long = words()
    text = bytearray()
    held = bits = 0
    for more in data:
        held, bits = held << 8 | more, bits + 8
        while bits >= AT_ONCE:
            byte, length = short[held >> bits - AT_ONCE]
            if not length:
                byte, length = _longer(long, held, bits)
                if not length:
                    break
            text.append(byte)
            bits -= length
            held &= (1 << bits) - 1
    while bits >= SHORTEST:
        byte, length = short[(held + 1 << AT_ONCE >> bits) - 1 & 255] if bits < AT_ONCE else (0, 0)
        if not length or length > bits:
            break
        text.append(byte)
        bits -= length
        held &= (1 << bits) - 1
    if bits >= 8 or held != (1 << bits) - 1:
        raise ValueError("the last word of a Huffman code is cut off")
    return bytes(text)


def _longer(long: dict[tuple[int, int], int], held: int, bits: int) -> tuple[int, int]:
    """A word of more than eight bits at the beginning; its length is 0 while it is not whole. Raises ValueError."""
    for length in range(AT_ONCE + 1, min(bits, LONGEST) + 1):
        byte = long.get((length, held >> bits - length))
        if byte == END:
            raise ValueError("a Huffman code has an end inside")
        if byte is not None:
            return byte, length
    return 0, 0
