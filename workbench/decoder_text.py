"""Text and token ids of the task, in the calls TransformerLens's tools make: a tokenizer without BOS and padding."""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Int64, Integer, UInt8
from torch import Tensor
from transformer_lens.config import TransformerBridgeConfig

from workbench.errors import BadInput
from workbench.task import CHARACTERS, N_CTX, Problems, encode, parse

Text = str | list[str] | Problems


@dataclass(frozen=True)
class Characters:
    """The thirteen characters as a tokenizer; `hide_sign` writes `=` for a problem's sign (variant sign-hidden)."""

    hide_sign: bool = False

    def encode(self, text: str) -> UInt8[np.ndarray, " length"]:
        """Ids of a text: a problem like `1234+567` gives its sixteen tokens, exact answer included.

        One character, a run of digits or anything with `=` is taken as it stands, so `1234+0567=+0180` gives fifteen
        and may hold a wrong answer. Raises BadInput for other characters, an empty text or one longer than a problem.
        """
        if len(text) != 1 and "=" not in text and not text.isdecimal():
            return encode(parse(text), hide_sign=self.hide_sign)[0]
        strange = next((character for character in text if character not in CHARACTERS), None)
        if strange is not None:
            raise BadInput(f"{text[:40]!r} has {strange!r}; the characters of a problem are {CHARACTERS}")
        if len(text) > N_CTX:
            raise BadInput(f"{text[:40]!r} has {len(text)} characters, expected at most {N_CTX}")
        return np.array([CHARACTERS.index(character) for character in text], dtype=np.uint8)

    def encode_all(self, text: Text) -> UInt8[np.ndarray, "batch length"]:
        """Ids of one text, of several of one length, or of problems; BadInput when lengths differ or none is given."""
        if isinstance(text, Problems):
            return encode(text, hide_sign=self.hide_sign)
        rows = [self.encode(line) for line in ([text] if isinstance(text, str) else text)]
        if len({len(row) for row in rows}) != 1:
            lengths = sorted({len(row) for row in rows})
            raise BadInput(f"texts of {lengths} tokens cannot be one batch: there is no padding; expected one length")
        return np.stack(rows)

    def decode(self, ids: Iterable[int] | int | Integer[Tensor, "..."]) -> str:
        """The characters of one id or a sequence of ids; BadInput for an id outside 0..12."""
        values = torch.as_tensor(ids).reshape(-1).tolist()
        if any(not 0 <= value < len(CHARACTERS) for value in values):
            raise BadInput(f"a token id is outside 0..{len(CHARACTERS) - 1}: {values[:16]}")
        return "".join(CHARACTERS[value] for value in values)


class TextCalls:
    """`to_tokens`, `to_string`, `to_str_tokens` and `to_single_token` of a model whose `tokenizer` is Characters."""

    tokenizer: Characters
    cfg: TransformerBridgeConfig

    def to_tokens(self, input: Text, prepend_bos: bool | None = None) -> Int64[Tensor, "batch pos"]:
        """Token ids of a text, of several, or of problems, as `Characters.encode` reads them, on the model's device."""
        if prepend_bos:
            raise BadInput("prepend_bos=True: the task has no beginning-of-sequence token; leave it out")
        return torch.from_numpy(self.tokenizer.encode_all(input)).long().to(self.cfg.device)

    def to_string(self, tokens: Integer[Tensor, "..."] | list[int] | int) -> str | list[str]:
        """The text of one row of ids, or a list of texts for a batch of rows."""
        rows = torch.as_tensor(tokens)
        return [self.tokenizer.decode(row) for row in rows] if rows.ndim == 2 else self.tokenizer.decode(rows)

    def to_str_tokens(
        self, input: Text | Integer[Tensor, "..."], prepend_bos: bool | None = None
    ) -> list[str] | list[list[str]]:
        """The characters of one text or row of ids; a list of such lists for several texts or problems."""
        if isinstance(input, Tensor):
            return list(self.tokenizer.decode(input))
        rows = [list(self.tokenizer.decode(row)) for row in self.to_tokens(input, prepend_bos)]
        return rows[0] if isinstance(input, str) else rows

    def to_single_token(self, string: str) -> int:
        """The id of one character; BadInput for any other text."""
        if len(string) != 1:
            raise BadInput(f"{string[:40]!r} is not a single token; tokens are single characters of {CHARACTERS}")
        return int(self.tokenizer.encode(string)[0])
