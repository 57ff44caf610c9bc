"""Finding a draft: its author's alone. To everybody else it does not exist."""

from fieldstone.core.agents import AgentFacts
from fieldstone.core.errors import Forbidden, InvalidTransition, UnitNotFound
from fieldstone.field.desk import Desk
from fieldstone.ports.views import UnitRow


async def find_visible(desk: Desk, agent: AgentFacts, unit_id: str) -> UnitRow:
    unit = await desk.unit(unit_id)
    if unit is None or desk.hides(unit, agent):
        raise UnitNotFound
    return unit


async def find_own_draft(desk: Desk, agent: AgentFacts, unit_id: str) -> UnitRow:
    unit = await find_visible(desk, agent, unit_id)
    if unit.agent != agent.number:
        raise Forbidden("Only its author may do this with a unit.", suggested_action="Ask its author for it.")
    if unit.status != "draft":
        raise InvalidTransition(f"{unit.id} is not a draft: it is {unit.status}.")
    return unit
