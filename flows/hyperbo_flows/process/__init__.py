"""The process that runs: its environment, interrupts, and lines for people."""

from hyperbo_flows.process.environment import prepare_process, run_facts
from hyperbo_flows.process.interrupts import interruptible
from hyperbo_flows.process.progress import byte_progress, progress_line, say

__all__ = ["byte_progress", "interruptible", "prepare_process", "progress_line", "run_facts", "say"]
