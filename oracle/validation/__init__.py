"""The oracle measured on kernels whose label is known: the corpus, its bugs and its mutants.

Each module names its jobs and what one job measures; a job is small (seconds), its result is plain JSON, and nothing is
judged here that a user's kernel would not meet too. `agentloop.validation` runs the jobs and sums them up.

    verdicts      a kernel under the default portfolio, by seed and domain, with the naive checks beside it
    calibration   how far right kernels are from the reference: the figures of tolerance policy `calibrated`
    strategies    kernels under the seven published fuzz strategies, every tolerance policy on the same outputs
    mutation      mutants of right kernels under the oracle and the naive checks
    compiled      which mutants the compiler refuses, and which compile to the same code
    equivalence   mutants that a written proof calls equivalent, on 1,000 unseen cases
"""

from oracle.validation.bench import Bench, Job

__all__ = ["Bench", "Job"]
