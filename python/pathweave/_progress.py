"""Progress of runs: a bar in terminals and in notebooks."""

from __future__ import annotations

from tqdm.auto import tqdm

from ._pathweave import Progress

_STEPS = 1_000


class Bar:
    """Shows one run. Closing it leaves the last line."""

    def __init__(self, label: str) -> None:
        self._bar = tqdm(
            total=_STEPS,
            desc=label,
            bar_format="{desc} {percentage:3.0f} % |{bar}| {elapsed}<{remaining}{postfix}",
        )

    def update(self, progress: Progress) -> None:
        """Takes what a run says of itself."""
        rate = progress.packet_hops / max(progress.elapsed_s, 1e-9) / 1e6
        simulated_us = progress.simulated_ns / 1e3
        self._bar.set_postfix_str(f"{simulated_us:.1f} us simulated, {rate:.1f} M packet-hops/s", refresh=False)
        self._bar.update(round(progress.done * _STEPS) - self._bar.n)

    def __enter__(self) -> Bar:
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        if kind is None:
            self._bar.update(_STEPS - self._bar.n)
        self._bar.close()
