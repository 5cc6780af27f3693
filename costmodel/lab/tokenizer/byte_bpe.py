"""Byte-level BPE (Radford et al., GPT-2, 2019) from the vocabulary and merges that a GGUF file carries."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from costmodel.common.errors import ConfigError
from costmodel.common.extras import needed
from costmodel.common.gguf_file import GGUFFile

if TYPE_CHECKING:
    import tokenizers

CONTROL, USER_DEFINED = 3, 4  # GGUF's token types for markers such as <|im_start|>


@dataclass(frozen=True)
class Tokenizer:
    """Text to token ids and back; markers such as <|im_start|> in the text are their own tokens.

    Attributes
    ----------
    backend : what merges, of the package `tokenizers`
    first : ids put before every text (a beginning-of-sequence token, if the model was trained with one)
    end : the id that ends an answer

    Examples
    --------
    >>> from tokenizers import Tokenizer as Backend, models
    >>> backend = Backend(models.BPE({"h": 0, "i": 1, "hi": 2, "<s>": 3}, [("h", "i")]))
    >>> tokenizer = Tokenizer(backend, first=(3,), end=3)
    >>> tokenizer.encode("hihih"), tokenizer.decode([2])
    ([3, 2, 2, 0], 'hi')

    References
    ----------
    Radford et al., Language models are unsupervised multitask learners (GPT-2), 2019, section 2.2.
    """

    backend: "tokenizers.Tokenizer"
    first: tuple[int, ...]
    end: int

    def encode(self, text: str) -> list[int]:
        """The ids of a text."""
        return [*self.first, *self.backend.encode(text, add_special_tokens=False).ids]

    def decode(self, ids: Iterable[int], *, markers: bool = False) -> str:
        """The text of ids, with or without the markers among them; bytes that are no UTF-8 become U+FFFD."""
        return self.backend.decode(list(ids), skip_special_tokens=not markers)


def tokenizer_from_gguf(file: GGUFFile) -> Tokenizer:
    """The tokenizer of a GGUF file whose vocabulary is byte-level BPE.

    Parameters
    ----------
    file : what `read_gguf` returned; its tokenizer.ggml keys are read: model ("gpt2"), pre ("gpt-2" or "smollm"),
        tokens, token_type, merges, eos_token_id, add_bos_token and bos_token_id

    Returns
    -------
    a Tokenizer; tokens of the types control and user-defined are its markers

    Raises
    ------
    ConfigError
        naming the file and the key: another kind of tokenizer, another way to split words, or lists that do not fit
    CostModelError
        without the package `tokenizers`

    Examples
    --------
    >>> from pathlib import Path
    >>> keys = {"model": "gpt2", "pre": "gpt-2", "tokens": ["<end>", "h", "i", "hi"], "token_type": [3, 1, 1, 1]}
    >>> keys |= {"merges": ["h i"], "eos_token_id": 0}
    >>> file = GGUFFile(Path("small.gguf"), {f"tokenizer.ggml.{key}": value for key, value in keys.items()}, {})
    >>> tokenizer_from_gguf(file).encode("hii<end>")
    [3, 2, 0]

    References
    ----------
    The format: https://github.com/ggml-org/ggml/blob/master/docs/gguf.md
    Byte-pair merges: Sennrich, Haddow and Birch, Neural machine translation of rare words, 1508.07909.
    """
    library = needed("tokenizers", "reading and writing text", "lab")
    kind = file.metadata.get("tokenizer.ggml.model")
    if kind != "gpt2":
        raise ConfigError(f"{file.path}: tokenizer.ggml.model must be 'gpt2' (byte-level BPE), got {kind!r}")
    tokens, types, merges = (
        _list(file, key, of) for key, of in (("tokens", str), ("token_type", int), ("merges", str))
    )
    if len(set(tokens)) < len(tokens) or len(types) != len(tokens):
        raise ConfigError(f"{file.path}: tokenizer.ggml.tokens must be distinct and have one token_type each")
    vocabulary = {token: index for index, token in enumerate(tokens)}
    pairs = [tuple(merge.split(" ")) for merge in merges]
    try:
        model = library.models.BPE(vocabulary, pairs)
    except Exception as error:  # the library raises plain Exception: a merge of unknown tokens, or not of two
        raise ConfigError(f"{file.path}: tokenizer.ggml.merges do not fit the vocabulary: {error}") from error
    backend = library.Tokenizer(model)
    backend.pre_tokenizer = _splitter(file, library)
    backend.decoder = library.decoders.ByteLevel()
    markers = [token for token, type_ in zip(tokens, types, strict=True) if type_ in (CONTROL, USER_DEFINED)]
    backend.add_special_tokens([library.AddedToken(token, normalized=False, special=True) for token in markers])
    begins = file.metadata.get("tokenizer.ggml.add_bos_token", False)
    first = (_id(file, "bos_token_id", len(tokens)),) if begins else ()
    return Tokenizer(backend, first, _id(file, "eos_token_id", len(tokens)))


def _list(file: GGUFFile, key: str, of: type) -> list[Any]:
    values = file.metadata.get(f"tokenizer.ggml.{key}")
    if not isinstance(values, list) or not all(isinstance(value, of) for value in values):
        raise ConfigError(f"{file.path}: tokenizer.ggml.{key} must be a list of {of.__name__}")
    return values


def _id(file: GGUFFile, key: str, vocab: int) -> int:
    value = file.metadata.get(f"tokenizer.ggml.{key}")
    if not isinstance(value, int) or not 0 <= value < vocab:
        raise ConfigError(f"{file.path}: tokenizer.ggml.{key} must be 0 to {vocab - 1}, got {value!r}")
    return value


def _splitter(file: GGUFFile, library: Any) -> Any:
    """How text is cut into words before merging; each family has its own way."""
    words = library.pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True)
    digits = library.pre_tokenizers.Digits(individual_digits=True)
    known = {"gpt-2": words, "smollm": library.pre_tokenizers.Sequence([digits, words])}
    name = file.metadata.get("tokenizer.ggml.pre")
    if name not in known:
        raise ConfigError(f"{file.path}: tokenizer.ggml.pre must be one of {', '.join(known)}, got {name!r}")
    return known[name]
