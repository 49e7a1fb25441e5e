"""The list of the mutation operators, by name."""

from helpers.upkeep.mutants import of_control, of_threads, of_types, of_values
from helpers.upkeep.mutants.mutation import Operator

_FUNCTIONS = (
    *(of_types.narrow_32, of_types.narrow_unsigned, of_types.narrow_16),
    *(of_values.uninitialised, of_values.initial_value, of_values.constant, of_values.arithmetic),
    *(of_values.dropped_term, of_values.sign, of_values.index, of_values.axis, of_values.built_in),
    *(of_values.opposite, of_values.nan, of_values.fast_maths),
    *(of_types.cast, of_types.accumulator, of_types.double_constant),
    *(of_control.comparison, of_control.negated, of_control.guard, of_control.never, of_control.early_return),
    *(of_control.logic, of_control.condition_part, of_control.choice, of_control.stride, of_control.first_round),
    *(of_control.overwritten, of_control.statement, of_control.ending),
    *(of_threads.barrier, of_threads.fence, of_threads.atomic, of_threads.shuffle, of_threads.mask),
    *(of_threads.shared, of_threads.shared_size, of_threads.stream, of_threads.grid, of_threads.block),
    *(of_threads.dynamic_size, of_threads.tail),
)
# In the order of the list; the first two make the mutants with an index of 32 bits.
OPERATORS = {
    name: Operator(name, " ".join((function.__doc__ or "").split()), function)
    for function in _FUNCTIONS
    for name in [function.__name__.replace("_", "-")]
}
