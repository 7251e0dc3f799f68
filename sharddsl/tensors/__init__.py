"""What a model holds: tensors, and inventories of them. `sharddsl.tensors.data` writes and reads them as plain data."""

from sharddsl.tensors.model import ITEMSIZE, LAYERS, Inventory, Path, Tensor

__all__ = ["ITEMSIZE", "LAYERS", "Inventory", "Path", "Tensor"]
