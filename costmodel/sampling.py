"""What choosing a token costs: logits are read, cut to candidates, exponentiated and drawn from.

The order is temperature, top-k, softmax, top-p, draw. Holtzman et al. (1904.09751) for top-p.
"""

from costmodel.exact import Number, smallest, whole
from costmodel.operation import Op, Tensor
from costmodel.ops import Ledger, Row
from costmodel.symbols import B, V


def sampling(
    *, batch: Number = B, vocab: Number = V, top_k: Number | None = None, top_p: bool = False, elementwise: bool = False
) -> Ledger:
    """The rows of one choice for each sequence, from logits to token.

    bytes = 2·B·V + 6·B·n at 16 bit, with n = min(top_k, V) candidates (V without top-k), plus 4·B·n for top-p.

    Parameters
    ----------
    batch : B [sequence]
    vocab : V, the number of tokens in the vocabulary
    top_k : candidates kept by partial selection, one read of the logits; None keeps all
    top_p : whether the candidates are sorted, read and written once more
    elementwise : whether the FLOPs of softmax and draw count, as for the model's own softmax

    Returns
    -------
    Ledger with FLOPs [FLOP] and bytes [byte]

    Raises
    ------
    CostModelError
        for a batch, vocab or top_k that are neither a symbol nor a whole number of at least 1

    Examples
    --------
    >>> sampling().bytes
    8*B*V
    >>> sampling(batch=1, vocab=128256, top_k=50, top_p=True).bytes  # 2·128,256 + 10·50
    257012

    References
    ----------
    Holtzman et al., The Curious Case of Neural Text Degeneration, 1904.09751: top-p.
    """
    batch, vocab = whole(batch, "batch"), whole(vocab, "vocab")
    if top_k is not None:
        top_k = whole(top_k, "top_k (None keeps every token)")
    n = vocab if top_k is None else smallest(top_k, vocab)
    logits, candidates = (Tensor(axes, batch * size, "activation") for axes, size in (("B V", vocab), ("B n", n)))
    counted = int(elementwise)
    rows = [
        Row("temperature and selection", Op(counted * batch * vocab, (logits,))),
        Row("softmax", Op(5 * counted * batch * n, (candidates,), (candidates,))),
    ]
    if top_p:
        rows.append(Row("sort and cut", Op(0, (candidates,), (candidates,))))
    return Ledger([*rows, Row("draw", Op(counted * batch * n, (candidates,)))])
