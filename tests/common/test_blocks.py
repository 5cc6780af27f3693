"""Blocks never leak, are never freed twice, and never shared by two writers."""

import random
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from costmodel.common.block_tables import BlockTables
from costmodel.common.blocks import BlockPool, OutOfBlocksError, blocks_of
from costmodel.common.errors import CostModelError

NAMES, BLOCK = 6, 4
DEVICE, HOST = 12, 8


class Memory:
    """Block tables with token lists behind them, and the same sequences as plain lists."""

    def __init__(self) -> None:
        self.places = [BlockTables(BlockPool(DEVICE), BLOCK), BlockTables(BlockPool(HOST), BLOCK)]
        self.contents: list[dict[int, list]] = [{}, {}]  # place -> block -> its tokens
        self.truth: dict[int, list[int]] = {}
        self.written = 0
        self.refused = 0
        self.copied = 0  # before writing

    def place(self, name: int) -> int:
        return int(name in self.places[1])

    def read(self, name: int) -> list[int]:
        where = self.place(name)
        tables = self.places[where]
        rows = [self.contents[where].get(block, [None] * BLOCK) for block in tables.table(name)]
        return [token for row in rows for token in row][: tables.length(name)]

    def write(self, name: int, tokens: int, copies: list[tuple[int, int]], start: int) -> None:
        where = self.place(name)
        self.copied += len(copies)
        for source, target in copies:
            self.contents[where][target] = list(self.contents[where][source])
        table = self.places[where].table(name)
        for position in range(start, start + tokens):
            self.written += 1
            block, offset = divmod(position, BLOCK)
            self.contents[where].setdefault(table[block], [None] * BLOCK)[offset] = self.written
            self.truth[name].append(self.written)

    def run(self, code: int, name: int, number: int) -> None:
        """One operation chosen by three bytes; an impossible one must be refused and change nothing."""
        before = [(len(t), t.pool.used, t.tokens) for t in self.places]
        try:
            OPERATIONS[code % len(OPERATIONS)](self, name % NAMES, number)
        except CostModelError:
            self.refused += 1
            assert [(len(t), t.pool.used, t.tokens) for t in self.places] == before

    def allocate(self, name: int, number: int) -> None:
        assert (name in self.truth) == (name in self.places[0] or name in self.places[1])
        self.places[self.place(name)].allocate(name, number % 9)
        self.truth[name] = []
        self.write(name, number % 9, [], 0)

    def append(self, name: int, number: int) -> None:
        tables, tokens = self.places[self.place(name)], number % 6
        needed = tables.needed(name, tokens)
        used, start = tables.pool.used, tables.length(name)
        copies = tables.append(name, tokens)
        assert tables.pool.used == used + needed
        self.write(name, tokens, copies, start)

    def reserved(self, name: int, number: int) -> None:
        """In two steps, and with an interruption in between: what was reserved is used or given back."""
        tables, tokens = self.places[self.place(name)], number % 4
        start = tables.length(name)
        if tables.needed(name, tokens + 5) <= tables.pool.free:
            copies = tables.reserve(name, tokens + 5) + tables.reserve(name, tokens)
        else:
            copies = tables.reserve(name, tokens)
        tables.advance(name, tokens)
        self.write(name, tokens, copies, start)
        tables.truncate(name, tables.length(name))

    def fork(self, name: int, number: int) -> None:
        tables = self.places[self.place(name)]
        child = next((n for n in range(NAMES) if n not in self.truth), number // 16 % NAMES)
        if child in self.truth and child not in tables:
            return  # it lies in the other memory
        tables.fork(name, child, number % 16 if number % 3 else None)
        self.truth[child] = self.truth[name][: number % 16 if number % 3 else None]

    def free(self, name: int, _: int) -> None:
        self.places[self.place(name)].free(name)
        del self.truth[name]

    def truncate(self, name: int, number: int) -> None:
        self.places[self.place(name)].truncate(name, number % 12)
        del self.truth[name][number % 12 :]

    def swap(self, name: int, number: int) -> None:
        where = self.place(name)
        here, there = self.places[where], self.places[1 - where]
        group = [name, *(n for n in self.truth if n in here and n != name and number >> n & 1)]
        for source, target in here.swap(group, there):
            self.contents[1 - where][target] = list(self.contents[where].get(source, [None] * BLOCK))

    def check(self) -> None:
        for tables in self.places:
            held = Counter(block for name in self.truth if name in tables for block in tables.table(name))
            pool = tables.pool
            assert all(pool.references(block) == n for block, n in held.items())
            assert pool.used == len(held)  # nothing leaks
            assert pool.used + pool.free == pool.size
            assert all(0 <= block < pool.size for block in held)


OPERATIONS = (
    Memory.allocate, Memory.append, Memory.append, Memory.fork, Memory.fork, Memory.reserved, Memory.truncate,
    Memory.free, Memory.swap,
)  # fmt: skip


@settings(max_examples=100)
@given(st.binary(min_size=3000, max_size=3000))
def test_a_hundred_thousand_operations(program: bytes) -> None:
    memory = Memory()
    for step in range(1000):
        memory.run(*program[3 * step : 3 * step + 3])
        memory.check()
        if step % 8 == 0:
            assert all(memory.read(name) == tokens for name, tokens in memory.truth.items())  # nothing aliases
    assert all(memory.read(name) == tokens for name, tokens in memory.truth.items())
    for name in list(memory.truth):
        memory.free(name, 0)
    assert [tables.pool.used for tables in memory.places] == [0, 0]


def test_such_programs_do_work() -> None:
    """The test above would prove little if most operations were refused."""
    memory, rng = Memory(), random.Random(0)
    for _ in range(5000):
        memory.run(rng.randrange(9), rng.randrange(NAMES), rng.randrange(256))
    assert memory.refused < 3000
    assert memory.copied > 100


def test_what_cannot_be_done_is_refused_and_changes_nothing() -> None:
    pool = BlockPool(3)
    tables = BlockTables(pool, 4)
    tables.allocate("a", 5)
    for call, message in (
        (lambda: tables.allocate("a"), "sequence 'a' holds blocks already"),
        (lambda: tables.fork("a", "a"), "sequence 'a' holds blocks already"),
        (lambda: tables.free("b"), "no sequence 'b' holds blocks"),
        (lambda: tables.append("a", -1), "tokens must be an integer of at least 0, got -1"),
        (lambda: tables.append("a", 1.5), "tokens must be an integer of at least 0, got 1.5"),
        (lambda: tables.advance("a", 4), "4 tokens were not reserved; there is room for 3"),
        (lambda: tables.truncate("a", 6), "length must be 0 to the 5 of 'a', got 6"),
        (lambda: tables.fork("a", "b", 6), "tokens must be 0 to the 5 of 'a', got 6"),
        (lambda: tables.swap(["a"], BlockTables(BlockPool(9), 8)), "blocks of 4 tokens do not fit blocks of 8"),
        (lambda: pool.release(2), "block 2 is free: it cannot be shared or released"),
        (lambda: pool.share(7), "block 7 is free"),
        (lambda: BlockTables(pool, 0), "block_tokens must be an integer of at least 1, got 0"),
        (lambda: BlockPool(-1), "blocks must be an integer of at least 0, got -1"),
    ):
        with pytest.raises(CostModelError, match=message):
            call()
    with pytest.raises(OutOfBlocksError, match="2 blocks needed, 1 of 3 are free"):
        tables.append("a", 8)
    assert (tables.length("a"), tables.table("a"), pool.free) == (5, (0, 1), 1)


def test_room_reserved_before_a_fork_is_not_written_after_it() -> None:
    tables = BlockTables(BlockPool(4), 4)
    tables.allocate("a", 2)
    tables.reserve("a", 1)
    tables.fork("a", "b")
    with pytest.raises(CostModelError, match="were not reserved"):
        tables.advance("a", 1)
    assert tables.reserve("a", 1) == [(0, 1)]


def test_how_many_requests_fit_rounds_blocks_up() -> None:
    """77,088 tokens in blocks of 16 hold 76 requests of 1,000 tokens, not 77 (tandemn-system#11)."""
    pool = BlockPool(77_088 // 16)
    tables = BlockTables(pool, 16)
    assert pool.size == 4818
    for request in range(76):
        tables.allocate(request, 1000)
    with pytest.raises(OutOfBlocksError):
        tables.allocate(76, 1000)
    assert len(tables) == pool.size // blocks_of(1000, 16) == 76
