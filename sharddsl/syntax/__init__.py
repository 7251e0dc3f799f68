"""Text to tree and back: `parse`, `parse_rule`, `decode` and `to_text`. The nodes are in `sharddsl.syntax.tree`."""

from sharddsl.syntax.parse import Parsed, decode, parse, parse_rule
from sharddsl.syntax.printing import to_text

__all__ = ["Parsed", "decode", "parse", "parse_rule", "to_text"]
