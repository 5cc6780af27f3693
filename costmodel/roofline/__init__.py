"""Ledger x accelerator -> seconds. A pass is bound by memory or by compute, whichever takes longer.

Two ways to add up a ledger, never mixed silently: perfect overlap takes one maximum over the whole pass; no overlap
takes a maximum for every row and sums them. (Williams, Waterman, Patterson, CACM 52(4), 2009.)
"""

from costmodel.roofline.bound import Timing, attainable, model_flops_utilisation
from costmodel.roofline.sums import overlapped_seconds, serial_seconds, timing

__all__ = ["Timing", "attainable", "model_flops_utilisation", "overlapped_seconds", "serial_seconds", "timing"]
