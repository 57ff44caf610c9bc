"""RECORD over HTTP, among the other figures."""

from __future__ import annotations

from benchmarks.figures import Figure, Report
from benchmarks.http_load import compare


def measure_http(report: Report) -> None:
    found = compare()
    report.add(
        Figure(
            "HTTP RECORD, 32 connections",
            found.record.requests_per_s,
            "/s",
            "bare Starlette route that decodes the body",
            found.bare.requests_per_s,
            0.5,
        )
    )
    report.add(
        Figure(
            "HTTP RECORD with embedding and detection, 32 connections",
            found.everything.requests_per_s,
            "/s",
            "the same without",
            found.record.requests_per_s,
        )
    )
    report.add(Figure("HTTP RECORD p99", found.record.p99_ms, "ms", "the bare route's", found.bare.p99_ms))
