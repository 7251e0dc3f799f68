"""Text to token ids and back, and chats to prompts."""

from sharddsl.llama.tokenizer.bpe import BpeTokenizer
from sharddsl.llama.tokenizer.byte import ByteTokenizer
from sharddsl.llama.tokenizer.from_gguf import gguf_tokenizer
from sharddsl.llama.tokenizer.from_huggingface import huggingface_tokenizer
from sharddsl.llama.tokenizer.model import Message, TextStream, Tokenizer

__all__ = [
    "BpeTokenizer",
    "ByteTokenizer",
    "Message",
    "TextStream",
    "Tokenizer",
    "gguf_tokenizer",
    "huggingface_tokenizer",
]
