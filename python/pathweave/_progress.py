"""Progress: a bar of characters in terminals, of HTML in notebooks, where it needs no widgets and stays in the file."""

from __future__ import annotations

import html
import sys
import time
from typing import Any, Protocol

from tqdm import tqdm

from ._pathweave import Progress

_STEPS = 1_000


class _Shown(Protocol):
    def show(self, share: float, words: str) -> None: ...
    def close(self) -> None: ...


class _Terminal:
    def __init__(self, label: str) -> None:
        self._bar = tqdm(
            total=_STEPS,
            desc=label,
            bar_format="{desc} {percentage:3.0f} % |{bar}| {elapsed}<{remaining}{postfix}",
        )

    def show(self, share: float, words: str) -> None:
        self._bar.set_postfix_str(words, refresh=False)
        self._bar.update(round(share * _STEPS) - self._bar.n)

    def close(self) -> None:
        self._bar.close()


class _Notebook:
    def __init__(self, label: str) -> None:
        from IPython.display import HTML, display

        self._label, self._started = label, time.monotonic()
        self._html: Any = HTML
        self._handle: Any = display(self._page(0.0, ""), display_id=True)

    def _page(self, share: float, words: str) -> Any:
        seconds = time.monotonic() - self._started
        told = ", ".join(text for text in (f"{share:.0%} in {seconds:.1f} s", words) if text)
        return self._html(
            f'<div style="font-variant-numeric: tabular-nums">{html.escape(self._label)} '
            f'<progress max="1" value="{share:.3f}" style="width: 16em"></progress> {html.escape(told)}</div>'
        )

    def show(self, share: float, words: str) -> None:
        self._handle.update(self._page(share, words))

    def close(self) -> None:
        """What was shown last stays."""


def _in_notebook() -> bool:
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython else None
    # A terminal's shell has no kernel.
    return getattr(shell, "kernel", None) is not None


class Bar:
    """Shows how far something is. What was shown last stays."""

    def __init__(self, label: str) -> None:
        self._shown: _Shown = _Notebook(label) if _in_notebook() else _Terminal(label)

    def show(self, share: float, words: str) -> None:
        """So much of it is done, 0 to 1; more about it in words."""
        self._shown.show(share, words)

    def update(self, progress: Progress) -> None:
        """Takes the progress of a run."""
        rate = progress.packet_hops / max(progress.elapsed_s, 1e-9) / 1e6
        self.show(progress.done, f"{progress.simulated_ns / 1e3:.1f} us simulated, {rate:.1f} M packet-hops/s")

    def __enter__(self) -> Bar:
        return self

    def __exit__(self, *_: object) -> None:
        self._shown.close()
