"""Layouts on real devices: meshes, shardings and constraints for anybody's pytree and jitted function."""

from sharddsl.partition.devices import ensure_devices, virtual_devices
from sharddsl.partition.inventory import inventory_of
from sharddsl.partition.mesh import make_mesh
from sharddsl.partition.partition import Partition, born_sharded, constrain

__all__ = [
    "Partition",
    "born_sharded",
    "constrain",
    "ensure_devices",
    "inventory_of",
    "make_mesh",
    "virtual_devices",
]
