"""SHD304."""

from __future__ import annotations

import pytest

from tests.lint.cases import codes, found

BASE = "mesh: [fsdp=64]\n*: {embed: fsdp}\nact: {batch: fsdp}\ncache: {batch: fsdp}\n"
CHECK = "check llama3_8b on [fsdp=64] batch 64 seq 2048\n"


def test_the_tensor_its_bytes_and_the_layout_that_says_so() -> None:
    """By hand: 128,256 × 4,096 float32 are 2,004 MiB."""
    (finding,) = found(f"{BASE}embed.w: [None, None]\n{CHECK}", "SHD304")
    assert finding.severity == "warning"
    assert finding.message == "every device of [fsdp=64] holds embed.w whole: 2.0 GiB"
    assert finding.where is not None
    assert (finding.where.span.line, finding.where.span.column) == (5, 10)
    assert finding.help == "split a dim of it, or say that it is meant: `embed.w: replicated`"


@pytest.mark.parametrize(
    "text",
    [
        f"{BASE}embed.w: replicated\n{CHECK}",  # said
        f"{BASE}embed.w: [fsdp, None]\n{CHECK}",  # split
        f"{BASE}*norm.scale: [None]\n{CHECK}",  # 512 KiB of all layers
        f"{BASE}embed.w: [None, None]\ncheck llama_tiny on [fsdp=64] batch 64 seq 64\n",  # 256 KiB
        f"{BASE}embed.w: [None, None]\ncheck llama3_8b on [fsdp=1] batch 64 seq 2048\n",  # one device
    ],
)
def test_nothing_to_say(text: str) -> None:
    assert "SHD304" not in codes(text)
