"""A decoder-only transformer in NumPy that counts its own work, whatever its weights."""

from collections.abc import Callable, Iterable, Iterator, Sequence

import numpy as np

from costmodel.common.errors import CostModelError
from costmodel.lab.blocks import attend, feed_forward, rms_norm, rotary_turns, rotate
from costmodel.lab.cache import FIRST_CHUNK, KVCache
from costmodel.lab.generation import Generation, stream
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
    weights : of that shape
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

    def forward_full(self, tokens: Sequence[int], cache: KVCache | None = None) -> np.ndarray:
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

    def forward_step(self, token: int, pos: int, cache: KVCache) -> np.ndarray:
        """One pass over one token at position `pos`, which must be the next of the cache.

        Returns
        -------
        (V,) logits

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
        self, sequences: Sequence[Sequence[int]], caches: Sequence[KVCache | None] | None = None
    ) -> list[np.ndarray]:
        """One pass over several sequences of any lengths (selective batching: Yu et al., Orca, OSDI 2022).

        All but attention works on the concatenated rows, so weights are read once; attention runs per sequence.

        Parameters
        ----------
        sequences : (T_i,) ids each
        caches : one (or None) for each sequence

        Returns
        -------
        (T_i, V) logits each
        """
        caches = [None] * len(sequences) if caches is None else list(caches)
        if len(caches) != len(sequences):
            raise CostModelError(f"one cache for each sequence is needed, got {len(caches)} for {len(sequences)}")
        held = [id(cache) for cache in caches if cache is not None]
        if len(set(held)) < len(held):
            raise CostModelError("two sequences of a batch share one cache; give each its own, cache.fork()")
        rows = [self._checked(tokens) for tokens in sequences]
        if not rows:
            return []
        pasts = [0 if cache is None else cache.length for cache in caches]
        self._check_lengths(rows, pasts)
        for tokens, cache in zip(rows, caches, strict=True):
            if cache is not None:
                cache.reserve(len(tokens))
        ids = np.concatenate(rows)
        positions = np.concatenate([np.arange(past, past + len(r)) for past, r in zip(pasts, rows, strict=True)])
        x = self.weights.embedding[ids]
        if self.weights.positions is not None:
            x = x + self.weights.positions[positions]
        turns = None
        if self.shape.rope_theta is not None:
            turns = rotary_turns(positions, self.shape.head_dim, self.shape.rope_theta, x.dtype)
        lengths = [len(r) for r in rows]
        for index, layer in enumerate(self.weights.layers):
            x = x + self._attention(index, layer, x, turns, lengths, caches)
            normed = rms_norm(x, layer.mlp_gain, self.shape.norm_eps)
            x = x + feed_forward(normed, layer.up, layer.down, self.work)
        x = rms_norm(x, self.weights.final_gain, self.shape.norm_eps)
        logits = self.weights.head.multiply(x, self.work)
        for tokens, cache in zip(rows, caches, strict=True):
            if cache is not None:
                cache.advance(len(tokens))
        self.work.positions += len(ids)
        return np.split(logits, np.cumsum(lengths)[:-1])

    def _attention(
        self,
        index: int,
        layer: LayerWeights,
        x: np.ndarray,
        turns: np.ndarray | None,
        lengths: list[int],
        caches: list[KVCache | None],
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
        for tokens, cache in zip(lengths, caches, strict=True):
            here = slice(start, start + tokens)
            if cache is None:
                past, chunks = 0, [(k[here].swapaxes(0, 1), v[here].swapaxes(0, 1))]
            else:
                cache.write(index, k[here], v[here])
                past, chunks = cache.length, cache.read(index, cache.length + tokens)
            mixed[here] = attend(q[here], chunks, past, self.work)
            start += tokens
        return layer.output.multiply(mixed, self.work)

    def _checked(self, tokens: Sequence[int]) -> np.ndarray:
        ids = np.asarray(tokens)
        if ids.ndim != 1 or ids.size == 0 or not np.issubdtype(ids.dtype, np.integer):
            raise CostModelError(f"tokens must be a non-empty sequence of integers, got {str(tokens)[:60]}")
        wrong = ids[(ids < 0) | (ids >= self.shape.vocab)]
        if wrong.size:
            raise CostModelError(f"token {wrong[0]} is outside the vocabulary; ids are 0 to {self.shape.vocab - 1}")
        return ids

    def _check_lengths(self, rows: list[np.ndarray], pasts: list[int]) -> None:
        longest = max(past + len(tokens) for past, tokens in zip(pasts, rows, strict=True))
        if longest > self.shape.max_len:
            raise CostModelError(f"sequence of {longest} tokens is longer than max_len, {self.shape.max_len}")

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
        progress : told (tokens so far, n_new) after each

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
        positions, flops = self.work.positions, self.work.flops
        tokens = [int(token) for token in prompt]
        for done, token in enumerate(self.stream(prompt, n_new, use_cache, choose=choose, stop=stop), start=1):
            tokens.append(token)
            if progress is not None:
                progress(done, n_new)
        return Generation(tokens, self.work.positions - positions, self.work.flops - flops, len(prompt))
