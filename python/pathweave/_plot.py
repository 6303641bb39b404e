"""Pictures of results, by matplotlib. `result.plot.cdf()` and the like; each returns the axes, to change or to save.

Needs the extra `plots`: `pip install "pathweave[plots]"`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from . import _pathweave
from ._scale import Scale, label_of, scale_for

if TYPE_CHECKING:
    import matplotlib.axes
    import polars

    from ._pathweave import RunResult

# Of a picture, inches.
_SIZE = (7.0, 4.2)
# Largest number of curves that readers can distinguish.
_MOST_CURVES = 12


class Plot:
    """Pictures of one run, or of several beside each other. Get it as `result.plot` or `comparison.plot`."""

    def __init__(self, runs: Mapping[str, RunResult]) -> None:
        self._runs = dict(runs)

    @classmethod
    def of(cls, run: RunResult) -> Plot:
        """Pictures of one run."""
        return cls({run.name: run})

    def cdf(
        self,
        column: str = "slowdown",
        *,
        by: str | None = None,
        log: bool | None = None,
        ax: matplotlib.axes.Axes | None = None,
    ) -> matplotlib.axes.Axes:
        """The fraction of flows with at most this value: a curve a run, or a curve a value of `by`.

        Args:
            column: A column of numbers of `flows`: "slowdown", "fct_ns", "goodput_bps", ...
            by: A column of `flows` that selects the curve of a flow: "group", "scheme", "size_bytes".
            log: True for a logarithmic axis of values; default: if they span more than a factor of 30.
            ax: Axes to draw into, new ones unless given.

        Raises:
            ValueError: The column does not exist, holds no numbers, or no flow has a value.
            ImportError: Matplotlib or polars is missing.
        """
        curves = {}
        for name, flows in self._tables("flows").items():
            for label, rows in self._split(flows, name, by):
                values = _numbers(rows, column, "flows")
                if len(values):
                    curves[label] = values
        if not curves:
            raise ValueError(f"no flow has a value of {column!r}: none finished")
        if len(curves) > _MOST_CURVES:
            raise ValueError(f"by={by!r} makes {len(curves)} curves; at most {_MOST_CURVES} are allowed")
        least, most = min(v.min() for v in curves.values()), max(v.max() for v in curves.values())
        scale = scale_for(column, most)
        axes = self._axes(ax, f"{label_of(column)}{scale.suffix}", "Fraction of flows")
        for look, (label, values) in zip(_looks(curves), curves.items(), strict=True):
            axes.ecdf(values / scale.divisor, label=label, linewidth=1.6, **look)
        if log is True or (log is None and least > 0 and most > 30 * least):
            axes.set_xscale("log")
        axes.set_ylim(0, 1.01)
        return self._finished(axes, legend=len(curves) > 1)

    def heatmap(
        self, column: str = "slowdown", *, run: str | None = None, ax: matplotlib.axes.Axes | None = None
    ) -> matplotlib.axes.Axes:
        """Senders against receivers, each pair coloured by the mean of its flows; pairs without flows stay blank.

        Args:
            column: A column of numbers of `flows`: "slowdown", "fct_ns", "goodput_bps", "retransmitted_packets", ...
            run: Name of the run; default: the first.
            ax: Axes to draw into, new ones unless given.

        Raises:
            ValueError: The column or the run does not exist, or no flow has a value.
            ImportError: Matplotlib or polars is missing.
        """
        import numpy as np
        import polars as pl

        name, flows = self._one("flows", run)
        _numbers(flows, column, "flows")
        pairs = flows.group_by("src_host", "dst_host").agg(pl.col(column).mean()).drop_nulls()
        if not len(pairs):
            raise ValueError(f"no flow has a value of {column!r}: none finished")
        hosts = 1 + int(max(flows["src_host"].max(), flows["dst_host"].max()))  # type: ignore[type-var,arg-type]
        values = np.full((hosts, hosts), np.nan)
        values[pairs["src_host"].to_numpy(), pairs["dst_host"].to_numpy()] = pairs[column].to_numpy()
        scale = scale_for(column, float(np.nanmax(values)))
        axes = self._axes(ax, "Receiving host", "Sending host", square=True)
        image = axes.imshow(values / scale.divisor, cmap="viridis", origin="upper", interpolation="nearest")
        axes.grid(visible=False)
        _figure(axes).colorbar(image, ax=axes, label=f"{label_of(column)}, mean{scale.suffix}", fraction=0.046)
        axes.set_title(name)
        return axes

    def timeline(self, *, run: str | None = None, ax: matplotlib.axes.Axes | None = None) -> matplotlib.axes.Axes:
        """When each flow was under way: a line a flow from post to last byte, in order of start, coloured by slowdown.

        Flows that did not finish reach to the end of the run, dotted. Faults are marked.

        Args:
            run: Name of the run; default: the first.
            ax: Axes to draw into, new ones unless given.

        Raises:
            ValueError: The run does not exist.
            ImportError: Matplotlib or polars is missing.
        """
        import polars as pl
        from matplotlib.collections import LineCollection

        name, flows = self._one("flows", run)
        end = float(self._runs[name].summary["run"]["simulated_ns"])
        flows = flows.sort("start_ns", "flow").with_row_index("row")
        done, open_ = flows.drop_nulls("finish_ns"), flows.filter(pl.col("finish_ns").is_null())
        scale = scale_for("time_ns", end)
        axes = self._axes(ax, f"Simulated time{scale.suffix}", "Flows, in order of start")
        width = min(4.0, max(0.4, 220 / max(1, len(flows))))

        def lines(rows: polars.DataFrame, finish: Iterable[float]) -> list[list[tuple[float, float]]]:
            at = zip(rows["row"], rows["start_ns"], finish, strict=True)
            return [[(start / scale.divisor, row), (stop / scale.divisor, row)] for row, start, stop in at]

        if len(done):
            drawn = LineCollection(lines(done, done["finish_ns"]), cmap="viridis", linewidths=width)
            drawn.set_array(done["slowdown"].fill_null(1.0).to_numpy())
            axes.add_collection(drawn)
            _figure(axes).colorbar(drawn, ax=axes, label="Slowdown")
        if len(open_):
            stops = [end] * len(open_)
            axes.add_collection(LineCollection(lines(open_, stops), colors="grey", linestyles=":", linewidths=width))
        axes.set_xlim(0, max(end, 1e-9) / scale.divisor)
        axes.set_ylim(len(flows) - 0.5, -0.5)
        self._mark_faults(axes, name, scale)
        axes.set_title(name)
        return axes

    def series(
        self,
        kind: str = "queue_bytes",
        *,
        most: int = 8,
        run: str | None = None,
        ax: matplotlib.axes.Axes | None = None,
    ) -> matplotlib.axes.Axes:
        """Samples over time: a curve a link, host, flow or path, those that reach highest.

        Args:
            kind: What was sampled: "queue_bytes", "link_utilisation_ratio", "host_rate_bps", "policy_rate_bps", ...
            most: Curves at most; how many there were is in the title.
            run: Name of the run; default: the first.
            ax: Axes to draw into, new ones unless given.

        Raises:
            ValueError: The run does not exist, nothing was sampled, or nothing of this kind.
            ImportError: Matplotlib or polars is missing.
        """
        import polars as pl

        if not 1 <= most <= _MOST_CURVES:
            raise ValueError(f"most is {most}; expected 1 to {_MOST_CURVES}")
        name, table = self._one("series", run)
        kinds = sorted(set(table["kind"]) - {"interval_ns"})
        if not len(table):
            raise ValueError("there are no samples; set observe.interval of the scenario")
        rows = table.filter(pl.col("kind").cast(pl.String) == kind)
        if not len(rows):
            raise ValueError(f"no samples of {kind!r}; this run has {', '.join(kinds)}")
        instants = table.filter(pl.col("kind").cast(pl.String) == "interval_ns").select("time_ns").sort("time_ns")
        curves = sorted(rows.partition_by("entity", "index", as_dict=True).items(), key=lambda of: -_peak(of[1]))
        scale, time = scale_for(kind, _peak(rows)), scale_for("time_ns", float(instants["time_ns"].max() or 0))  # type: ignore[arg-type]
        axes = self._axes(ax, f"Simulated time{time.suffix}", f"{label_of(kind)}{scale.suffix}")
        names = self._names(name, kind)
        labels = [names(int(entity), int(index)) for (entity, index), _ in curves[:most]]
        for look, label, (_, curve) in zip(_looks(labels), labels, curves, strict=False):
            # Where a sample is zero there is no row.
            full = instants.join(curve.select("time_ns", "value"), on="time_ns", how="left")
            values = full["value"].fill_null(0.0 if kind in _ZERO else None)
            axes.plot(
                full["time_ns"].to_numpy() / time.divisor,
                values.to_numpy() / scale.divisor,
                label=label,
                linewidth=1.4,
                **look,
            )
        axes.set_ylim(bottom=0)
        axes.margins(x=0)
        self._mark_faults(axes, name, time)
        shown = f"{name}: the {most} highest of {len(curves)}" if len(curves) > most else name
        axes.set_title(shown)
        return self._finished(axes, legend=True)

    def _tables(self, table: str) -> dict[str, polars.DataFrame]:
        _needed()
        return {name: getattr(run, table).to_polars() for name, run in self._runs.items()}

    def _one(self, table: str, run: str | None) -> tuple[str, polars.DataFrame]:
        _needed()
        name = next(iter(self._runs)) if run is None else run
        if name not in self._runs:
            raise ValueError(f"run is {name!r}; expected one of {', '.join(map(repr, self._runs))}")
        return name, getattr(self._runs[name], table).to_polars()

    def _split(self, flows: polars.DataFrame, name: str, by: str | None) -> Iterable[tuple[str, polars.DataFrame]]:
        if by is None:
            return [(name, flows)]
        if by not in flows.columns:
            raise ValueError(f"flows has no column {by!r}; it has {', '.join(flows.columns)}")
        parts = flows.sort(by).partition_by(by, as_dict=True, maintain_order=True)
        before = f"{name}, " if len(self._runs) > 1 else ""
        return [(f"{before}{value}", rows) for (value,), rows in parts.items()]

    def _names(self, run: str, kind: str) -> Any:
        """What the entities of a series are called."""
        links = self._runs[run].links.to_polars() if kind in _OF_LINKS else None
        what = "host" if kind == "host_rate_bps" else "flow"

        def name(entity: int, index: int) -> str:
            if links is not None:
                row = links.row(entity, named=True)
                return f"{row['from']} to {row['to']}"
            return f"{what} {entity}, path {index}" if kind == "path_share_ratio" else f"{what} {entity}"

        return name

    def _mark_faults(self, axes: matplotlib.axes.Axes, run: str, scale: Scale) -> None:
        import polars as pl

        events = self._runs[run].events.to_polars()
        for kind, style in (("fault", "--"), ("repair", ":")):
            for at in events.filter(pl.col("kind").cast(pl.String) == kind)["time_ns"]:
                axes.axvline(at / scale.divisor, color="grey", linestyle=style, linewidth=1)

    def _axes(
        self, ax: matplotlib.axes.Axes | None, across: str, up: str, *, square: bool = False
    ) -> matplotlib.axes.Axes:
        if ax is None:
            from matplotlib import pyplot

            _, ax = pyplot.subplots(figsize=(5.6, 4.8) if square else _SIZE, layout="constrained")
        ax.set(xlabel=across, ylabel=up)
        ax.spines[["top", "right"]].set_visible(square)
        ax.grid(alpha=0.25, linewidth=0.6)
        ax.set_axisbelow(True)
        return ax

    def _finished(self, axes: matplotlib.axes.Axes, *, legend: bool) -> matplotlib.axes.Axes:
        if legend:
            axes.legend(frameon=False, fontsize="small")
        elif not axes.get_title():
            axes.set_title(next(iter(self._runs)))
        return axes


_OF_LINKS = {"queue_bytes", "link_utilisation_ratio"}
# No row means zero; of other kinds it means that there was nothing to sample (docs/results.md).
_ZERO = {"queue_bytes", "link_utilisation_ratio", "host_rate_bps", "path_share_ratio"}


def _needed() -> None:
    for library in ("matplotlib", "polars"):
        try:
            __import__(library)
        except ModuleNotFoundError as why:
            text = f"plots need the extra pathweave[plots] ({library} is missing): pip install 'pathweave[plots]'"
            raise ImportError(text) from why


def _numbers(rows: polars.DataFrame, column: str, table: str) -> Any:
    if column not in rows.columns:
        raise ValueError(f"{table} has no column {column!r}; it has {', '.join(rows.columns)}")
    if not rows[column].dtype.is_numeric():
        numbers = [name for name in rows.columns if rows[name].dtype.is_numeric()]
        raise ValueError(f"column {column!r} of {table} holds no numbers; those that do: {', '.join(numbers)}")
    return rows[column].drop_nulls().to_numpy()


def _peak(rows: polars.DataFrame) -> float:
    return float(rows["value"].max() or 0)  # type: ignore[arg-type]


def _looks(labels: Iterable[str]) -> list[dict[str, Any]]:
    """Colour and dashes of each curve: those of pages for schemes, and no two of the first 16 alike."""
    colours = _pathweave.scheme_colours(list(labels))
    return [{"color": c, "linestyle": "--" if c in colours[:i] else "-"} for i, c in enumerate(colours)]


def _figure(axes: matplotlib.axes.Axes) -> Any:
    figure = axes.get_figure()
    assert figure is not None, "axes are of a figure"
    return figure
