"""Execution memory: a generation's messages within a token budget."""

from fieldstone.planes.context.execution import ContextManager
from fieldstone.planes.context.rollup import Rollup
from fieldstone.planes.context.structured import Structured
from fieldstone.planes.context.tiered import Tiered
from fieldstone.planes.context.triggers import Triggers

__all__ = ("ContextManager", "Rollup", "Structured", "Tiered", "Triggers")
