"""Every test process that starts JAX has eight virtual CPU devices.

They are asked for in the environment, which JAX reads when it is imported: tests without JAX do not import it for this.
"""

from __future__ import annotations

import os

os.environ["JAX_PLATFORMS"] = "cpu"
os.environ["JAX_NUM_CPU_DEVICES"] = "8"
