"""Between text and token ids."""

from costmodel.lab.tokenizer.byte_bpe import Tokenizer, tokenizer_from_gguf

__all__ = ["Tokenizer", "tokenizer_from_gguf"]
