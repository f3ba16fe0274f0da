"""Training and evaluation on finished datasets; never imports apache_beam."""

from schemas.process import refuse_telemetry

refuse_telemetry()
