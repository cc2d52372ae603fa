"""One page about runs, benchmarks and evaluations, which needs nothing else: `codea1 report`."""
