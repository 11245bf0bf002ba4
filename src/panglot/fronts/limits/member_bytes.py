"""The bytes that the requests of one model use in each front, on the board."""

from __future__ import annotations

from panglot.fronts.board import BODIES, Board


class MemberBytes:
    """What one front of several uses of the share of a model, and what the others use. A `shares.FrontsBytes`."""

    def __init__(self, board: Board, front: int, slot: int) -> None:
        self._own = board.model_row(front, slot)
        self._others = [board.model_row(other, slot) for other in range(board.fronts) if other != front]

    def tell(self, used: int) -> None:
        self._own[BODIES] = used

    def elsewhere(self) -> int:
        return sum(row[BODIES] for row in self._others)
