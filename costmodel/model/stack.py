"""A stack of blocks between embedding and head: what it stores, keeps for a sequence, and does in a pass."""

from dataclasses import dataclass, replace
from typing import Any

from costmodel.common.errors import CostModelError
from costmodel.exact import Number, stored_bytes, whole
from costmodel.layers._layer import Layer
from costmodel.model.block import Block, Tower, element_bytes
from costmodel.ops import Ledger
from costmodel.passes import ForwardPass
from costmodel.symbols import B, S


@dataclass(frozen=True)
class Model:
    """A stack [(block, count), …] between what comes before (embedding) and after (last norm, head).

    Attributes
    ----------
    name, family : what it is called, and the kind of configuration it came from
    before, blocks, after : its parts
    towers : encoders of other inputs (vision), stored beside the text model
    dtype : format its weights are stored in, or size of one where formats are mixed [byte]; None if not known
    tied_head : whether the head reuses the embedding table
    positions : the longest context it was made for [token], where stated
    notes : what had to be assumed

    Examples
    --------
    >>> from costmodel.layers import Embedding, Mlp, Unembedding
    >>> three = ((Block((Mlp(8, 32),)), 3),)  # three gated MLPs: 3·(3·8·32) parameters
    >>> Model(three, before=(Embedding(100, 8),), after=(Unembedding(100, 8),)).params  # and 2·100·8
    3904
    """

    blocks: tuple[tuple[Block, Number], ...]
    before: tuple[Layer, ...] = ()
    after: tuple[Layer, ...] = ()
    towers: tuple[Tower, ...] = ()
    name: str = "model"
    family: str = "transformer"
    dtype: str | Number | None = "bf16"
    tied_head: bool = False
    positions: int | None = None
    notes: tuple[str, ...] = ()

    def _parts(self) -> list[tuple[Layer, Number]]:
        inner = [(layer, count) for block, count in self.blocks for layer in block.layers]
        return [*((layer, 1) for layer in self.before), *inner, *((layer, 1) for layer in self.after)]

    @property
    def params(self) -> Number:
        """Stored parameters: those of the text model and of its towers."""
        return self.text_params + sum(tower.params for tower in self.towers)

    @property
    def text_params(self) -> Number:
        """Parameters of the text model: Σ count x the layers' own; a tied head stores none."""
        return sum(layer.params * count for layer, count in self._parts())

    @property
    def matrix_params(self) -> Number:
        """Parameters in matrices alone, without norm gains and biases: the textbook count."""
        return sum(layer.matrix_params * count for layer, count in self._parts())

    @property
    def active_params(self) -> Number:
        """Parameters of the text model that one token uses: without the experts it was not sent to."""
        return sum(layer.active_params * count for layer, count in self._parts())

    def cache_elements(self, context: Number = S) -> Number:
        """Elements kept per sequence of `context` tokens: keys, values and any constant state.

        Parameters
        ----------
        context : tokens of the sequence [token], a number or a symbol

        Returns
        -------
        number of elements

        Raises
        ------
        CostModelError
            for a context that is no whole number

        Examples
        --------
        >>> from costmodel.model import transformer
        >>> transformer().cache_elements()
        2*H*K*L*S
        """
        context = whole(context, "context", at_least=0)
        return sum(layer.cache_elements(context) * count for layer, count in self._parts())

    @property
    def state_elements(self) -> Number:
        """Elements of constant state per sequence, whatever the context."""
        return sum(layer.state_elements * count for layer, count in self._parts())

    def weight_bytes(self, weights: str | Number | None = None) -> Number:
        """Params x bytes per weight [byte], in the stored format unless another is given.

        Parameters
        ----------
        weights : name of a format, or the size of a weight [byte]; None for the format they are stored in

        Returns
        -------
        memory [byte], towers included; a number is rounded up to a whole byte

        Raises
        ------
        CostModelError
            when no format is given and the stored one cannot be known

        Examples
        --------
        >>> from costmodel import load
        >>> load("llama-3-8b").weight_bytes(), load("llama-3-8b").weight_bytes("int4")
        (16060522496, 4015130624)
        """
        return stored_bytes(self.params, element_bytes(self.stored_dtype() if weights is None else weights))

    def cache_bytes(self, context: Number = S, cache: str | Number = "bf16") -> Number:
        """Keys and values x bytes per element, and any constant state at 16 bit, for one sequence [byte].

        Parameters
        ----------
        context : tokens of the sequence [token], a number or a symbol
        cache : name of the cache's format, or the size of an element [byte]

        Returns
        -------
        memory of one sequence [byte]

        Raises
        ------
        CostModelError
            for a context that is no whole number

        Examples
        --------
        >>> from costmodel import load
        >>> load("llama-3-8b").cache_bytes(1024) == 2 * 32 * 8 * 128 * 1024 * 2  # 2·L·K·H·S elements of 2 bytes
        True
        """
        state = self.state_elements
        return stored_bytes(self.cache_elements(context) - state, element_bytes(cache)) + 2 * state

    def stored_dtype(self) -> str | Number:
        """The stored format.

        Returns
        -------
        name of a format, or the size of a weight where formats are mixed [byte]

        Raises
        ------
        CostModelError
            when it cannot be known; an explicit weight format is then needed

        Examples
        --------
        >>> from costmodel import load
        >>> load("llama-3-8b").stored_dtype()
        'bf16'
        """
        if self.dtype is None:
            reason = self.notes[0] if self.notes else f"{self.name} states no weight format"
            raise CostModelError(
                f"{reason}; give the weight format explicitly, for example weights='int4' (--weights int4)"
            )
        return self.dtype

    def forward(self, forward: ForwardPass) -> Ledger:
        """The ledger of one forward pass, each block's rows counted as often as the block occurs.

        Parameters
        ----------
        forward : how many sequences, new tokens and context

        Returns
        -------
        Ledger with FLOPs [FLOP] and bytes [byte] at 16 bit; several kinds of block put their names before their rows'

        Examples
        --------
        >>> from costmodel.model import transformer
        >>> transformer().forward(ForwardPass())["down"].flops
        2*B*D*F*L*T
        """
        ledger = Ledger(row for layer in self.before for row in layer.ledger(forward).rows)
        for block, count in self.blocks:
            rows = block.ledger(forward).times(count).rows
            if len(self.blocks) > 1:
                rows = [replace(row, name=f"{block.name}: {row.name}") for row in rows]
            ledger += Ledger(rows)
        return ledger + Ledger(row for layer in self.after for row in layer.ledger(forward).rows)

    def decode(self, batch: Number = B, context: Number = S, **switches: Any) -> Ledger:
        """One token for each of `batch` sequences that attend to `context` tokens (T = 1).

        Parameters
        ----------
        batch, context : B [sequence], and S [token], the one being processed included
        switches : those of `ForwardPass`: causal, head, elementwise

        Returns
        -------
        Ledger of the pass, as `forward` gives it

        Raises
        ------
        CostModelError
            for sizes that are not positive

        Examples
        --------
        >>> from costmodel import load
        >>> load("llama-3-8b").decode(batch=1, context=1024)["unembedding"].flops == 2 * 128256 * 4096  # 2·V·D
        True
        """
        return self.forward(ForwardPass(batch, 1, context, **switches))

    def prefill(self, batch: Number = B, prompt: Number = S, **switches: Any) -> Ledger:
        """A whole prompt at once (T = S).

        Parameters
        ----------
        batch, prompt : B [sequence], and T = S [token]
        switches : those of `ForwardPass`: causal, head, elementwise

        Returns
        -------
        Ledger of the pass, as `forward` gives it

        Raises
        ------
        CostModelError
            for sizes that are not positive

        Examples
        --------
        >>> from costmodel.model import transformer
        >>> transformer().prefill()["down"].flops, transformer().prefill()["unembedding"].flops  # last token's logits
        (2*B*D*F*L*S, 2*B*D*V)
        """
        return self.forward(ForwardPass(batch, prompt, prompt, **switches))
