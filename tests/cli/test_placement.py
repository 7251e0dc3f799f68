"""What `generate` says about where a model runs."""

from __future__ import annotations

from pathlib import Path

from sharddsl.cli.placement import Layouts, described
from sharddsl.config import fast


def test_a_condition_that_cannot_be_judged_is_told_once(tmp_path: Path) -> None:
    """The length of the sequence is not known before the prompts are; the batch is."""
    file = tmp_path / "mine.shard"
    file.write_text(
        'extends "llama/fsdp"\n'
        "when seq > 10 { act.mlp.hidden: {batch: fsdp, ffn: fsdp?} }\n"
        "when batch > 1 { act.mlp.out: {batch: fsdp} }\n"
    )
    overrides = ("model=llama_tiny", f"spec={file}", "spec.mesh.fsdp=2", "weights=random")
    config = fast.read(overrides, "generate")
    assert config is not None
    layouts = Layouts(config, (), ("prefill", "decode"))
    run = config.run.model_copy(update={"batch": 2})
    assert list(described(layouts, layouts.partitions(layouts.devices(), run))) == [
        "mesh [fsdp=2]: 2 virtual CPU devices, as there is no accelerator",
        "  not known here: seq > 10 (taken not to hold)",
    ]
