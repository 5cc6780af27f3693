"""The sequences that decode together: their share of a step as running totals, so that many steps cost one sum."""

from heapq import heappop, heappush

from costmodel.serving.costs import PassCosts


class Sequence:
    """A request on a replica: how far it is, and what it holds.

    Attributes
    ----------
    key : (priority, arrival, index): who comes first
    prompt, output, made : tokens of its prompt, of its answer, and of the answer so far
    cached : tokens in its cache while it does not decode
    filled : tokens of its prompt's cache that are ready, while it is prefilled
    away, due : whether its cache lies outside, and the ticks that bringing it in holds up the replica
    reserved : bytes of its cache when its answer is complete
    """

    __slots__ = (
        "away", "base", "cached", "drawn", "due", "ends", "filled", "grows", "index", "joined", "key", "made", "offset",
        "output", "prompt", "reserved",
    )  # fmt: skip
    offset: int
    ends: int
    base: tuple[int, int, int]
    grows: tuple[int, int, int]

    def __init__(self, key: tuple[int, int, int], prompt: int, output: int) -> None:
        self.key, self.index, self.prompt, self.output = key, key[2], prompt, output
        self.made = self.cached = self.filled = self.reserved = self.due = 0
        self.away = False
        self.joined = self.drawn = 0

    @property
    def context(self) -> int:
        """Tokens its cache holds when it begins to decode."""
        return self.cached if self.away else self.prompt + self.made

    @property
    def soon(self) -> int:
        """Tokens its cache holds after its first decode step, if it has one."""
        return min(self.context + 1, self.prompt + self.output - 1)


class Decoding:
    """Sequences in decode, each adding lines in the step number: compute, memory, bytes held.

    Parameters
    ----------
    costs : of the deployment
    """

    def __init__(self, costs: PassCosts) -> None:
        self.costs = costs
        self.step = 0  # decode steps so far
        self.members: dict[int, Sequence] = {}
        self.base = [0, 0, 0]  # Σ of each line at step 0
        self.grows = [0, 0, 0]  # Σ of each line's slope
        self._ends: list[tuple[int, int, Sequence]] = []  # (step, serial of joining, who)
        self._breaks: list[tuple[int, int, Sequence]] = []  # (step, serial of drawing, who)
        self._serial = 0

    def __len__(self) -> int:
        return len(self.members)

    def join(self, who: Sequence) -> None:
        """A sequence whose cache is ready decodes from the next step on."""
        who.offset = who.cached - self.step
        who.ends = self.step + who.output - who.made
        self._serial += 1
        who.joined = self._serial
        self.members[who.index] = who
        if who.made < who.output:
            heappush(self._ends, (who.ends, who.joined, who))
        self._draw(who)

    def leave(self, who: Sequence) -> None:
        """A sequence decodes no more."""
        who.joined = 0
        del self.members[who.index]
        self._erase(who)

    def interrupt(self, who: Sequence) -> None:
        """A sequence leaves before its answer is complete; `cached` and `made` say how far it came."""
        who.cached = who.offset + self.step
        who.made = who.output - (who.ends - self.step)
        self.leave(who)

    def _draw(self, who: Sequence) -> None:
        """Add its lines as they run from the next step on, and note where they break."""
        costs, step = self.costs, self.step
        context = who.offset + step + 1
        (c, c_more), (m, m_more), (h, h_more) = costs.lines_at(context)
        who.base = c - c_more * step, m - m_more * step, h - h_more * step
        who.grows = c_more, m_more, h_more
        self._add(who, 1)
        if costs.breaks:
            last = costs.last(context)
            if last is not None:
                self._serial += 1
                who.drawn = self._serial
                heappush(self._breaks, (last - who.offset, who.drawn, who))

    def _erase(self, who: Sequence) -> None:
        who.drawn = 0
        self._add(who, -1)

    def _add(self, who: Sequence, times: int) -> None:
        base, grows = self.base, self.grows
        c, m, h = who.base
        base[0], base[1], base[2] = base[0] + times * c, base[1] + times * m, base[2] + times * h
        c, m, h = who.grows
        grows[0], grows[1], grows[2] = grows[0] + times * c, grows[1] + times * m, grows[2] + times * h

    def horizon(self) -> int:
        """Steps until the next sequence ends or a line breaks."""
        ends, breaks = self._ends, self._breaks
        while ends[0][2].joined != ends[0][1]:  # it has left
            heappop(ends)
        first = ends[0][0]
        while breaks and breaks[0][2].drawn != breaks[0][1]:
            heappop(breaks)
        if breaks:
            first = min(first, breaks[0][0])
        return first - self.step

    def lines(self) -> tuple[int, int, int, int]:
        """The next step's compute and memory ticks, each followed by its growth a step."""
        (compute, memory, _), (faster, slower, _) = self.base, self.grows
        c, m = self.costs.shared(len(self.members))
        return c + compute + faster * self.step, faster, m + memory + slower * self.step, slower

    def advance(self, steps: int) -> list[Sequence]:
        """Go so many steps on, none past the horizon; whose answers are complete, in the order they joined."""
        self.step += steps
        ends, breaks, done = self._ends, self._breaks, []
        while breaks and breaks[0][0] <= self.step:
            _, drawn, who = heappop(breaks)
            if who.drawn == drawn:
                self._erase(who)
                self._draw(who)
        while ends and ends[0][0] <= self.step:
            _, joined, who = heappop(ends)
            if who.joined == joined:
                done.append(who)
        return done
