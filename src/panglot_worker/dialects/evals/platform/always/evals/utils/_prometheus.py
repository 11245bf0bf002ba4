"""As much of prometheus_client as the scripts of this convention see: labelled histograms and their text."""


class CollectorRegistry:
    def __init__(self):
        self.histograms = []


class Histogram:
    """Counts observations by label values."""

    def __init__(self, name, documentation, labelnames=(), namespace="", subsystem="", buckets=(), registry=None):
        self.name = "_".join(part for part in (namespace, subsystem, name) if part)
        self.documentation = documentation
        self.labelnames = tuple(labelnames)
        self.bounds = [float(bound) for bound in buckets] + [float("inf")]
        self.children = {}
        if registry is not None:
            registry.histograms.append(self)

    def labels(self, *values, **named):
        key = tuple(str(value) for value in values) or tuple(str(named[name]) for name in self.labelnames)
        child = self.children.get(key)
        if child is None:
            child = self.children[key] = Child(self.bounds)
        return child

    def observe(self, seconds):
        self.labels().observe(seconds)


class Child:
    def __init__(self, bounds):
        self.bounds = bounds
        self.counts = [0] * len(bounds)
        self.total = 0.0

    def observe(self, seconds):
        index = next(number for number, bound in enumerate(self.bounds) if seconds <= bound or bound == float("inf"))
        self.counts[index] += 1
        self.total += seconds


def generate_latest(registry):
    """All histograms of a registry as Prometheus text."""
    lines = []
    for histogram in registry.histograms:
        lines.append("# HELP %s %s" % (histogram.name, histogram.documentation))
        lines.append("# TYPE %s histogram" % histogram.name)
        for values, child in sorted(histogram.children.items()):
            lines.extend(_lines(histogram, values, child))
    return "\n".join(lines) + "\n"


def _lines(histogram, values, child):
    labels = ",".join('%s="%s"' % pair for pair in zip(histogram.labelnames, values))
    below = 0
    for bound, count in zip(child.bounds, child.counts):
        below += count
        le = "+Inf" if bound == float("inf") else repr(bound)
        yield '%s_bucket{%s,le="%s"} %d' % (histogram.name, labels, le, below)
    yield "%s_sum{%s} %r" % (histogram.name, labels, child.total)
    yield "%s_count{%s} %d" % (histogram.name, labels, below)
