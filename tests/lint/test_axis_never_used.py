"""SHD106."""

from __future__ import annotations

import pytest

from sharddsl.findings import Span
from tests.lint.cases import codes, found

BASE = "*: {embed: fsdp}\nact: {batch: fsdp}\nbatch: {batch: fsdp}\ncache: {batch: fsdp}\n"


def test_the_axis_is_shown() -> None:
    (finding,) = found(f"mesh: [fsdp=4, mp=2]\n{BASE}check llama_tiny batch 8 seq 64\n", "SHD106")
    assert finding.severity == "warning"
    assert finding.message == "mp=2 splits no tensor: the 2 devices along it do the same work"
    assert finding.where is not None
    assert finding.where.span == Span(1, 16, 1, 20)


@pytest.mark.parametrize(
    "text",
    [
        f"mesh: [fsdp=4, mp=1]\n{BASE}check llama_tiny batch 8 seq 64\n",  # an axis of size 1 costs nothing
        f"mesh: [fsdp=4, mp=2]\n{BASE}opt: {{ffn: mp, ..}}\ncheck llama_tiny batch 8 seq 64\n",  # used by moments alone
        f"mesh: [fsdp=4, mp=2]\n{BASE}when mode == decode {{ cache: {{kv_heads: mp, batch: fsdp}} }}\n"
        "check llama_tiny batch 8 seq 64\n",  # used by decoding alone
        f"mesh: [fsdp=4, mp=2]\n{BASE}",  # no case, so that nothing is known
    ],
)
def test_an_axis_that_does_something_somewhere(text: str) -> None:
    assert "SHD106" not in codes(text)


def test_one_case_with_more_than_one_device_along_it_is_enough() -> None:
    checks = "check llama_tiny on [mp=1] batch 8 seq 64\ncheck llama_tiny on [mp=2] batch 8 seq 64\n"
    assert len(found(f"mesh: [fsdp=4, mp=1]\n{BASE}{checks}", "SHD106")) == 1
