"""The Flax model on pretrained weights, sharded, against Hugging Face transformers: logits and greedy text."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import sharddsl
from sharddsl.llama.forward import forward
from sharddsl.llama.generate import Generator
from sharddsl.llama.pretrained import demo_weights
from sharddsl.llama.weights import WeightSource, load_params, open_weights
from sharddsl.models.config import Run
from sharddsl.partition import Partition
from sharddsl.spec import list_specs
from tests.llama.golden.texts import CHATS

GOLDEN = Path(__file__).parents[1] / "golden"

# Both sides compute in float32 and add in different orders; the sums have up to 1,536 terms in each of 30 layers, so
# errors of a few times 1e-5 of the logits' size (about 20) are expected. A wrong permutation, epsilon or rotary base
# moves logits by 0.1 and more.
TOLERANCE = 2e-3


def laid_out(source: WeightSource, spec: str, mesh: dict[str, int], run: Run) -> Partition:
    layout = sharddsl.load(spec).resolve(source.config(), mesh=mesh, run=run).table
    return Partition.of(layout, jax.devices()[: int(np.prod(list(mesh.values())))])


def logits(source: WeightSource, spec: str, mesh: dict[str, int], run: Run, ids: Any) -> Any:
    """(tokens, vocab) float32, from a batch that repeats the ids as often as the mesh needs."""
    partition = laid_out(source, spec, mesh, run)
    config = source.config()
    params = load_params(source, config, partition.shardings, dtype=run.param_dtype, scan=run.scan)
    assert run.batch is not None
    tokens = jnp.asarray(np.tile(np.asarray(ids, np.int32), (run.batch, 1)))

    @jax.jit
    def program(params: Any, tokens: Any) -> Any:
        return forward(config, run, params, tokens, constrain=partition.constrain)

    return np.asarray(program(params, jax.device_put(tokens, partition.sharding("batch.tokens"))))[-1]


@pytest.mark.parametrize("scan", [True, False])
def test_the_tiny_model(scan: bool) -> None:
    """Llama 3's rotary scaling, an untied head, grouped queries, bfloat16 weights in two files."""
    with np.load(GOLDEN / "tiny.npz") as golden:
        ids, expected = golden["ids"], golden["logits"]
    run = Run(mode="prefill", batch=4, seq=len(ids), precision="f32", scan=scan)
    got = logits(open_weights(GOLDEN / "tiny"), "llama/fsdp_tp", {"dp": 2, "fsdp": 2, "mp": 2}, run, ids)
    np.testing.assert_allclose(got, expected, atol=TOLERANCE)


@pytest.fixture(scope="module")
def smollm2() -> WeightSource:
    return open_weights(demo_weights())


@pytest.mark.slow
@pytest.mark.parametrize("text", ["long", "chat0", "chat1"])
def test_smollm2s_logits(smollm2: WeightSource, text: str) -> None:
    with np.load(GOLDEN / "smollm2_135m.npz") as file:
        golden = {key.removeprefix(f"{text}."): file[key] for key in file.files if key.startswith(f"{text}.")}
    run = Run(mode="prefill", batch=2, seq=len(golden["ids"]), precision="f32")
    got = logits(smollm2, "llama/fsdp_tp", {"dp": 1, "fsdp": 2, "mp": 3}, run, golden["ids"])
    peak = got.max(axis=-1)
    total = peak + np.log(np.exp(got - peak[:, None]).sum(axis=-1))
    np.testing.assert_allclose(total, golden["logsumexp"], atol=TOLERANCE)
    some = got[golden["positions"]]
    np.testing.assert_allclose(some[:, golden["columns"]], golden["at_columns"], atol=TOLERANCE)
    np.testing.assert_allclose(
        np.take_along_axis(some, golden["top_ids"], axis=-1), golden["top_logits"], atol=TOLERANCE
    )
    clear = np.diff(np.partition(got, -2, axis=-1)[:, -2:], axis=-1)[:, 0] > 2 * TOLERANCE
    assert clear.mean() > 0.95
    assert (got.argmax(axis=-1) == golden["argmax"])[clear].all()


@pytest.mark.slow
def test_smollm2s_greedy_text(smollm2: WeightSource) -> None:
    """16 tokens after two prompts of different length, in one batch. The closest decision has a margin of 0.01."""
    tokenizer, config = smollm2.tokenizer(), smollm2.config()
    mesh = {"dp": 1, "fsdp": 2, "mp": 3}
    run = Run(mode="prefill", batch=2, precision="f32")
    prefill = laid_out(smollm2, "llama/fsdp_tp", mesh, run)
    decode = laid_out(smollm2, "llama/fsdp_tp", mesh, run.model_copy(update={"mode": "decode"}))
    params = load_params(smollm2, config, prefill.shardings)
    generator = Generator(config, run, params, prefill=prefill, decode=decode)
    prompts = [tokenizer.chat([{"role": "user", "content": text}]) for text in CHATS]
    with np.load(GOLDEN / "smollm2_135m.npz") as golden:
        for row, new in enumerate(generator.generate(prompts, max_new=16)):
            assert golden[f"chat{row}.gaps"].min() > 2 * TOLERANCE
            assert new == golden[f"chat{row}.greedy"].tolist()[:16]


SHIPPED = [
    ("dp", {"dp": 2}),
    ("fsdp", {"fsdp": 2}),
    ("hsdp", {"dp": 2, "fsdp": 2}),
    ("tp", {"mp": 3}),
    ("sp", {"mp": 3}),
    ("fsdp_tp", {"dp": 1, "fsdp": 2, "mp": 3}),
    ("easylm", {"dp": 1, "fsdp": 2, "mp": 3}),
    ("maxtext", {"data": 1, "fsdp": 2, "tensor": 3}),
]


AS_DP = ("zero1", "zero2")
"""They differ from dp in gradients and moments alone."""


def test_every_shipped_layout_has_a_mesh_here() -> None:
    assert {f"llama/{name}" for name in (*(spec for spec, _ in SHIPPED), *AS_DP)} == set(list_specs())


@pytest.mark.parametrize("spec", AS_DP)
@pytest.mark.parametrize("mode", ["prefill", "decode"])
def test_zero_1_and_2_generate_as_dp_does(spec: str, mode: str) -> None:
    def placed(name: str) -> list[Any]:
        run = Run.model_validate({"mode": mode, "batch": 8, "precision": "f32"})
        table = sharddsl.load(f"llama/{name}").resolve("smollm2_135m", mesh={"dp": 8}, run=run).table
        return [(p.tensor, p.axes, p.memory) for p in table if p.tensor.namespace not in ("grad", "opt")]

    assert placed(spec) == placed("dp")


@pytest.mark.slow
@pytest.mark.exhaustive
@pytest.mark.parametrize(("spec", "mesh"), SHIPPED, ids=[spec for spec, _ in SHIPPED])
def test_every_shipped_layout_gives_smollm2s_greedy_text(
    smollm2: WeightSource, spec: str, mesh: dict[str, int]
) -> None:
    """Each row of one batch goes on for three tokens from another place in the text, eight tokens apart: the first of
    them is the prompt's, the others decoding's. The rows differ in length."""
    tokenizer, config = smollm2.tokenizer(), smollm2.config()
    run = Run(mode="prefill", batch=8, precision="f32")
    prefill = laid_out(smollm2, f"llama/{spec}", mesh, run)
    decode = laid_out(smollm2, f"llama/{spec}", mesh, run.model_copy(update={"mode": "decode"}))
    params = load_params(smollm2, config, prefill.shardings)
    generator = Generator(config, run, params, prefill=prefill, decode=decode)
    prompt = tokenizer.chat([{"role": "user", "content": CHATS[0]}])
    with np.load(GOLDEN / "smollm2_135m.npz") as golden:
        text = golden["chat0.greedy"].tolist()
    starts = range(0, 64, 8)
    found = generator.generate([prompt + text[:start] for start in starts], max_new=3)
    assert found == [text[start : start + 3] for start in starts]
