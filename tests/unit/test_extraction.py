"""Extraction undoes wrapping, changes no code that stands in a closed fence, and says what it did."""

import ast
import json
import time
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agentloop.extraction import MAX_SOURCE, Extraction, extract
from agentloop.names import names

CODE = '''import torch
import triton
import triton.language as tl


@triton.jit
def copy_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + i, tl.load(x_ptr + i, mask=i < n, other=0.0), mask=i < n)


def copy(x):
    """A copy of "x"; x's dtype & shape <stay>."""
    out = torch.empty_like(x)
    copy_kernel[(triton.cdiv(x.numel(), 64),)](x, out, x.numel(), BLOCK=64)
    return out
'''
KERNEL, WRAPPER = CODE.split("\n\n\ndef copy(x)")
WRAPPER = "def copy(x)" + WRAPPER
DATA = Path(__file__).parents[3] / "shared/data/tritonbench_t"


def found(text: str, entry: str = "copy") -> str:
    source = extract(text, entry).source
    assert source is not None
    return source


WRAPPINGS = {
    "fenced": f"Here is it:\n\n```python\n{CODE}```\nIt copies.\n",
    "py": f"```py\n{CODE}\n```",
    "triton": f"```triton\n{CODE}\n```",
    "no language": f"```\n{CODE}```",
    "attributes": f'```{{.python title="a.py"}}\n{CODE}```',
    "tildes": f"~~~python\n{CODE}~~~",
    "four ticks": f"````python\n{CODE}````",
    "unclosed": f"Sure.\n```python\n{CODE}",
    "prose on the closing fence": f"```python\n{CODE}``` This kernel copies x.\n",
    "closing fence stuck to the code": f"```python\n{CODE.rstrip()}```\nDone.",
    "opening fence stuck to prose": f"The code: ```python\n{CODE}```",
    "orphaned closing fence": f"{CODE}```\nThis kernel copies x, doesn't it?\n\n1. It loads.\n",
    "in a list": "1. The file:\n\n" + "\n".join("   " + line for line in f"```python\n{CODE}```".split("\n")),
    "bare": CODE,
    "bare, leading prose": f"Here's the kernel you asked for:\n\n{CODE}",
    "bare, trailing prose": f"{CODE}\nExplanation:\n- The kernel doesn't branch (much.\n- It's fast!",
    "bare, one word before": f"python\n{CODE}",
    "bare, placeholders": f"{{{{ code }}}}\n{CODE}{{{{ code }}}}\n",
    "bare, prose between": f"{KERNEL}\n\nNow the wrapper's code:\n\n{WRAPPER}",
    "thought": f"<think>\nMaybe ```python\ndef copy(x): return x\n```\n</think>\n```python\n{CODE}```",
    "thought without its start": f"Let me see. def copy(x)…\n</think>\n\n{CODE}",
    "all inside the thought": f"<think>```python\n{CODE}```</think>",
    "other block after it": f"```python\n{CODE}```\nUse it so:\n```python\ny = copy(x)\n```",
    "first draft before it": f"```python\ndef copy(x):\n    return x.clone()\n```\nBetter:\n```python\n{CODE}```",
    "shell block before it": f"```bash\npip install triton\n```\n```python\n{CODE}```",
    "split in two": f"The kernel:\n```python\n{KERNEL}\n```\nThe wrapper:\n```python\n{WRAPPER}```",
    "split, wrapper first": f"```python\n{WRAPPER}```\nand its kernel\n```python\n{KERNEL}\n```",
    "indented": "\n".join("    " + line if line else line for line in CODE.split("\n")),
    "fenced, indented": "```python\n" + "\n".join("\t" + line for line in CODE.split("\n")) + "\n```",
    "first line lost its indentation": CODE.replace("\n", "\n    "),
    "windows": f"```python\n{CODE}```".replace("\n", "\r\n"),
    "tabs and spaces": CODE.replace('    """A copy', '\t"""A copy'),
    "typographic": "```python\n" + CODE.replace('"""', "“““") + "```",
    "entities": "```python\n" + CODE.replace("&", "&amp;").replace("<", "&lt;") + "```",
    "NUL": f"```python\n{CODE}\0```",
    "byte order mark": f"\ufeff{CODE}",
    "end of turn": f"{CODE}<|im_end|>",
}


@pytest.mark.parametrize("wrapping", WRAPPINGS)
def test_wrapping_is_undone(wrapping):
    tree = ast.parse(found(WRAPPINGS[wrapping]))
    assert {"copy", "copy_kernel", "torch", "triton", "tl"} <= names(tree).top
    assert "clone" not in ast.unparse(tree)


@pytest.mark.parametrize(
    "wrapping", ["fenced", "unclosed", "bare", "prose on the closing fence", "other block after it"]
)
def test_code_comes_back_unchanged(wrapping):
    assert found(WRAPPINGS[wrapping]) == CODE


def test_a_clean_answer_needs_no_step():
    assert extract(f"```python\n{CODE}```", "copy") == Extraction(CODE, "fenced")
    assert extract(CODE, "copy").method == "unfenced"
    joined = extract(WRAPPINGS["split in two"], "copy")
    assert joined.method == "joined"
    assert any("joined 2" in step for step in joined.steps)


def test_entities_and_quotes_stay_where_the_code_parses():
    code = "def f():\n    return '“&lt;”'\n"
    assert found(f"```python\n{code}```", "f") == code
    assert found("```python\ndef f():\n    return “x”\n```", "f") == 'def f():\n    return "x"\n'
    assert found("```python\ndef f(a):\n    return a &lt; 1\n```", "f") == "def f(a):\n    return a < 1\n"


def test_an_error_inside_a_fence_is_the_authors():
    broken = "def f(x):\n    return (x\n\nSome words here\n"
    assert found(f"```python\n{broken}```", "f") == broken.rstrip() + "\n"
    redefined = "def f(x):\n    return x\n\ndef f(x) -> Tensor:\n    # as above\n"
    with pytest.raises(SyntaxError):
        ast.parse(found(redefined, "f"))


def test_fences_inside_a_docstring():
    code = 'def f(x):\n    """Use:\n```python\ny = f(x)\n```\n    """\n    return x\n'
    assert found(f"```python\n{code}```\nDone.", "f") == code


def test_missing_imports_are_added_and_recorded():
    code = CODE.replace("import torch\nimport triton\nimport triton.language as tl\n", "")
    result = extract(f"```python\n{code}```", "copy")
    assert result.source.startswith("import torch\nimport triton\nimport triton.language as tl\n")
    assert [step for step in result.steps if step.startswith("added")] == [
        "added `import torch`",
        "added `import triton`",
        "added `import triton.language as tl`",
    ]
    future = extract("```python\nfrom __future__ import annotations\ndef f(x: torch.Tensor): return x\n```", "f")
    assert future.source.split("\n")[:2] == ["from __future__ import annotations", "import torch"]
    shadowed = extract("```python\ndef f(torch):\n    return torch.x\n```", "f")
    assert not shadowed.steps


@pytest.mark.parametrize(
    "text",
    [
        "",
        " \n",
        "I cannot help with that.",
        "<think>def copy(x): return x",
        "I'll help. Let's break this",
        "\0\0",
        "1 + 1 = 2",
    ],
)
def test_no_code(text):
    assert extract(text, "copy").source is None
    assert extract(text, "copy").method == "none"


def test_code_without_the_function_is_still_code():
    assert found("```python\nimport torch\ndef other(x):\n    return x\n```").startswith("import torch")
    assert "def copy(x" in found("```python\ndef copy(x\n```")


def test_unpaired_surrogates_do_not_reach_the_file():
    found("```python\ndef copy(x):\n    return '\ud800'\n```").encode("utf-8")


HOSTILE = {
    "fences": "```\n",
    "language fences": "```python\ndef f(:\n",
    "backticks": "`",
    "opened brackets": "(",
    "reasoning marks": "<think></think>",
    "half functions": "def copy(\n",
    "blank lines": "\n",
    "quotes": "'''",
    "prose": "import the\nNow do it\n@x y z\n",
    "entities": "&lt",
    "docstring fences": '```python\ndef f(x):\n  """\n```\n',
    "decorators": "@a\n",
}


@pytest.mark.parametrize("piece", HOSTILE)
def test_twenty_megabytes_take_seconds(piece):
    text = HOSTILE[piece] * (20_000_000 // len(HOSTILE[piece]))
    start = time.process_time()
    result = extract(text, "copy")
    assert time.process_time() - start < 8
    assert result.source is None or len(result.source) <= MAX_SOURCE + 200


@pytest.mark.parametrize(
    "code", ["-" * 150_000 + "x", "x" + ".a" * 90_000, "[{(" * 40, "not " * 40_000 + "x", "f(" * 90]
)
def test_deep_nesting_is_no_crash(code):
    extract(f"```python\ndef copy(x):\n    return {code}\n```", "copy")


@given(
    st.lists(
        st.sampled_from(
            ["```", "```python", "~~~", "\n", CODE, "def copy(x):\n", "words ", "</think>", "'", '"""', "\t"]
        )
    )
)
@settings(max_examples=150, deadline=None)
def test_any_mixture_gives_a_result(parts):
    result = extract("".join(parts), "copy")
    assert (result.source is None) == (result.method == "none")
    assert result.source is None or result.source.endswith("\n")


@given(st.text(alphabet=st.characters(exclude_characters="`~<\r\f\0"), max_size=60), st.text(max_size=20))
@settings(max_examples=100, deadline=None)
def test_prose_around_a_fence_never_changes_the_code(before, after):
    assert found(f"{before}\n```python\n{CODE}```\n{after.replace('`', '').replace('~', '').replace('<', '')}") == CODE


@pytest.mark.data
@pytest.mark.skipif(not DATA.is_dir(), reason="no ../shared/data")
def test_recorded_answers():
    """Of 180 real answers, one ends after a sentence, one has a broken function, two name it otherwise."""
    tasks = [json.loads(line)["name"].rpartition(".")[2] for line in (DATA / "tasks.jsonl").read_text().splitlines()]
    odd = []
    for file in sorted(DATA.glob("answers-*.jsonl")):
        for name, line in zip(tasks, file.read_text().splitlines(), strict=True):
            result = extract(json.loads(line)["predict"], name)
            try:
                right = result.source is not None and name in names(ast.parse(result.source)).top
            except SyntaxError:
                right = False
            if not right:
                odd.append((file.stem.removeprefix("answers-"), name, result.method))
    assert odd == [
        ("Qwen2.5-72B-Instruct", "gelu_std", "unfenced"),
        ("claude-3-5-sonnet-20240620", "exp_mean", "none"),
        ("claude-3-5-sonnet-20240620", "max", "unfenced"),
        ("gpt-4o", "mean", "unfenced"),
    ]
