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
SHORTEST, END = 5, 256
PADDING = 7
"""Bits that may follow the last word, all of them 1."""
Step = tuple[int, bytes]


class HuffmanSteps(NamedTuple):
    """The code as a state machine that reads four bits at a time, so that every byte takes the same time."""

    steps: list[Step]
    """By sixteen times the state, plus the bits: the next state, and the byte whose word has ended. A state is what has
    been read of a word; 0 is its beginning."""
    ends: frozenset[int]
    """The states in which a text may end."""


@functools.cache
def machine() -> HuffmanSteps:
    """The code, made when a client first uses it."""
    children = _tree()
    wrong = len(children)
    steps = [_step(children, state, bits, wrong) for state in range(wrong) for bits in range(16)]
    # This state leads only to itself, so that `decode` need not check every step.
    steps += [(wrong, b"")] * 16
    # The last byte is filled with ones: they begin the word that ends a text (RFC 7541, 5.2).
    ends, state = [0], 0
    for _ in range(PADDING):
        state = children[state][1]
        ends.append(state)
    return HuffmanSteps(steps, frozenset(ends))


def _tree() -> list[list[int]]:
    """For each prefix of a word the two prefixes that one more bit leads to; -1 - BYTE where it completes the word."""
    lengths = [SHORTEST + ord(letter) - ord("A") for letter in LENGTHS]
    children = [[0, 0]]
    code = before = 0
    for byte in sorted(range(len(lengths)), key=lambda byte: (lengths[byte], byte)):
        code <<= lengths[byte] - before
        before = lengths[byte]
        node = 0
        for at in range(before - 1, 0, -1):
            bit = code >> at & 1
            if not children[node][bit]:
                children[node][bit] = len(children)
                children.append([0, 0])
            node = children[node][bit]
        children[node][code & 1] = -byte - 1
        code += 1
    return children


def _step(children: list[list[int]], state: int, bits: int, wrong: int) -> Step:
    """Where four bits lead; no word is shorter than five. The word that ends a text may not stand in it."""
    text = b""
    for at in (3, 2, 1, 0):
        state = children[state][bits >> at & 1]
        if state < 0:
            byte = -state - 1
            if byte == END:
                return wrong, b""
            text, state = bytes((byte,)), 0
    return state, text


def decode(data: bytes) -> bytes:
    """The text of these bits. Raises ValueError where they are none."""
    steps, ends = machine()
    state, words = 0, []
    for byte in data:
        state, word = steps[state << 4 | byte >> 4]
        words.append(word)
        state, word = steps[state << 4 | byte & 15]
        words.append(word)
    if state not in ends:
        raise ValueError("a Huffman code is cut off, or has an end inside")
    return b"".join(words)
