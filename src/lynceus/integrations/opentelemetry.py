"""A trial's way as a trace of OpenTelemetry: decided, started, run, settled."""

from __future__ import annotations

from typing import Any

from lynceus.errors import MissingExtraError
from lynceus.integrations.trial_facts import TrialFacts, trial_facts
from lynceus.study.view import StudyView
from lynceus.trial.order import Order
from lynceus.trial.outcome import Observation
from lynceus.version import __version__


def otlp_exporter(endpoint: str) -> Any:
    """An exporter that sends spans over OTLP/HTTP. Variables such as OTEL_EXPORTER_OTLP_HEADERS hold."""
    try:
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    except ImportError:
        raise MissingExtraError("Traces of OpenTelemetry", "opentelemetry") from None
    return OTLPSpanExporter(endpoint=endpoint)


class TraceTracker:
    """One trace per trial: a span from the decision until the end is written down, with its parts as children."""

    def __init__(self, exporter: Any) -> None:
        from opentelemetry.sdk.resources import Resource
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import BatchSpanProcessor

        resource = Resource.create({"service.name": "lynceus", "service.version": __version__})
        self._provider = TracerProvider(resource=resource)
        self._provider.add_span_processor(BatchSpanProcessor(exporter))
        self._tracer = self._provider.get_tracer("lynceus", __version__)
        self._chosen: dict[tuple[str, int], tuple[float, float]] = {}
        """Trial → when it was chosen, and the seconds that this took."""

    def ordered(self, study: StudyView, order: Order, now_s: float, deciding_s: float) -> None:
        """Keep when a trial was chosen."""
        self._chosen[study.record.identity, order.number] = now_s, deciding_s

    def settled(self, study: StudyView, seen: Observation, now_s: float) -> None:
        """Send the trace of a trial."""
        from opentelemetry.trace import set_span_in_context
        from opentelemetry.trace.status import Status, StatusCode

        facts = trial_facts(study, seen, now_s)
        known = self._chosen.pop((study.record.identity, seen.order.number), (facts.started_s, 0.0))
        root = self._tracer.start_span(
            f"{study.name} {facts.name}",
            start_time=_ns(known[0] - known[1]),
            attributes=_attributes(study, seen, facts),
        )
        if facts.texts["state"] == "FAIL":
            root.set_status(Status(StatusCode.ERROR, facts.texts.get("detail", facts.texts.get("reason", ""))))
        context = set_span_in_context(root)
        for name, start_s, end_s in _parts(seen, facts, *known):
            self._tracer.start_span(name, context, start_time=_ns(start_s)).end(_ns(end_s))
        root.end(_ns(max(now_s, facts.ended_s)))

    def close(self) -> None:
        """Send what is left."""
        self._provider.shutdown()


def _parts(
    seen: Observation, facts: TrialFacts, chosen_s: float, deciding_s: float
) -> tuple[tuple[str, float, float], ...]:
    """The parts of a trial's way, each with its beginning and its end: none begins before the one before it."""
    started_s = max(facts.started_s, chosen_s)
    began_s = max(facts.ended_s - seen.outcome.seconds, started_s)  # a queue, a boot or an image came before
    return (
        ("decide", chosen_s - deciding_s, chosen_s),
        ("launch", chosen_s, started_s),
        ("wait for a machine", started_s, began_s),
        ("run", began_s, max(facts.ended_s, began_s)),
    )


def _attributes(study: StudyView, seen: Observation, facts: TrialFacts) -> dict[str, str | int | float | bool]:
    named: dict[str, str | int | float | bool] = {
        "lynceus.study": study.name,
        "lynceus.trial": seen.order.number,
        "lynceus.reserved_usd": seen.order.reserved_usd,
    }
    named |= {f"lynceus.{name}": value for name, value in facts.numbers.items()}
    named |= {f"lynceus.{name}": text for name, text in facts.texts.items()}
    for name, value in facts.params.items():
        named[f"lynceus.params.{name}"] = value if isinstance(value, str | int | float | bool) else str(value)
    return named


def _ns(seconds: float) -> int:
    return int(seconds * 1e9)
