"""Shrinkers of the axes that have few values: form, dtype, layout, keywords, regime."""

from __future__ import annotations

from oracle.case import Case
from oracle.minimize.base import Candidates, Shrinker


class Form(Shrinker):
    """The base form, else an earlier one; what a form pins or restricts goes with it."""

    def candidates(self, case: Case) -> Candidates:
        for form in self.task.forms:
            if form.name == case.form:
                return
            if (yield case.with_(form=form.name, values=None)):
                return
            if case.keywords and (yield case.with_(form=form.name, keywords={}, values=None)):
                return


class Dtype(Shrinker):
    """The task's earlier dtypes (float32 comes first): a failure there is no matter of rounding."""

    def candidates(self, case: Case) -> Candidates:
        for dtype in self.task.dtypes:
            if dtype == case.dtype or (yield case.with_(dtype=dtype, values=None)):
                return


class Layout(Shrinker):
    """Contiguous, else the layout on one tensor only."""

    def candidates(self, case: Case) -> Candidates:
        if case.layout == "contiguous" or (yield case.with_(layout="contiguous")):
            return
        if ":" not in case.layout:
            for tensor in self.task.form(case.form).tensors:
                if (yield case.with_(layout=f"{case.layout}:{tensor.name}")):
                    return


class Keywords(Shrinker):
    """Defaults: all of them, else one at a time."""

    def candidates(self, case: Case) -> Candidates:
        if not case.keywords or (yield case.with_(keywords={})):
            return
        for name in sorted(case.keywords):
            fewer = case.with_(keywords={key: value for key, value in case.keywords.items() if key != name})
            if (yield fewer):
                case = fewer


class Regime(Shrinker):
    """Zeros where the task is judged with them, else the plain `uniform`, else the regime on one tensor only."""

    def candidates(self, case: Case) -> Candidates:
        for regime in (*(name for name in ("zeros",) if name in self.task.regimes), "uniform"):
            if case.regime == regime or (yield case.with_(regime=regime, values=None)):
                return
        if ":" not in case.regime:
            for tensor in self.task.form(case.form).tensors:
                if (yield case.with_(regime=f"{case.regime}:{tensor.name}", values=None)):
                    return
