"""A LLaMA's inventory, computed from its config in plain Python: no model is built and no jax is imported."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from math import prod

from sharddsl.models.config import LlamaConfig, Run
from sharddsl.models.factored import factored_dims
from sharddsl.spec.model import Namespace
from sharddsl.tensors.model import LAYERS, Inventory, Path, Tensor

Dims = tuple[str, ...]

_OUTER_FIRST: tuple[tuple[str, Dims], ...] = (("embed.w", ("vocab", "embed")),)
_LAYER: tuple[tuple[str, Dims], ...] = (
    ("attn_norm.scale", ("embed",)),
    ("attn.wq", ("embed", "heads", "head_dim")),
    ("attn.wk", ("embed", "kv_heads", "head_dim")),
    ("attn.wv", ("embed", "kv_heads", "head_dim")),
    ("attn.wo", ("heads", "head_dim", "embed")),
    ("mlp_norm.scale", ("embed",)),
    ("mlp.w_gate", ("embed", "ffn")),
    ("mlp.w_in", ("embed", "ffn")),
    ("mlp.w_out", ("ffn", "embed")),
)
_OUTER_LAST: tuple[tuple[str, Dims], ...] = (("norm.scale", ("embed",)),)
_HEAD: tuple[tuple[str, Dims], ...] = (("lm_head.w", ("embed", "vocab")),)

_RESIDUAL: Dims = ("batch", "seq", "embed")
_QUERY: Dims = ("batch", "seq", "heads", "head_dim")
_KEY: Dims = ("batch", "seq", "kv_heads", "head_dim")
_ACTIVATIONS: tuple[tuple[str, Dims], ...] = (
    ("embed", _RESIDUAL),
    ("resid", _RESIDUAL),
    ("attn.norm", _RESIDUAL),
    ("attn.q", _QUERY),
    ("attn.k", _KEY),
    ("attn.v", _KEY),
    ("attn.ctx", _QUERY),
    ("attn.out", _RESIDUAL),
    ("mlp.norm", _RESIDUAL),
    ("mlp.hidden", ("batch", "seq", "ffn")),
    ("mlp.out", _RESIDUAL),
    ("final", _RESIDUAL),
    ("logits", ("batch", "seq", "vocab")),
)
_INPUTS = ("tokens", "targets", "segments")
_CACHE: Dims = ("batch", "seq", "kv_heads", "head_dim")


def inventory(config: LlamaConfig, run: Run) -> Inventory:
    """Every tensor of this model under this run, in the order: params, grads, opt, act, batch, cache.

    All namespaces are there in every mode, so that a spec means the same whatever the command; activations and inputs
    are one token long in decode, and activations have the rows of one microbatch in training. `sizes` holds the model's
    dims, with `batch` and `seq` as the run gives them (the whole step's rows, the cache's length).
    """
    params = tuple(_params(config, run))
    tensors = (
        *params,
        *(replace(p, namespace="grad", dtype=run.grad_dtype, param=p.path) for p in params),
        *_optimizer(params, run),
        *_activations(config, run),
        *_batch(config, run),
        *_cache(config, run),
    )
    return Inventory(config.name, tensors, sizes(config, run), config.tied, run.mode)


def parameter_count(config: LlamaConfig) -> int:
    """The number of weights; a tied head counts once."""
    known = sizes(config, Run())
    outer = (*_OUTER_FIRST, *_OUTER_LAST, *(() if config.tied else _HEAD))
    return sum(prod(known[d] or 0 for d in dims) for _, dims in outer) + config.layers * sum(
        prod(known[d] or 0 for d in dims) for _, dims in _LAYER
    )


def sizes(config: LlamaConfig, run: Run) -> dict[str, int | None]:
    """The size of each dim by name: those of the config, and `batch` and `seq` (None where not known yet)."""
    return {
        "vocab": config.vocab,
        "embed": config.embed,
        "layers": config.layers,
        "heads": config.heads,
        "kv_heads": config.kv_heads,
        "head_dim": config.head_dim,
        "ffn": config.ffn,
        "batch": run.batch,
        "seq": run.seq,
    }


def _tensor(namespace: Namespace, path: Path, dims: Dims, known: dict[str, int | None], dtype: str) -> Tensor:
    return Tensor(namespace, path, dims, tuple(known[dim] for dim in dims), dtype)


def _params(config: LlamaConfig, run: Run) -> Iterator[Tensor]:
    known, dtype = sizes(config, run), run.param_dtype
    for name, dims in _OUTER_FIRST:
        yield _tensor("param", Path.parse(name), dims, known, dtype)
    if run.scan:
        for name, dims in _LAYER:
            yield _tensor("param", Path.parse(f"{LAYERS}.{name}"), (LAYERS, *dims), known, dtype)
    else:
        for layer in range(config.layers):
            for name, dims in _LAYER:
                yield _tensor("param", Path((LAYERS, *name.split(".")), layer), dims, known, dtype)
    for name, dims in (*_OUTER_LAST, *(() if config.tied else _HEAD)):
        yield _tensor("param", Path.parse(name), dims, known, dtype)


def _optimizer(params: tuple[Tensor, ...], run: Run) -> Iterator[Tensor]:
    """The optimizer's state, all float32 but a step counter. AdamW (Loshchilov & Hutter 2019) has two moments per
    param. Adafactor (Shazeer & Stern 2018) has the means of the second over the two largest dims of a matrix, each
    lacking one of them; of what is too small to factor it has the whole. A bfloat16 param has a float32 master copy
    besides."""
    if run.optimizer == "adafactor":
        yield from (tensor for param in params for tensor in _second_moments(param))
    else:
        yield from (_state(param, leaf) for leaf in ("mu", "nu") for param in params)
    if run.precision == "bf16_master":
        yield from (_state(param, "master") for param in params)
    yield Tensor("opt", Path(("count",)), (), (), "int32")


def _second_moments(param: Tensor) -> Iterator[Tensor]:
    inner = [dim for dim, name in enumerate(param.dims) if name != LAYERS]
    factors = factored_dims([param.shape[dim] or 0 for dim in inner])
    if factors is None:
        yield _state(param, "v")
        return
    for leaf, lacking in zip(("v_row", "v_col"), reversed(factors), strict=True):
        at = inner[lacking]
        whole = _state(param, leaf)
        yield replace(
            whole, dims=whole.dims[:at] + whole.dims[at + 1 :], shape=whole.shape[:at] + whole.shape[at + 1 :]
        )


def _state(param: Tensor, leaf: str) -> Tensor:
    """A leaf of the optimizer's state, of its param's shape."""
    at = param.path
    path = Path((leaf, *at.segments), at.layer, 0 if at.layer is None else at.layer_at + 1)
    return replace(param, namespace="opt", path=path, dtype="float32", param=at)


def _activations(config: LlamaConfig, run: Run) -> Iterator[Tensor]:
    """One tensor per name, which stands for that value in every layer. Logits are float32 under every precision."""
    known = sizes(config, run) | ({"seq": 1} if run.mode == "decode" else {})
    if run.mode == "train":
        known["batch"] = run.micro_batch
    for name, dims in _ACTIVATIONS:
        dtype = "float32" if name == "logits" else run.compute_dtype
        yield _tensor("act", Path.parse(name), dims, known, dtype)


def _batch(config: LlamaConfig, run: Run) -> Iterator[Tensor]:
    """Token ids, the ids to predict, and the document that each token belongs to (0 is filler)."""
    known = sizes(config, run) | ({"seq": 1} if run.mode == "decode" else {})
    for name in _INPUTS:
        yield _tensor("batch", Path((name,)), ("batch", "seq"), known, "int32")


def _cache(config: LlamaConfig, run: Run) -> Iterator[Tensor]:
    known, dtype = sizes(config, run), run.compute_dtype
    if run.scan:
        for name in ("k", "v"):
            yield _tensor("cache", Path((name,)), (LAYERS, *_CACHE), known, dtype)
        return
    for layer in range(config.layers):
        for name in ("k", "v"):
            yield _tensor("cache", Path((LAYERS, name), layer), _CACHE, known, dtype)
