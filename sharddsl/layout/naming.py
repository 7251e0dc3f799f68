"""How findings and tables name tensors: layers that are alike are one name, dims come with their sizes."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence

from sharddsl.spec.model import NAMESPACES, Namespace
from sharddsl.tensors.model import LAYERS, Tensor

_PLAIN = re.compile(r"(?!(?:extends|let|mesh|when|check|expect)$)[A-Za-z_][A-Za-z0-9_]*|[0-9]+", re.ASCII)
"""A segment that a pattern may write as it is, wherever it stands."""


def pattern_for(namespace: Namespace, segments: Sequence[str]) -> str:
    """How a pattern names a path that ends in these segments: those that are no names quoted, and `param.` before one
    that would be taken for a namespace."""
    path = ".".join(map(_segment, segments))
    return path if namespace == "param" and segments[0] not in NAMESPACES else f"{namespace}.{path}"


def _segment(text: str) -> str:
    if _PLAIN.fullmatch(text):
        return text
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def names_of(tensors: Iterable[Tensor]) -> list[str]:
    """A name each, tensors that differ in the layer only under one: `layers[0:126].attn.wk`."""
    layers: dict[tuple[str, tuple[str, ...], int], list[int]] = {}
    order: dict[tuple[str, tuple[str, ...], int], Tensor] = {}
    for tensor in tensors:
        key = (tensor.namespace, tensor.path.segments, tensor.path.layer_at)
        order.setdefault(key, tensor)
        if tensor.path.layer is not None:
            layers.setdefault(key, []).append(tensor.path.layer)
    return [_subscripted(tensor, sorted(layers.get(key, ()))) for key, tensor in order.items()]


def _subscripted(tensor: Tensor, layers: Sequence[int]) -> str:
    if len(layers) <= 1:
        return tensor.name
    whole = layers == list(range(layers[0], layers[-1] + 1))
    said = f"{layers[0]}:{layers[-1] + 1}" if whole else ",".join(map(str, layers))
    return tensor.name.replace(f"[{tensor.path.layer}]", f"[{said}]", 1)


def together(names: Iterable[str], most: int = 8) -> str:
    """Names of tensors in few words: params with those of their gradients and optimizer leaves that are named too, as
    in `embed.w, norm.scale (param, grad, opt.mu), act.resid`. Of many the first stand there, and how many follow."""
    roles: dict[str, list[str]] = {}
    for name in names:
        role, base = _role(name)
        roles.setdefault(base, []).append(role)
    alike: dict[tuple[str, ...], list[str]] = {}
    for base, held in roles.items():
        alike.setdefault(tuple(held), []).append(base)
    parts = []
    for shared, bases in alike.items():
        said = "" if shared in (("param",), ("",)) else f" ({', '.join(shared)})"
        parts.append(_few(bases, most) + said)
    return ", ".join(parts)


def _role(name: str) -> tuple[str, str]:
    """`opt.mu` and `embed.w` of `opt.mu.embed.w`; what belongs to no param is itself, without a role."""
    namespace, _, rest = name.partition(".")
    leaf, _, of_param = rest.partition(".")
    if namespace == "grad" and rest:
        return "grad", rest
    if namespace == "opt" and of_param:
        return f"opt.{leaf}", of_param
    return ("" if namespace in NAMESPACES else "param"), name


def sized_dims(tensor: Tensor) -> str:
    """`(embed 4096, kv_heads 8, head_dim 128), 32 layers`: one layer's dims, `?` for a size that is not known."""
    shown = [
        f"{dim} {'?' if size is None else size}"
        for dim, size in zip(tensor.dims, tensor.shape, strict=True)
        if dim != LAYERS
    ]
    stacked = [size for dim, size in zip(tensor.dims, tensor.shape, strict=True) if dim == LAYERS]
    layers = f", {stacked[0]} layers" if stacked else ""
    return (f"({', '.join(shown)})" if shown else "a scalar") + layers


def note_of(tensors: Sequence[Tensor], most: int = 4) -> str:
    """What stands beside the caret: the names of the first tensor's namespace with their dims, and who shares their
    fate. `wq: (embed 64, heads 8), 4 layers; wk, wv: (embed 64, kv_heads 2), 4 layers; and 2 of act`."""
    first = tensors[0].namespace
    by_dims: dict[str, list[Tensor]] = {}
    for tensor in tensors:
        if tensor.namespace == first:
            by_dims.setdefault(sized_dims(tensor), []).append(tensor)
    parts = [f"{_few(names_of(alike), most)}: {dims}" for dims, alike in by_dims.items()]
    if len(parts) > 2:
        parts = [*parts[:2], f"and {sum(map(len, list(by_dims.values())[2:]))} more"]
    others = Counter(tensor.namespace for tensor in tensors if tensor.namespace != first)
    return "; ".join([*parts, *(f"and {count} of {namespace}" for namespace, count in others.items())])


def _few(names: Sequence[str], most: int) -> str:
    return ", ".join(names[:most]) + (f" and {len(names) - most} more" if len(names) > most else "")
