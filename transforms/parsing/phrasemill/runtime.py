"""ONNX Runtime without its telemetry; what needs it takes it from here.

A process that imports it (1.31) leaves a device id and a queue of events in the user's cache folder, and looks for
Microsoft's host to send them to, unless the environment says otherwise before the import.
"""

from __future__ import annotations

import os

os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")

import onnxruntime

__all__ = ["onnxruntime"]
