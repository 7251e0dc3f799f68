"""How a model is trained: a `Run` and what does not bear on its tensors. No jax here: every command reads it."""

from __future__ import annotations

from math import ceil
from typing import Annotated, Literal

from pydantic import Field, model_validator

from sharddsl.models.config import Positive, Run, Size

Share = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]
NotNegative = Annotated[float, Field(ge=0, allow_inf_nan=False)]
BelowOne = Annotated[float, Field(ge=0, lt=1, allow_inf_nan=False)]
Schedule = Literal["cosine", "linear", "constant"]


class Training(Run):
    """A run of training: `steps` steps from `seed`, which draws the initial weights and the order of the data.

    The learning rate rises linearly from 0 to `lr` within `warmup` steps (None: a tenth of the steps), and then falls
    by `schedule` to `lr_end · lr` at the last step. Adafactor's is relative to the weights' root mean square, and wants
    some 1e-2. `weight_decay` is decoupled (arXiv 1711.05101), on weights
    of two dims and more. Gradients whose global norm is over `clip` are scaled down to it (0: never). `b1`, `b2` and
    `eps` are Adam's (arXiv 1412.6980); the defaults are those of LLaMA's pretraining (arXiv 2302.13971, section 2.3),
    except for eps, which it does not state.
    """

    steps: Size = 20
    seed: Annotated[int, Field(ge=0, lt=2**32)] = 0
    lr: Positive = 3e-4
    warmup: Annotated[int, Field(ge=0)] | None = None
    schedule: Schedule = "cosine"
    lr_end: Share = 0.1
    weight_decay: NotNegative = 0.1
    clip: NotNegative = 1.0
    b1: BelowOne = 0.9
    b2: BelowOne = 0.95
    eps: Positive = 1e-8

    @model_validator(mode="after")
    def _warms_up_within(self) -> Training:
        if self.warmup is not None and self.warmup > self.steps:
            raise ValueError(f"warmup={self.warmup} is longer than the run of steps={self.steps}")
        return self

    @property
    def warmup_steps(self) -> int:
        """Steps until the learning rate is at its peak."""
        return ceil(self.steps / 10) if self.warmup is None else self.warmup
