"""A decoder-only transformer in NumPy that counts its own work, whatever its weights."""

from collections.abc import Callable, Iterable, Iterator, Sequence

import numpy as np

from costmodel.common.errors import CostModelError
from costmodel.common.progress import watched
from costmodel.lab.blocks import attend, feed_forward, rms_norm, rotary_turns, rotate
from costmodel.lab.cache import FIRST_CHUNK, Cache, KVCache
from costmodel.lab.generation import Generation, stream
from costmodel.lab.ragged import RaggedBatch
from costmodel.lab.sampling import greedy
from costmodel.lab.shape import DecoderShape
from costmodel.lab.weights import DecoderWeights, LayerWeights
from costmodel.lab.work import Work


class Decoder:
    """Embedding, L layers of x + attention(norm(x)) and x + mlp(norm(x)), a final norm and the head.

    Every pass computes logits for all of its positions, and adds to `work` as it multiplies.

    Parameters
    ----------
    shape : sizes and switches
    weights : of that shape; used, not copied

    Examples
    --------
    >>> from costmodel.lab.decoder import TinyDecoder
    >>> tiny = TinyDecoder()  # V = D = 16, L = 2, N = 2, H = 8: 6400 numbers in matrices
    >>> logits = tiny.forward_full([1, 2, 3])
    >>> tiny.work.positions, tiny.work.flops == 2 * 3 * 6400 + 4 * 2 * 2 * 3 * 3 * 8  # 2·T·params + 4·L·N·T·S·H
    (3, True)

    References
    ----------
    Vaswani et al., Attention is all you need, 1706.03762; the norms first as in Llama, Touvron et al., 2302.13971.
    """

    def __init__(self, shape: DecoderShape, weights: DecoderWeights) -> None:
        self.shape = shape
        self.weights = weights
        self.work = Work()

    @property
    def params(self) -> int:
        """How many numbers the model has, a tied head counted once."""
        return self.weights.params

    def new_cache(self, capacity: int = FIRST_CHUNK) -> KVCache:
        """An empty cache with room for `capacity` tokens before it first grows."""
        return KVCache(self.shape, capacity)

    def forward_full(self, tokens: Sequence[int], cache: Cache | None = None) -> np.ndarray:
        """One pass over all tokens of a sequence, after those already in the cache, which it fills.

        Parameters
        ----------
        tokens : (T,) ids
        cache : holds S - T tokens before and S after; None for a sequence from its start

        Returns
        -------
        (T, V) logits

        Raises
        ------
        CostModelError
            for no tokens, an id outside the vocabulary, or more than max_len positions

        Examples
        --------
        >>> from costmodel.lab.decoder import TinyDecoder
        >>> TinyDecoder().forward_full([1, 2, 3]).shape
        (3, 16)
        """
        return self.forward_batch([tokens], [cache])[0]

    def forward_step(self, token: int, pos: int, cache: Cache) -> np.ndarray:
        """One pass over one token at position `pos`, which must be the next of the cache.

        Parameters
        ----------
        token : id
        pos : cache.length
        cache : of all tokens before; grows by one

        Returns
        -------
        (V,) logits

        Raises
        ------
        CostModelError
            for another position, an id outside the vocabulary, or a full cache

        Examples
        --------
        >>> from costmodel.lab.decoder import TinyDecoder
        >>> tiny = TinyDecoder()
        >>> cache = tiny.new_cache()
        >>> before = tiny.forward_full([1, 2], cache)
        >>> np.allclose(tiny.forward_step(3, 2, cache), tiny.forward_full([1, 2, 3])[-1], rtol=0, atol=1e-10)
        True
        """
        if pos != cache.length:
            raise CostModelError(f"pos must be the next position of the cache, {cache.length}, got {pos}")
        return self.forward_batch([[token]], [cache])[0][0]

    def forward_batch(
        self, sequences: Sequence[Sequence[int]], caches: Sequence[Cache | None] | None = None
    ) -> list[np.ndarray]:
        """One pass over several sequences of any lengths (selective batching: Yu et al., Orca, OSDI 2022).

        All but attention works on the concatenated rows, so weights are read once; attention runs per sequence.

        Parameters
        ----------
        sequences : (T_i,) ids each
        caches : one (or None) for each sequence, filled as `forward_full` does; None for none

        Returns
        -------
        (T_i, V) logits each

        Raises
        ------
        CostModelError
            before anything changes, for what `forward_full` refuses, or one cache for two sequences
        """
        if not sequences:
            return []
        rows = self.hidden_batch(sequences, [None] * len(sequences) if caches is None else caches)
        return self.logits_of(rows)

    def hidden(self, tokens: Sequence[int], cache: Cache | None = None) -> np.ndarray:
        """What the head reads: the normed last layer (T, D), without the logits; otherwise as `forward_full`."""
        return self.hidden_batch([tokens], [cache])[0]

    def logits_of(self, hidden: Sequence[np.ndarray]) -> list[np.ndarray]:
        """The head on rows (T_i, D) of each sequence, all in one product: logits (T_i, V)."""
        logits = self.weights.head.multiply(np.concatenate(hidden), self.work)
        return np.split(logits, np.cumsum([len(rows) for rows in hidden])[:-1])

    def hidden_batch(self, sequences: Sequence[Sequence[int]], caches: Sequence[Cache | None]) -> list[np.ndarray]:
        """What the head reads, (T_i, D) for each sequence; otherwise as `forward_batch`."""
        batch = RaggedBatch(self.shape, sequences, caches)
        x = self._hidden(batch)
        batch.finish()
        return batch.split(x)

    def _hidden(self, batch: RaggedBatch) -> np.ndarray:
        x = self.weights.embedding[batch.ids]
        if self.weights.positions is not None:
            x = x + self.weights.positions[batch.positions]
        turns = None
        if self.shape.rope_theta is not None:
            turns = rotary_turns(batch.positions, self.shape.head_dim, self.shape.rope_theta, x.dtype)
        for index, layer in enumerate(self.weights.layers):
            x = x + self._attention(index, layer, x, turns, batch)
            normed = rms_norm(x, layer.mlp_gain, self.shape.norm_eps)
            x = x + feed_forward(normed, layer.up, layer.down, self.work)
        self.work.positions += len(batch.ids)
        return rms_norm(x, self.weights.final_gain, self.shape.norm_eps)

    def _attention(
        self, index: int, layer: LayerWeights, x: np.ndarray, turns: np.ndarray | None, batch: RaggedBatch
    ) -> np.ndarray:
        N, K, H = self.shape.n_heads, self.shape.n_kv_heads, self.shape.head_dim
        qkv = layer.qkv.multiply(rms_norm(x, layer.attention_gain, self.shape.norm_eps), self.work)
        heads = qkv.reshape(len(x), N + 2 * K, H)
        rotated = heads[:, : N + K]
        if turns is not None:
            rotated = rotate(rotated, turns)
        q, k, v = rotated[:, :N], rotated[:, N:], heads[:, N + K :]
        mixed = np.empty((len(x), N * H), x.dtype)
        start = 0
        for tokens, cache in zip(batch.lengths, batch.caches, strict=True):
            here = slice(start, start + tokens)
            chunks: Iterable[tuple[np.ndarray, np.ndarray]]
            if cache is None:
                past, chunks = 0, [(k[here].swapaxes(0, 1), v[here].swapaxes(0, 1))]
            else:
                cache.write(index, k[here], v[here])
                past, chunks = cache.length, cache.read(index, cache.length + tokens)
            mixed[here] = attend(q[here], chunks, past, self.work)
            start += tokens
        return layer.output.multiply(mixed, self.work)

    def stream(
        self,
        prompt: Sequence[int],
        n_new: int,
        use_cache: bool = True,
        *,
        choose: Callable[[np.ndarray], int] = greedy,
        stop: Iterable[int] = (),
    ) -> Iterator[int]:
        """New tokens one by one, as they are chosen; see `generate`."""
        return stream(self, prompt, n_new, use_cache, choose=choose, stop=stop)

    def generate(
        self,
        prompt: Sequence[int],
        n_new: int,
        use_cache: bool = True,
        *,
        choose: Callable[[np.ndarray], int] = greedy,
        stop: Iterable[int] = (),
        progress: Callable[[int, int], None] | None = None,
    ) -> Generation:
        """Continue a prompt, re-running the whole prefix for every token or, with a cache, only the last one.

        Positions = Σ (P + i) for i < M without, P + M - 1 with a cache.

        Parameters
        ----------
        prompt : (P,) ids
        n_new : M, the most tokens to add
        use_cache : whether to keep keys and values
        choose : logits (V,) -> token
        stop : tokens that end it early (the last one is kept)
        progress : told (tokens so far, n_new) after each; by default a bar for a long answer on a terminal

        Returns
        -------
        Generation, with the tokens (prompt included), positions processed and FLOPs of this run

        Examples
        --------
        >>> from costmodel.lab.decoder import TinyDecoder
        >>> tiny = TinyDecoder()
        >>> slow, fast = (tiny.generate(range(8), 16, use_cache=cached) for cached in (False, True))
        >>> slow.positions_processed, fast.positions_processed
        (248, 23)
        >>> slow.flops, fast.flops, slow.tokens == fast.tokens
        (3709952, 333312, True)
        """
        progress = progress or watched("writing", "tokens", n_new)
        positions, flops = self.work.positions, self.work.flops
        tokens = [int(token) for token in prompt]
        for done, token in enumerate(self.stream(prompt, n_new, use_cache, choose=choose, stop=stop), start=1):
            tokens.append(token)
            if progress is not None:
                progress(done, n_new)
        return Generation(tokens, self.work.positions - positions, self.work.flops - flops, len(prompt))
