"""The bytes that a vocabulary's tokens stand for."""

from __future__ import annotations

import re

_BYTE = re.compile(r"<0x([0-9A-Fa-f]{2})>")


def _alphabet() -> dict[str, int]:
    """Byte-level BPE's characters and their bytes (GPT-2): printable Latin-1 is itself, the rest goes on at U+0100."""
    printable = [*range(ord("!"), ord("~") + 1), *range(ord("¡"), ord("¬") + 1), *range(ord("®"), ord("ÿ") + 1)]
    others = [byte for byte in range(256) if byte not in printable]
    return {chr(byte): byte for byte in printable} | {chr(256 + i): byte for i, byte in enumerate(others)}


_BYTES = _alphabet()


def byte_level_piece(token: str) -> bytes:
    """A byte-level token's bytes; one with a character outside that alphabet stands for itself."""
    try:
        return bytes(_BYTES[character] for character in token)
    except KeyError:
        return token.encode()


def sentencepiece_piece(token: str) -> bytes:
    """A SentencePiece token's bytes: `▁` is a space, `<0x0A>` a byte."""
    byte = _BYTE.fullmatch(token)
    return bytes([int(byte[1], 16)]) if byte else token.replace("▁", " ").encode()
