"""ONNX Runtime without its telemetry. Other modules import it from here.

A process that imports it (1.31) writes a device id and a queue of events to the user's cache folder, and tries to send
them to Microsoft, unless the environment disables this before the import.
"""

from __future__ import annotations

import os

os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")

import onnxruntime

__all__ = ["onnxruntime"]
