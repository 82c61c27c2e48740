"""SBN, "subtract and branch if negative", as a template set: one set runs every program of its size.

`sbn a, b, c` takes word a from word b, modulo 2^w; where the result is negative (its top bit is 1) instruction c is
next, otherwise the one that follows. Instruction number P is HALT. Words and program both stand in the state, addresses
one-hot, so the templates depend on three numbers alone: D words of w bits, P instructions. Every bit is tested in
exactly one block of templates.

The network of arXiv 2502.16763 runs SBN; this layout of it is ours. An instruction takes exactly w + 5 iterations:
1 issue, 2 fetch, 3 load, w for the borrow to ripple, 1 onto the result bus, 1 to write back and go on. Between
instructions only `mem`, the program (`ia`, `ib`, `ic`) and one bit of `pc` are 1.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from jaxtyping import Int, UInt8
from torch import Tensor

from workbench.errors import BadInput
from workbench.ntk import kernel
from workbench.ntk.templates import Layout, Template, TemplateSet, from_bits, template, to_bits

MOST_WIDTH = 31  # bits of a word: differences stay within int64
MOST_TEMPLATES = 6000  # the dense tables of a machine then take under 400 MB

Code = Int[Tensor, "batch instruction 3"]  # a, b and c of every instruction of every program


@dataclass(frozen=True)
class Size:
    """Which programs a template set runs: `words` (D) of `width` bits (w), and `instructions` (P)."""

    words: int
    width: int
    instructions: int

    def __post_init__(self) -> None:
        if self.words < 1 or self.instructions < 1 or not 1 <= self.width <= MOST_WIDTH:
            raise BadInput(
                f"{self.words} words of {self.width} bits and {self.instructions} instructions were asked for; give at "
                f"least one word, one instruction, and 1 to {MOST_WIDTH} bits"
            )
        if self.templates > MOST_TEMPLATES:
            raise BadInput(
                f"{self.words} words of {self.width} bits and {self.instructions} instructions take "
                f"{self.templates:,} templates, at most {MOST_TEMPLATES:,}; shorten the program"
            )

    @property
    def bits(self) -> int:
        """n, bits of a state: `5 D w + 4 P D + 2 P (P + 1) + 7 (P + 1) + 4 w + 3 + 2 D`."""
        return self.templates + 2 * (self.instructions + 1)

    @property
    def templates(self) -> int:
        """N_0, templates before padding: `5 D w + 4 P D + 2 P (P + 1) + 5 (P + 1) + 4 w + 3 + 2 D`."""
        d, w, p = self.words, self.width, self.instructions
        return 5 * d * w + 4 * p * d + 2 * p * (p + 1) + 5 * (p + 1) + 4 * w + 3 + 2 * d

    @property
    def most_matched(self) -> int:
        """A bound on m: `D w + 3 P + 4`, the program's blocks, one bit each of pc or ctl, nx, tg and dst, and data.

        Data are at most D w, since reading word b empties it before the adder and then the result bus fill.
        """
        return self.words * self.width + 3 * self.instructions + 4

    @property
    def most_written(self) -> int:
        """The largest T: `2 D + 2` of the adder's `p`, or `P + 1` of `tg` and `dst`; `pc_P` has 3."""
        return max(2 * self.words + 2, self.instructions + 1)

    @property
    def iterations(self) -> int:
        """Iterations an instruction: w + 5."""
        return self.width + 5

    @property
    def padding(self) -> int:
        """Templates that never match, so that every bit's sign is right in every state that m is bounded in."""
        return kernel.padding(self.most_written, self.most_matched, self.templates)


def layout(size: Size) -> Layout:
    """The blocks.

    Data: `mem`; flags `ra`, `rb` to read a word as a or b; `res`, the result bus, a copy a word; `we`, write enable.
    Program: `ia`, `ib`, `ic`, its one-hot operands, and `fa`, `fb`, `fc` to fetch them. Control: `pc`; `ctl`, a shift
    register; `p`, `q`, `fin`, the adder; `dst` with `wgo`, the word to write. Next pc: `nx`, the one that follows, with
    `ng` and `nn`; `tg`, the target, with `tgo` and `tn`: each a candidate, its gate and the sign.
    """
    d, w, p = size.words, size.width, size.instructions
    return Layout(
        dict.fromkeys(("mem", "ra", "rb", "res", "we"), (d, w))
        | dict.fromkeys(("ia", "fa", "ib", "fb"), (p, d))
        | dict.fromkeys(("ic", "fc"), (p, p + 1))
        | {"pc": p + 1, "ctl": w + 3, "p": w, "q": w, "fin": w, "dst": d, "wgo": d}
        | dict.fromkeys(("nx", "ng", "nn", "tg", "tgo", "tn"), p + 1)
    )


def templates(size: Size, padding: int | None = None) -> TemplateSet:
    """The templates of a size, with the padding that the sign rule asks for unless another is given."""
    blocks = layout(size)
    rules = [
        *_issue(blocks, size),
        *_program(blocks, size),
        *_memory(blocks, size),
        *_subtract(blocks, size),
        *_control(blocks, size),
        *_next(blocks, size),
    ]
    return TemplateSet(blocks, rules, size.padding if padding is None else padding)


def _issue(to: Layout, size: Size) -> Iterator[Template]:
    """pc_k fetches the operands of instruction k and starts the control register; HALT holds itself."""
    for k in range(size.instructions):
        fetch = [*to.all("fa", k), *to.all("fb", k), *to.all("fc", k)]
        yield template(to, "issue", [("pc", k)], [], [*fetch, ("nx", k + 1), ("ctl", 0)])
    halt = ("pc", size.instructions)
    yield template(to, "halt", [halt], [], [halt])


def _program(to: Layout, size: Size) -> Iterator[Template]:
    """Operands hold themselves, and when fetched also raise the flags of the words, or the target, that they name."""
    for k in range(size.instructions):
        for d in range(size.words):
            ia, fa, ib, fb = (("ia", k, d), ("fa", k, d), ("ib", k, d), ("fb", k, d))
            yield template(to, "program", [ia], [fa], [ia])
            yield template(to, "program", [ia, fa], [], [ia, *to.all("ra", d)])
            yield template(to, "program", [ib], [fb], [ib])
            yield template(to, "program", [ib, fb], [], [ib, *to.all("rb", d), ("dst", d)])
        for t in range(size.instructions + 1):
            ic, fc = ("ic", k, t), ("fc", k, t)
            yield template(to, "program", [ic], [fc], [ic])
            yield template(to, "program", [ic, fc], [], [ic, ("tg", t)])


def _memory(to: Layout, size: Size) -> Iterator[Template]:
    """A bit holds itself, is copied to q as part of word a, or moves to p as part of word b; the bus writes back."""
    for d in range(size.words):
        for i in range(size.width):
            mem, ra, rb = ("mem", d, i), ("ra", d, i), ("rb", d, i)
            yield template(to, "memory", [mem], [ra, rb], [mem])
            yield template(to, "memory", [mem, ra], [rb], [mem, ("q", i)])
            yield template(to, "memory", [mem, rb], [ra], [("p", i)])
            yield template(to, "memory", [mem, ra, rb], [], [("p", i), ("q", i)])
            yield template(to, "memory", [("res", d, i), ("we", d, i)], [], [mem])
        dst, wgo = ("dst", d), ("wgo", d)
        yield template(to, "memory", [dst], [wgo], [dst])
        yield template(to, "memory", [dst, wgo], [], to.all("we", d))


def _subtract(to: Layout, size: Size) -> Iterator[Template]:
    """The adder: p becomes p ^ q, q the borrow one place up; `fin` sends p to the bus, and its top bit to the signs.

    Where p and q are both 1 the difference is 0 and there is no borrow, so nothing is written.
    """
    top = size.width - 1
    for i in range(size.width):
        p, q, fin = ("p", i), ("q", i), ("fin", i)
        sign = [*to.all("nn"), *to.all("tn")] if i == top else []
        borrow = [("q", i + 1)] if i < top else []
        yield template(to, "subtract", [p], [q, fin], [p])
        yield template(to, "subtract", [q], [p, fin], [p, *borrow])
        yield template(to, "subtract", [p, fin], [q], [*[("res", d, i) for d in range(size.words)], *sign])


def _control(to: Layout, size: Size) -> Iterator[Template]:
    """One bit moves along `ctl`; at its end the result goes to the bus, then the next pc is chosen."""
    last = size.width + 2
    for j in range(last):
        raised = [*to.all("fin"), *to.all("wgo")] if j + 1 == last else []
        yield template(to, "control", [("ctl", j)], [], [("ctl", j + 1), *raised])
    yield template(to, "control", [("ctl", last)], [], [*to.all("ng"), *to.all("tgo")])


def _next(to: Layout, size: Size) -> Iterator[Template]:
    """Both candidates hold themselves until their gate opens; the sign then says which of them becomes pc."""
    for t in range(size.instructions + 1):
        nx, ng, nn = ("nx", t), ("ng", t), ("nn", t)
        tg, tgo, tn = ("tg", t), ("tgo", t), ("tn", t)
        yield template(to, "next", [nx], [ng, nn], [nx])
        yield template(to, "next", [nx, ng], [nn], [("pc", t)])
        yield template(to, "next", [tg], [tgo, tn], [tg])
        yield template(to, "next", [tg, tgo, tn], [], [("pc", t)])


def one_hot(places: Int[Tensor, "*any"], count: int) -> UInt8[Tensor, "*any {count}"]:
    """A 1 at each place of 0 .. count - 1."""
    return (places[..., None] == torch.arange(count)).to(torch.uint8)


def encode(
    size: Size, code: Code, memory: Int[Tensor, "batch word"], pc: Int[Tensor, " batch"]
) -> UInt8[Tensor, "batch bit"]:
    """The states between instructions with these programs, words (modulo 2^w) and next instructions."""
    d, p, batch = size.words, size.instructions, len(memory)
    found = TemplateSet(layout(size), [])
    words = to_bits(memory.reshape(-1), size.width).reshape(batch, d, size.width)
    a, b, c = code.unbind(dim=-1)
    operands = {"ia": one_hot(a, d), "ib": one_hot(b, d), "ic": one_hot(c, p + 1)}
    return found.state(mem=words, pc=one_hot(pc, p + 1), **operands)


def memory(size: Size, states: UInt8[Tensor, "batch bit"]) -> Int[Tensor, "batch word"]:
    """The words of each state, signed: -2^(w-1) .. 2^(w-1) - 1."""
    bits = states[:, layout(size).block("mem")].reshape(-1, size.width)
    numbers = from_bits(bits)
    return (numbers - (bits[:, -1].long() << size.width)).reshape(len(states), size.words)


def pc(size: Size, states: UInt8[Tensor, "batch bit"]) -> Int[Tensor, " batch"]:
    """The instruction that is next in each state, P for HALT; -1 where not exactly one bit of pc is 1."""
    bits = states[:, layout(size).block("pc")].long()
    return torch.where(bits.sum(dim=1) == 1, bits.argmax(dim=1), -1)
