"""What a user hangs into a training run: objects that are called when something happens and may wish for something.

A callback is any object with one or more of these methods; those it does not have are not missed:

    on_log(step, metrics, control)    a line of log.jsonl was written; metrics has the mean loss, rates, speed
    on_eval(step, metrics, control)   an evaluation is done; metrics has its losses and metrics
    on_save(step, metrics, control)   a checkpoint was written; metrics has what was evaluated last
    on_end(step, metrics, control)    the run is over; metrics has the last evaluation

What is asked through `control` happens after the step, in the order of the callbacks. A callback that has
`state_dict` and `load_state_dict` is saved with every checkpoint and comes back when the run continues.
"""

import inspect
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from penstock.config.errors import ConfigError
from penstock.runtime.world import State
from penstock.training.events import Ended, Evaluated, Event, Logged, Saved
from penstock.training.step import LearningRates

METHODS = ("on_log", "on_eval", "on_save", "on_end")
ARGUMENTS = "(step, metrics, control)"
"""What each of them is called with."""

STOP = "stop_reason"
"""Key of the state beside those of callbacks: a run that was killed on its way to a stop still stops."""


@dataclass(slots=True)
class Control:
    rates: LearningRates
    stop_reason: str | None = None
    save_asked: bool = False

    def stop(self, reason: str = "a callback asked to stop") -> None:
        """End the run after this step: it is saved and evaluated like every end."""
        self.stop_reason = self.stop_reason or reason

    def save(self) -> None:
        """Write a checkpoint of this step, unless there is one."""
        self.save_asked = True

    def set_learning_rate(self, value: float | None, optimizer: str | None = None) -> None:
        """Use this rate from the next step on, above the schedule; None follows the schedule again.

        `optimizer` names one of those in log.jsonl (sparse, dense); without it all are meant. The rate is part of
        the checkpoint.
        """
        given: object = value
        if isinstance(given, bool) or not isinstance(given, float | int | None):
            raise ConfigError(f"set_learning_rate: a rate is a number or None, not {value!r}")
        self.rates.set(value, optimizer)


class Callbacks:
    def __init__(self, callbacks: Sequence[Any], control: Control) -> None:
        require_callbacks(callbacks)
        self._callbacks, self.control = list(callbacks), control

    def __call__(self, event: Event) -> None:
        """Call everyone who has the method of this event; each gets a copy of the metrics, with floats only."""
        metrics: Mapping[str, float]
        match event:
            case Logged():
                called, step, metrics = "on_log", event.progress.step, event.values
            case Evaluated(is_repeated=False):
                called, step, metrics = "on_eval", event.step, event.evaluation.values
            case Saved():
                called, step, metrics = "on_save", event.step, event.evaluated
            case Ended():
                called, step, metrics = "on_end", event.progress.step, event.evaluated
            case _:
                return
        for callback in self._callbacks:
            method = getattr(callback, called, None)
            if method is not None:
                method(step, {name: float(value) for name, value in metrics.items()}, self.control)

    def state_dict(self) -> State:
        """The state of those who have one, by their index in the list and their class; and why the run is to stop."""
        states = {
            _key(index, callback): callback.state_dict()
            for index, callback in enumerate(self._callbacks)
            if hasattr(callback, "state_dict")
        }
        return states | ({STOP: self.control.stop_reason} if self.control.stop_reason else {})

    def load_state_dict(self, state: State) -> None:
        """Bring back those who are there again; a run may continue with other callbacks, and is then not stopped."""
        if self._callbacks:
            self.control.stop_reason = state.get(STOP)
        for index, callback in enumerate(self._callbacks):
            saved = state.get(_key(index, callback))
            if saved is not None and hasattr(callback, "load_state_dict"):
                callback.load_state_dict(saved)


def require_callbacks(callbacks: object) -> None:
    """Refuse, before anything is done, what could not be called when its turn comes."""
    if not isinstance(callbacks, Sequence) or isinstance(callbacks, str):
        raise ConfigError(
            f"callbacks: expected a list of objects, not {type(callbacks).__name__}; write [callback]"
        )
    for callback in callbacks:
        if isinstance(callback, type):
            raise ConfigError(
                f"callbacks: {callback.__name__} is a class; give an object of it: {callback.__name__}(...)"
            )
        methods = {event: getattr(callback, event, None) for event in METHODS}
        if not any(map(callable, methods.values())):
            raise ConfigError(
                f"callbacks: {type(callback).__name__} has none of the methods {', '.join(METHODS)}"
            )
        for event, method in methods.items():
            name = f"{type(callback).__name__}.{event}"
            if method is None:
                continue
            if not callable(method):
                raise ConfigError(f"callbacks: {name} is {method!r}, no method; it is called as {ARGUMENTS}")
            try:
                signature = inspect.signature(method)
            except (TypeError, ValueError):  # a callable of C, which has none
                continue
            try:
                signature.bind(0, {}, None)
            except TypeError as error:
                raise ConfigError(
                    f"callbacks: {name} takes {signature}, but is called with {ARGUMENTS} ({error})"
                ) from error


def _key(index: int, callback: Any) -> str:
    return f"{index}_{type(callback).__name__}"
