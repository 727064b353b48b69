"""How far a head is from the exact softmax: bias, variance, effective draws, and what it costs."""

from skipgrad.auditing.audit import audit
from skipgrad.auditing.result import Audit, Cost, Estimate

__all__ = ["Audit", "Cost", "Estimate", "audit"]
