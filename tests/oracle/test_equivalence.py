"""Written proofs: each is of a mutant that the corpus makes, and holds only while original and mutant agree bit by bit."""

from __future__ import annotations

from dataclasses import replace

from agentloop.content import load_tasks
from oracle.corpus import CONTROL, kernels
from oracle.corpus.mutate import TUNING, mutants
from oracle.validation import Bench, equivalence

JOBS = {job.key: job for job in equivalence.jobs(5)}
WRITTEN = [(mutant, entry) for entry in equivalence._entries() for mutant in entry["mutants"]]
EXPLAINED = [mutant for mutant, entry in WRITTEN if "explained" in entry]
MADE = [job.run.args[:2] for job in JOBS.values()] + [
    (kernel, mutant)
    for kernel in kernels(label=CONTROL)
    if f"{kernel.task} {kernel.name}" in {mutant["kernel"] for mutant in EXPLAINED}
    for mutant in mutants(kernel.source)
]


def test_every_entry_is_of_a_mutant_of_the_corpus():
    made = {mutant.digest: (kernel, mutant) for kernel, mutant in MADE}
    digests = [mutant["digest"] for mutant, _ in WRITTEN]
    assert len(set(digests)) == len(digests)
    for mutant, entry in WRITTEN:
        kernel, found = made[mutant["digest"]]
        assert mutant["kernel"] == f"{kernel.task} {kernel.name}"
        assert mutant["change"] == f"{found.operator} at line {found.line}: {found.description}"
        assert entry.keys() - {"mutants"} in ({"proof"}, {"explained"})


def test_there_is_one_job_per_proof():
    assert sorted(JOBS) == sorted(mutant["digest"] for mutant, entry in WRITTEN if "proof" in entry)


def test_only_a_proof_with_all_its_cases_counts(monkeypatch):
    some = next(iter(equivalence.proofs().values()))
    cases = {"all": 1000, "fewer": 999, "none": 0}
    written = {digest: replace(some, digest=digest, equal=equal) for digest, equal in cases.items()}
    monkeypatch.setattr(equivalence, "proofs", lambda: written)
    assert [digest for digest in (*written, "unwritten") if equivalence.proven(digest)] == ["all"]


def test_an_explanation_is_no_proof():
    assert all(equivalence.explained(digest) is None for digest in equivalence.proofs())
    for mutant in EXPLAINED:
        assert equivalence.explained(mutant["digest"])
        assert not equivalence.proven(mutant["digest"])


def test_a_comparison_counts_equal_cases_and_names_the_first_that_differs(backend):
    bench = Bench(backend, load_tasks())
    kernel, right = next(pair for pair in MADE if pair[0].task == "ops/relu")
    record = JOBS[right.digest].run(bench)
    assert (record["equal"], record["differs"]) == ({right.digest: 5}, {})
    wrong = next(m for m in mutants(kernel.source) if m.half == TUNING and m.operator == "constant_changed")
    record = equivalence._compared(kernel, wrong, 5, bench)
    assert set(record["differs"]) == {wrong.digest}
    assert record["equal"][wrong.digest] < 5
