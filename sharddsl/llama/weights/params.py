"""Which tensor of a weights file holds which param, and how a slice of the one becomes a slice of the other.

Files store every projection as a matrix of (output features, input features), with heads and head_dim merged. Params
are (input dims, output dims) with heads and head_dim apart, so a projection is read transposed; embeddings and norm
scales keep their order.

GGUF files made for llama.cpp keep the rows of the query and key projections in another order within each head: its
rotary embedding turns neighbouring features (2i, 2i+1), this model's (and Hugging Face's) those half a head apart
(i, i + head_dim/2).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from sharddsl.models.config import LlamaConfig


@dataclass(frozen=True, slots=True)
class Param:
    """One param, of one layer if it lies in the layers.

    `rows` and `columns` are the dims that the file's tensor merges into its first and second dim (`columns` is empty
    for a vector). The param's own dims are `columns + rows` if it is `transposed`, else `rows + columns`. `rotary`
    marks the projections whose features the rotary embedding turns.
    """

    path: str
    rows: tuple[str, ...]
    columns: tuple[str, ...]
    gguf: str
    huggingface: str
    transposed: bool = True
    rotary: bool = False

    @property
    def stacked(self) -> bool:
        """Whether there is one per layer."""
        return self.path.startswith("layers.")

    @property
    def dims(self) -> tuple[str, ...]:
        """The param's dims, without `layers`."""
        return self.columns + self.rows if self.transposed else self.rows + self.columns

    def shape(self, config: LlamaConfig) -> tuple[int, ...]:
        """The param's shape, without `layers`."""
        return sizes(self.dims, config)

    def file_shape(self, config: LlamaConfig) -> tuple[int, ...]:
        """The shape of the file's tensor: a matrix, or a vector."""
        groups = (self.rows, self.columns) if self.columns else (self.rows,)
        return tuple(_product(sizes(group, config)) for group in groups)


def sizes(dims: tuple[str, ...], config: LlamaConfig) -> tuple[int, ...]:
    """The sizes of named dims in this model."""
    return tuple(int(getattr(config, dim)) for dim in dims)


def _product(numbers: tuple[int, ...]) -> int:
    result = 1
    for number in numbers:
        result *= number
    return result


_IN_LAYER = (
    Param("layers.attn_norm.scale", ("embed",), (), "attn_norm", "input_layernorm", transposed=False),
    Param("layers.attn.wq", ("heads", "head_dim"), ("embed",), "attn_q", "self_attn.q_proj", rotary=True),
    Param("layers.attn.wk", ("kv_heads", "head_dim"), ("embed",), "attn_k", "self_attn.k_proj", rotary=True),
    Param("layers.attn.wv", ("kv_heads", "head_dim"), ("embed",), "attn_v", "self_attn.v_proj"),
    Param("layers.attn.wo", ("embed",), ("heads", "head_dim"), "attn_output", "self_attn.o_proj"),
    Param("layers.mlp_norm.scale", ("embed",), (), "ffn_norm", "post_attention_layernorm", transposed=False),
    Param("layers.mlp.w_gate", ("ffn",), ("embed",), "ffn_gate", "mlp.gate_proj"),
    Param("layers.mlp.w_in", ("ffn",), ("embed",), "ffn_up", "mlp.up_proj"),
    Param("layers.mlp.w_out", ("embed",), ("ffn",), "ffn_down", "mlp.down_proj"),
)
_EMBED = Param("embed.w", ("vocab",), ("embed",), "token_embd.weight", "model.embed_tokens.weight", transposed=False)
_NORM = Param("norm.scale", ("embed",), (), "output_norm.weight", "model.norm.weight", transposed=False)
_HEAD = Param("lm_head.w", ("vocab",), ("embed",), "output.weight", "lm_head.weight")


def params_of(config: LlamaConfig) -> tuple[Param, ...]:
    """A LLaMA's params, in the order in which the model uses them. A tied head is the embedding, not a param."""
    return (_EMBED, *_IN_LAYER, _NORM) if config.tied else (_EMBED, *_IN_LAYER, _NORM, _HEAD)


def gguf_name(param: Param, layer: int) -> str:
    """The tensor's name in a GGUF file of architecture `llama`."""
    return f"blk.{layer}.{param.gguf}.weight" if param.stacked else param.gguf


def huggingface_name(param: Param, layer: int) -> str:
    """The tensor's name in a Hugging Face `LlamaForCausalLM` checkpoint."""
    return f"model.layers.{layer}.{param.huggingface}.weight" if param.stacked else param.huggingface


def each_tensor(config: LlamaConfig) -> Iterator[tuple[Param, int]]:
    """Every param with every layer's number (0 for those outside the layers)."""
    for param in params_of(config):
        for layer in range(config.layers if param.stacked else 1):
            yield param, layer
