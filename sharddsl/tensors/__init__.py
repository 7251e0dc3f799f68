"""What a model holds: tensors, and inventories of them."""

from sharddsl.tensors.data import InventoryData, from_data, to_data
from sharddsl.tensors.model import ITEMSIZE, LAYERS, Inventory, Path, Tensor

__all__ = ["ITEMSIZE", "LAYERS", "Inventory", "InventoryData", "Path", "Tensor", "from_data", "to_data"]
