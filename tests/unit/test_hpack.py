"""Our reading of HPACK, held against the library `hpack`."""

from __future__ import annotations

import hpack
import pytest
from hpack.huffman import HuffmanEncoder
from hpack.huffman_constants import REQUEST_CODES, REQUEST_CODES_LENGTH
from hpack.table import HeaderTable
from hypothesis import given
from hypothesis import strategies as st

from panglot.web.http2.frames import ConnectionBroken
from panglot.web.http2.headers import huffman
from panglot.web.http2.headers.call_head import CallHeads
from panglot.web.http2.headers.hpack import STATIC, HpackDecoder

NAMES = st.sampled_from([b":path", b"te", b"x-trace", b"content-type", b"grpc-timeout", b"x" * 60])
BLOCKS = st.lists(st.lists(st.tuples(NAMES, st.binary(max_size=200), st.booleans()), max_size=8), max_size=12)


def test_the_static_table_is_that_of_the_rfc() -> None:
    assert tuple(HeaderTable.STATIC_TABLE) == STATIC


@given(st.binary(max_size=300))
def test_huffman_codes_are_read(text: bytes) -> None:
    packed = HuffmanEncoder(REQUEST_CODES, REQUEST_CODES_LENGTH).encode(text)
    assert huffman.decode(packed) == text


@given(st.binary(max_size=40))
def test_any_bits_are_a_huffman_code_or_none(data: bytes) -> None:
    try:
        theirs = hpack.huffman_table.decode_huffman(data)
    except hpack.HPACKDecodingError:
        with pytest.raises(ValueError, match="Huffman"):
            huffman.decode(data)
    else:
        assert huffman.decode(data) == bytes(theirs)


@given(BLOCKS, st.booleans(), st.sampled_from([0, 100, 4096]))
def test_blocks_of_a_connection_are_read(
    blocks: list[list[tuple[bytes, bytes, bool]]], packed: bool, size: int
) -> None:
    encoder, decoder = hpack.Encoder(), HpackDecoder(1 << 20)
    encoder.header_table_size = size
    for fields in blocks:
        block = encoder.encode(fields, huffman=packed)
        assert decoder.decode(block) == [(name, value) for name, value, _ in fields]


@given(st.lists(st.binary(max_size=60), max_size=5))
def test_any_bytes_are_read_as_the_library_does(blocks: list[bytes]) -> None:
    theirs, ours = hpack.Decoder(), HpackDecoder(1 << 20)
    for block in blocks:
        try:
            fields = [tuple(field) for field in theirs.decode(block, raw=True)]
        except hpack.HPACKError:
            with pytest.raises(ConnectionBroken):
                ours.decode(block)
            return
        assert ours.decode(block) == fields


def test_a_block_that_is_known_is_not_read_again_once_the_table_has_changed() -> None:
    encoder, heads = hpack.Encoder(), CallHeads(1 << 14)
    call = [(":method", "POST"), (":scheme", "http"), (":path", "/a"), ("traceparent", "first")]
    heads.read(encoder.encode(call))
    block = encoder.encode(call)
    known = heads.read(block)
    assert (known.path, known.trace) == ("/a", b"first")
    assert heads.read(block) is known
    heads.read(encoder.encode([*call[:2], (":path", "/b"), ("traceparent", "second")]))
    assert heads.read(block) != known, "the same indexes mean other fields now"
