"""The copies of a plan whose contents move, as C that a program calls between its operators."""

from collections.abc import Iterator

from modelplan.answers.moving_layout import MovingPlan
from modelplan.plain_c.writing.c_text import comment, identifier

#: The C function that carries out the copies before a step, in the order of the table.
_COPYING = """\
#ifndef PLAN_COPY /* of a DMA engine: starts copy `number` */
#define PLAN_COPY(number, to, from, bytes) memmove(to, from, bytes)
#define PLAN_WAIT(number) ((void)(number)) /* waits until copy `number` is done */
#endif

static uint8_t *plan_address(uint32_t region, uint32_t at, uint8_t *const regions[], uint8_t *const homes[]) {
  return region == PLAN_HOMES ? homes[at] : regions[region] + at;
}

/* Call it before the operator of each step, and once more after the last. */
void plan_before(uint32_t step, uint8_t *const regions[], uint8_t *const homes[]) {
  uint32_t i;
  for (i = 0; i < PLAN_COPIES; ++i)
    if (plan_copies[i].due == step && plan_copies[i].issued != step) PLAN_WAIT(i);
  for (i = 0; i < PLAN_COPIES; ++i) {
    const struct plan_copy *copy = &plan_copies[i];
    if (copy->issued != step) continue;
    PLAN_COPY(i, plan_address(copy->to, copy->to_at, regions, homes),
              plan_address(copy->from, copy->from_at, regions, homes), copy->bytes);
    if (copy->due == step) PLAN_WAIT(i);
  }
}
"""


def render(moving_plan: MovingPlan) -> str:
    """A table of the copies in their order, and the function that carries out those before a step.

    The program calls it with the step before each operator and once more after the last. It defines PLAN_COPY and
    PLAN_WAIT for a DMA engine; without them the processor copies when a copy is issued.
    """
    rows = "\n".join(_rows(moving_plan))
    regions = ", ".join(f"PLAN_{identifier(region.name).upper()}" for region in moving_plan.problem.regions)
    homes = "\n".join(f"   homes[{i}]: {comment(name)}" for i, name in enumerate(_homes(moving_plan).values()))
    count = len(moving_plan.layout.copies)
    return f"""\
/* Made by {moving_plan.made_by}: the copies while {comment(moving_plan.title)} runs, by the program that runs it.
   regions[] are the memories, in the order of the enum; homes[] where contents stand that no memory of the plan holds:
{homes or "   none"}
*/
#include <stdint.h>
#include <string.h>

enum {{ {regions}, PLAN_HOMES }};

struct plan_copy {{
  uint32_t issued, due;   /* begins before step `issued`, is done before step `due` */
  uint32_t from, from_at; /* a region and an offset, or PLAN_HOMES and the number of a home */
  uint32_t to, to_at;
  uint32_t bytes;
}};

static const struct plan_copy plan_copies[] = {{
{rows or "  {0, 0, 0, 0, 0, 0, 0}"}
}};
enum {{ PLAN_COPIES = {count} }};

{_COPYING}"""


def _rows(moving_plan: MovingPlan) -> Iterator[str]:
    """A line of the table for each copy."""
    homes = list(_homes(moving_plan))
    for copy in moving_plan.layout.copies:
        buffer = moving_plan.layout.copied(copy)
        ends = [_end(moving_plan, end, homes.index(buffer) if end < 0 else -1) for end in (copy.source, copy.target)]
        size, name = int(moving_plan.problem.problem.size[buffer]), moving_plan.problem.problem.names[buffer]
        yield f"  {{{copy.issued}, {copy.due}, {ends[0]}, {ends[1]}, {size}}}, /* {comment(name)} */"


def _homes(moving_plan: MovingPlan) -> dict[int, str]:
    """The buffers that are copied from or to their home, with their names, in the order of their first copy."""
    away = (copy for copy in moving_plan.layout.copies if min(copy.source, copy.target) < 0)
    return {(buffer := moving_plan.layout.copied(copy)): moving_plan.problem.problem.names[buffer] for copy in away}


def _end(moving_plan: MovingPlan, stay: int, home: int) -> str:
    """The two numbers of one end of a copy."""
    if stay < 0:
        return f"PLAN_HOMES, {home}"
    end = moving_plan.layout.stays[stay]
    return f"PLAN_{identifier(moving_plan.problem.regions[end.region].name).upper()}, {end.offset}"
