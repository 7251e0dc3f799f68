"""Every test process that starts JAX has eight virtual CPU devices, and compiles fast rather than for speed.

This is asked for in the environment, which JAX reads when it is imported: tests without JAX do not import it for this.
"""

from __future__ import annotations

import os
from importlib.metadata import version

os.environ["JAX_PLATFORMS"] = "cpu"
os.environ["JAX_NUM_CPU_DEVICES"] = "8"
# LLVM's optimizations take half of a compile, and change nothing about what is partitioned.
os.environ["XLA_FLAGS"] = "--xla_backend_optimization_level=0 --xla_llvm_disable_expensive_passes=true"
if version("jax").startswith("0.10."):  # its older code generator takes a third of the time; 0.12 knows no such flag
    os.environ["XLA_FLAGS"] += " --xla_cpu_use_fusion_emitters=false"
