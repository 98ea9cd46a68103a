"""Emptying kernels must reach every spelling of triton.jit and leave host code alone."""

import ast

import pytest

from oracle.noop import emptied

HEADER = "import torch, triton, functools\nimport triton.language as tl\nfrom triton import jit as j\n"
BODY = "(x, n: tl.constexpr = 4):\n    v = tl.load(x)\n    tl.store(x, v)\n"

SPELLINGS = {
    "attribute": "@triton.jit\ndef kernel" + BODY,
    "alias": "@j\ndef kernel" + BODY,
    "options": "@triton.jit(do_not_specialize=['n'])\ndef kernel" + BODY,
    "autotune": "@triton.autotune(configs=[], key=[])\n@triton.jit\ndef kernel" + BODY,
    "heuristics": "@triton.heuristics({})\n@j\ndef kernel" + BODY,
    "called": "def kernel" + BODY + "k = triton.jit(kernel)\n",
    "called with options": "def kernel" + BODY + "k = triton.jit(debug=True)(kernel)\n",
    "called in autotune": "def kernel" + BODY + "k = triton.autotune([], [])(triton.jit(kernel))\n",
    "assigned": "fast = triton.jit\nfaster = fast\n@faster\ndef kernel" + BODY,
    "partial": "@functools.partial(triton.jit, debug=True)\ndef kernel" + BODY,
    "partial assigned": "p = functools.partial(triton.jit, debug=True)\n@p\ndef kernel" + BODY,
    "getattr": "@getattr(triton, 'jit')\ndef kernel" + BODY,
    "own decorator": "def mine(f):\n    return triton.jit(f)\n@mine\ndef kernel" + BODY,
    "runtime": "@triton.runtime.jit.jit\ndef kernel" + BODY,
    "nested": "def outer():\n    @triton.jit\n    def kernel(x):\n        tl.store(x, 1)\n    return kernel\n",
    "in a class": "class A:\n    @staticmethod\n    @triton.jit\n    def kernel(x):\n        tl.store(x, 1)\n",
}


def functions(source):
    return {node.name: node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.FunctionDef)}


@pytest.mark.parametrize("spelling", SPELLINGS)
def test_every_spelling_is_emptied(spelling):
    kernel = functions(emptied(HEADER + SPELLINGS[spelling]))["kernel"]
    assert [type(node) for node in kernel.body] == [ast.Pass]


def test_signature_decorators_and_host_code_stay():
    source = HEADER + (
        "def helper(x):\n    return x + 1\n\n"
        "@triton.autotune(configs=[triton.Config({'B': 8})], key=['n'])\n@triton.jit\n"
        "def kernel(x, n, B: tl.constexpr = 8):\n    tl.store(x, n)\n\n"
        "def entry(x):\n    out = torch.empty_like(x)\n    kernel[(1,)](x, 3)\n    return helper(out)\n"
    )
    before, after = functions(source), functions(emptied(source))
    assert ast.dump(before["helper"]) == ast.dump(after["helper"])
    assert ast.dump(before["entry"]) == ast.dump(after["entry"])
    assert ast.dump(before["kernel"].args) == ast.dump(after["kernel"].args)
    assert [ast.dump(d) for d in before["kernel"].decorator_list] == [
        ast.dump(d) for d in after["kernel"].decorator_list
    ]


def test_torch_script_and_unrelated_calls_are_not_kernels():
    source = HEADER + "@torch.jit.script\ndef f(x):\n    return x\n\ndef g(x):\n    return x\n\nprint(g(1))\n"
    assert "pass" not in emptied(source)


def test_host_function_that_only_builds_a_kernel_is_kept():
    source = HEADER + (
        "def build():\n    @triton.jit\n    def kernel(x):\n        tl.store(x, 1)\n    return kernel\n\n"
        "def entry(x):\n    build()[(1,)](x)\n    return x\n"
    )
    after = functions(emptied(source))
    assert len(after["build"].body) == 2
    assert len(after["entry"].body) == 2


def test_unparsable_source_is_a_syntax_error():
    with pytest.raises(SyntaxError):
        emptied("def f(:\n")
