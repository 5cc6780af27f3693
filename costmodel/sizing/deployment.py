"""Deployment: a model on an accelerator in given formats, and what that allows."""

from dataclasses import KW_ONLY, dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Any

from sympy import Expr

from costmodel.common.checks import is_real
from costmodel.common.errors import CostModelError
from costmodel.exact import Number, whole
from costmodel.hardware import Accelerator
from costmodel.model import Model
from costmodel.ops import Ledger
from costmodel.parallel import ONE_DEVICE, Parallel
from costmodel.roofline import Timing, timing
from costmodel.sizing.arithmetic import Arithmetic
from costmodel.sizing.forecast import Forecast, forecast, interrupted
from costmodel.sizing.memory import Memory
from costmodel.sizing.questions import Questions
from costmodel.sizing.steps import ComputeBound, Decode, MemoryBound
from costmodel.symbols import B, S

KINDS = (
    ("model", Model, "a Model, such as load('llama-3-8b')"),
    ("accelerator", Accelerator, "an Accelerator, such as accelerator('h100-sxm')"),
    ("parallel", Parallel, "Parallel, such as Parallel(tensor=8)"),
    ("compute", str, "the name of a dtype, such as 'bf16'"),
    ("textbook", bool, "True or False"),
    ("calibrated", bool | str, "True, False, or the name of a software"),
)


@dataclass(frozen=True)
class Deployment(Memory, Arithmetic, Questions):
    """A model on an accelerator.

    Parameters
    ----------
    model, accelerator : what runs, and on what
    weights : format of the weights (None: as stored), or bytes per weight as a number or symbol
    cache, activations : format of the key/value cache and of activations, likewise
    reserve : share of the capacity kept free for activations, fragmentation and the runtime
    compute : dtype of the arithmetic; weights in fewer bits are widened to it
    parallel : how it is spread over devices; memory is then that of the fullest, and a batch that of one replica
    textbook : closed forms in place of the roofline. Decode time is (weights + cache)/bandwidth with the embedding
        counted, norms and biases left out; prefill time is 2·params·tokens/peak with the parameters a token uses
    calibrated : a forecast from constants fitted to published measurements, in place of the bound: True for average
        software, or the name of one, such as "vllm"; its `error` says how wrong it was on rows it had not seen. It
        supposes the arithmetic that such weights get (fp8 where a device has it) in place of `compute`

    Raises
    ------
    CostModelError
        for an argument of another kind, a reserve outside [0, 1), textbook and calibrated at once, calibrated with a
        `compute`, and a spread that textbook (one device) or calibrated (tensor and replicas) does not know

    Examples
    --------
    >>> from costmodel import accelerator, load
    >>> d = Deployment(load("llama-3-8b"), accelerator("h100-sxm"), weights="int4", reserve=0.1)
    >>> d.weight_bytes, d.usable_bytes  # half a byte for each of 8,030,261,248 parameters; nine tenths of 80 GB
    (4015130624, 72000000000)
    >>> step = Deployment(load("llama-3-8b"), accelerator("h100-sxm"), calibrated="vllm").decode(batch=8, context=1024)
    >>> step.timing.parts["weights"] < step.seconds_per_token < 2 * step.timing.parts["weights"]
    True
    """

    model: Model
    accelerator: Accelerator
    _: KW_ONLY
    weights: str | Number | None = None
    cache: str | Number = "bf16"
    activations: str | Number = "bf16"
    reserve: Number = 0
    compute: str = "bf16"
    parallel: Parallel = ONE_DEVICE
    textbook: bool = False
    calibrated: bool | str = False

    def __post_init__(self) -> None:
        for name, kinds, words in KINDS:
            if not isinstance(getattr(self, name), kinds):
                raise CostModelError(f"{name} must be {words}, got {getattr(self, name)!r}")
        if self.textbook and self.calibrated:
            raise CostModelError("textbook and calibrated are two answers to one question; ask for one of them")
        if self.calibrated and self.compute != "bf16":
            raise CostModelError(f"calibrated supposes the arithmetic that its weights get; leave out {self.compute!r}")
        if self.calibrated and (self.parallel.data, self.parallel.pipeline) != (1, 1):
            raise CostModelError(f"calibrated knows tensor parallelism and replicas, got {self.parallel}")
        if not isinstance(reserve := self.reserve, Expr) and not (is_real(reserve) and 0 <= reserve < 1):
            raise CostModelError(f"reserve must be at least 0 and below 1, got {reserve!r}")
        if isinstance(reserve, float):  # 0.1 means a tenth, not the nearest binary fraction
            object.__setattr__(self, "reserve", Fraction(str(reserve)))
        if self.textbook and self.parallel.shards:
            raise CostModelError(f"the textbook's closed forms know one device, got {self.parallel}")

    @cached_property
    def part(self) -> Model:
        """What one device of every stage does: the model itself where nothing is split."""
        if not self.parallel.shards:
            return self.model
        from costmodel.parallel.device import device_pass

        return device_pass(self.model, self.parallel)

    def decode_ledger(self, batch: Number, context: Number) -> Ledger:
        """What one device does in a decode step of `batch` sequences.

        Parameters
        ----------
        batch, context : B of one replica [sequence], S [token]; numbers or symbols

        Returns
        -------
        Ledger, with the stages of a pipeline one after another

        Examples
        --------
        >>> from costmodel import accelerator, load
        >>> two = Deployment(load("llama-3-8b"), accelerator("h100-sxm"), parallel=Parallel(tensor=2))
        >>> row = two.decode_ledger(1, 1024)["up"]  # half of the 14,336 columns, in each of 32 layers
        >>> row.count, row.op.flops == 2 * 4096 * 14336 // 2
        (32, True)
        """
        ways = self.parallel.data * self.parallel.pipeline  # a batch travels through the stages in as many parts
        return self.part.decode(self.parallel.share(batch, ways), context).sized(self.widths)

    def _timing(self, ledger: Ledger) -> Timing:
        alone = timing(ledger, self.accelerator, self.compute)
        if ledger.sent == 0:
            return alone
        talk = self.parallel.communication_seconds(ledger, self.accelerator)
        return replace(alone, communication_seconds=talk, hidden=self.parallel.hidden)

    def _forecast(self, bound: Timing, ledger: Ledger, sequences: Number, tokens: Number) -> Forecast:
        return forecast(replace(bound, peak=self.peak), self.model, ledger, self._setting, sequences, tokens)

    def decode(self, batch: Number = B, context: Number = S, *, generated: Number | None = None) -> Decode:
        """One decode step: latency, throughput, what binds, memory.

        Parameters
        ----------
        batch : B, sequences of one replica [sequence], a number or a symbol
        context : S, tokens each attends to [token], the one being made included; likewise
        generated : calibrated alone: tokens each sequence generates before another takes its place, whose prefill
            then interrupts the others [token]; None for no newcomers

        Returns
        -------
        Decode: seconds_per_token [s], tokens_per_s [token/s], bound, memory_bytes [byte]

        Raises
        ------
        CostModelError
            for a batch, context or `generated` that is neither a symbol nor a whole number of at least 1, and the last
            without calibrated; that it does not fit is no error: see `wall`

        Examples
        --------
        >>> from costmodel import accelerator, load
        >>> step = Deployment(load("llama-3-8b"), accelerator("h100-sxm")).decode(batch=1, context=1024)
        >>> step.bound, round(step.seconds_per_token * 1e3, 2)  # 15 GB of weights, all but the embedding, at 3.35 TB/s
        ('memory', 4.52)
        """
        if generated is not None and not self.calibrated:
            raise CostModelError("generated changes a forecast alone; give calibrated=True, or leave it out")
        batch, context = whole(batch, "batch"), whole(context, "context")
        memory = self.memory_bytes(batch, context)
        if self.textbook:
            step: Timing = MemoryBound(2 * self.used_params * batch, memory, self.peak, self.accelerator.bandwidth)
        else:
            step = self._timing(self.decode_ledger(batch, context))
            if self.calibrated:
                step = self._forecast(step, self.model.decode(batch, context), batch, batch)
                if generated is not None:
                    step = interrupted(step, self.model, self._setting, batch, context, whole(generated, "generated"))
        return Decode(step, batch, context, memory, self.parallel.replicas)

    def prefill(self, prompt: Number = S, batch: Number = 1) -> Timing:
        """Prefill of `batch` prompts; for one prompt its seconds are the time to first token.

        Parameters
        ----------
        prompt, batch : tokens of each prompt [token], prompts at once [sequence]; numbers or symbols

        Returns
        -------
        Timing: seconds [s], bound, flops [FLOP], bytes [byte]

        Raises
        ------
        CostModelError
            for a prompt or batch that is neither a symbol nor a whole number of at least 1

        Examples
        --------
        >>> from costmodel import accelerator, load
        >>> d = Deployment(load("llama-3-8b"), accelerator("h100-sxm"), textbook=True)
        >>> round(d.prefill(1000).seconds * 1e3, 2)  # 2 · 8.03e9 · 1000 FLOPs at 989 TFLOP/s
        16.24
        """
        prompt, batch = whole(prompt, "prompt"), whole(batch, "batch")
        if self.textbook:
            flops, moved = 2 * self.used_params * batch * prompt, self.weight_bytes
            return ComputeBound(flops, moved, self.peak, self.accelerator.bandwidth)
        share = self.parallel.share(batch, self.parallel.data)
        found = self._timing(self.part.prefill(share, prompt).sized(self.widths))
        if self.calibrated:
            return self._forecast(found, self.model.prefill(batch, prompt), batch, batch * prompt)
        return found

    @cached_property
    def formulas(self) -> dict[str, Number]:
        """Decode latency [s], throughput [token/s] and memory [byte] as formulas in B and S."""
        step = self.decode(B, S)
        return {
            "seconds_per_token": step.seconds_per_token,
            "tokens_per_s": step.tokens_per_s,
            "memory_bytes": step.memory_bytes,
        }

    def grid(self, batch: object, context: object) -> dict[str, Any]:
        """`formulas` on arrays of batch and context, which broadcast; compiled once.

        Parameters
        ----------
        batch, context : numbers or arrays of them [sequence], [token], above 0 and not checked

        Returns
        -------
        {"seconds_per_token": [s], "tokens_per_s": [token/s], "memory_bytes": [byte]}, each a float64 array

        Examples
        --------
        >>> from costmodel import accelerator, load
        >>> d = Deployment(load("llama-3-8b"), accelerator("h100-sxm"))
        >>> d.grid([1, 8], 1024)["memory_bytes"].tolist() == [d.memory_bytes(1, 1024), d.memory_bytes(8, 1024)]
        True
        """
        from costmodel.evaluate import compile_formulas  # only arrays compile: a single answer starts faster

        compiled = compile_formulas(list(self.formulas.values()), (B, S))
        return dict(zip(self.formulas, compiled(batch, context), strict=True))
