"""The work, one folder a subject: pure functions on records and Arrow batches."""

from schemas.process import refuse_telemetry

refuse_telemetry()
