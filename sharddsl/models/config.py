"""What fixes a LLaMA's tensors: its config, and how it is run."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, model_validator

from sharddsl.spec.model import Mode, Model

Size = Annotated[int, Field(ge=1, le=2**31 - 1)]
Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]
Precision = Literal["f32", "bf16_compute", "bf16_master"]
Optimizer = Literal["adamw", "adafactor"]


class RopeScaling(Model):
    """Llama 3's frequency scaling (Llama 3.1 model card, `rope_type: llama3`): wavelengths over
    `original_seq / low_freq_factor` are stretched by `factor`, those under `original_seq / high_freq_factor` are
    kept, and those between are blended."""

    factor: Positive
    low_freq_factor: Positive = 1.0
    high_freq_factor: Positive = 4.0
    original_seq: Size = 8192

    @model_validator(mode="after")
    def _there_is_a_between(self) -> RopeScaling:
        if self.low_freq_factor >= self.high_freq_factor:
            low, high = self.low_freq_factor, self.high_freq_factor
            raise ValueError(f"low_freq_factor={low} must be less than high_freq_factor={high}")
        return self


class LlamaConfig(Model):
    """A LLaMA's hyperparameters, under this project's dim names.

    `embed` is the residual stream's width, `ffn` that of the MLP's hidden layer, `tied` whether the head is the
    embedding's transpose, `max_seq` the longest sequence it was trained for, in tokens.
    """

    name: str
    vocab: Size
    embed: Size
    layers: Size
    heads: Size
    kv_heads: Size
    head_dim: Size
    ffn: Size
    tied: bool = False
    norm_eps: Annotated[float, Field(ge=0, allow_inf_nan=False)] = 1e-5
    rope_theta: Positive = 10_000.0
    rope_scaling: RopeScaling | None = None
    max_seq: Size = 2048

    @model_validator(mode="after")
    def _heads_share_kv(self) -> LlamaConfig:
        if self.heads % self.kv_heads:
            raise ValueError(f"heads={self.heads} must be a multiple of kv_heads={self.kv_heads}")
        if self.head_dim % 2:
            raise ValueError(f"head_dim={self.head_dim} must be even: rotary embeddings turn pairs")
        return self


class Run(Model):
    """How a model is run, as far as it decides which tensors there are, and their shapes and dtypes.

    `batch` (sequences in a step) and `seq` (tokens in a sequence) are None where not known yet. A step runs its batch
    in `accum` microbatches, one after another, and adds up their gradients. `precision`: `f32` is float32 throughout;
    `bf16_compute` keeps params, grads and moments in float32 and computes in bfloat16; `bf16_master` has bfloat16
    params and grads with a float32 master copy and moments in the optimizer. Norms, softmax and logits are float32 in
    all three.
    """

    mode: Mode = "train"
    batch: Size | None = None
    seq: Size | None = None
    precision: Precision = "bf16_compute"
    scan: bool = True
    remat: Literal["none", "full", "dots"] = "none"
    optimizer: Optimizer = "adamw"
    accum: Size = 1

    @model_validator(mode="after")
    def _microbatches_are_whole(self) -> Run:
        if self.batch is not None and self.batch % self.accum:
            below = self.batch // self.accum * self.accum
            batches = [size for size in (below, below + self.accum) if size]
            accums = [n for n in range(1, self.batch + 1) if self.batch % n == 0]
            raise ValueError(
                f"accum={self.accum} does not divide batch={self.batch} into whole microbatches: "
                f"accum in {{{', '.join(map(str, accums[:12]))}}}, or batch={' or '.join(map(str, batches))}"
            )
        return self

    @property
    def micro_batch(self) -> int | None:
        """Sequences that go through the model at once."""
        return None if self.batch is None else self.batch // self.accum

    @property
    def param_dtype(self) -> str:
        return "bfloat16" if self.precision == "bf16_master" else "float32"

    @property
    def grad_dtype(self) -> str:
        """Of the gradients that a step keeps: the params', or float32 where those of microbatches are added up."""
        return "float32" if self.accum > 1 else self.param_dtype

    @property
    def compute_dtype(self) -> str:
        return "float32" if self.precision == "f32" else "bfloat16"
