"""The mutation operators by name: the functions of four modules, each with its mistake as a docstring."""

from helpers.upkeep.mutants import of_control, of_threads, of_types, of_values
from helpers.upkeep.mutants.mutation import Operator

OPERATORS = {
    name: Operator(name, " ".join((function.__doc__ or "").split()), function)
    for module in (of_types, of_values, of_control, of_threads)
    for function in vars(module).values()
    if getattr(function, "__module__", "") == module.__name__ and not function.__name__.startswith("_")
    for name in [function.__name__.replace("_", "-")]
}
