"""A clock for benchmarks that says what the test tells it."""

from helpers.upkeep.benchmarks.gpu import Direct


class Several(Direct):
    """Stands in for a CUDA graph: one call on each set of inputs."""

    def __init__(self, contender, sets):
        super().__init__(contender, sets[0])
        self.sets, self.calls = sets, len(sets)

    def run(self):
        for inputs in self.sets:
            self.contender.call(*inputs)


class Script:
    """A backend with a scripted clock: name -> milliseconds, or a function of the count of samples so far."""

    gpu = "NVIDIA Script"

    def __init__(self, **clock):
        self.clock, self.order, self.prepared = clock, [], []

    def prepare(self, contender, input_sets, graph):
        if graph and contender.name == "uncapturable":
            raise RuntimeError("operation not permitted when stream is capturing")
        self.prepared.append(Several(contender, input_sets) if graph else Direct(contender, input_sets[0]))
        return self.prepared[-1]

    def peak_bytes(self, contender):
        return None  # counted on a GPU only

    def times(self, order):
        samples = []
        for prepared in order:
            prepared.run()
            name = prepared.contender.name
            self.order.append(name)
            ms = self.clock.get(name, 1.0)
            samples.append(ms(self.order.count(name)) if callable(ms) else ms)
        return samples
