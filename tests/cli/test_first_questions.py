"""First questions, as new users type them, and what an expert answers: a row each, with what must be on the screen.

Words are looked for with their spaces as one, whatever the width; a word behind `not ` must not be there.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable

import pytest
from command_line import Outcome

READERS = ("sweep", "check", "learn", "diff nowhere.json", "estimate -m gpt2 -d t4 --catalog")
"""Commands that read a file, without its name."""

QUESTIONS: tuple[tuple[str, int, tuple[str, ...]], ...] = (
    # one notion of feasible: the automatic batch is the largest that surely fits
    ("estimate -m llama-3-8b -d rtx-4090 -t qlora", 0, ("✓ feasible", "2 x 2048 tokens", "23.4 GiB usable of 24 GiB")),
    ("estimate -m llama-3-8b -d rtx-3090 -t qlora", 0, ("✓ feasible",)),
    ("estimate -m llama-3-8b -d '4060 ti 16gb' -t qlora", 0, ("✓ feasible",)),
    ("estimate -m llama-3-8b -d 'rtx 4070 ti super' -t qlora", 0, ("✓ feasible",)),
    ("estimate -m llama-3-8b -d rtx-5080 -t qlora", 0, ("✓ feasible",)),
    ("estimate -m llama-3-8b -d 7900xtx -t qlora", 0, ("✓ feasible",)),
    ("estimate -m llama-3-70b -d 256xh100-sxm -t pretrain", 0, ("✓ feasible", "tp 4 · pp 4", "megatron")),
    # a card that drives a screen
    ("estimate -m gpt2 -d rtx-4090 -t lora", 0, ("600 MiB of a card's memory belong to the screen", "--reserve")),
    ("estimate -m gpt2 -d rtx-4090 -t lora --reserve 0", 0, ("not belong to the screen", "24 GiB usable")),
    ("estimate -m gpt2 -d 8xh100-sxm -t lora", 0, ("not belong to the screen",)),
    ("estimate -m gpt2 -d rtx-4090 -t lora --reserve-vram 1", 2, ("Here it is --reserve",)),
    # a desk: the best usual format that surely fits, layers on the host where none does
    ("estimate -m gemma-3-27b -d rtx-4090 -t inference", 0, ("✓ feasible", "q5_k_m weights: the best usual format")),
    ("estimate -m phi-4 -d rtx-4090 -t inference", 0, ("✓ feasible", "q8_0 weights")),
    ("estimate -m gemma-3-27b -d rtx-3060 -t inference", 0, ("✓ feasible", "q4_k_m", "layers on the device, as many")),
    ("estimate -m gpt-oss-20b -d arc-b580 -t inference", 0, ("✓ feasible", "mxfp4 weights", "not XPU build")),
    # a server: its own format first, and no format of another engine among the ways
    (
        "estimate -m llama-3-70b -d 4xl40s -t inference --concurrency 32 --context 8192",
        0,
        ("✗ does not fit", "--quant fp8 ✓", "not q8_0", "not q6_k", "tokens/s to each"),
    ),
    (
        "plan -m llama-3.1-8b -d l4 -t inference --concurrency 32 --context 8192",
        0,
        ("Change --concurrency 8 --quant fp8 ✓",),
    ),
    # no task said: one line a use, with what makes it so
    ("estimate -m 'llama3 8b' -d 'rtx 4070 ti'", 0, ("Chat ✓ q8_0", "QLoRA ✓", "--engine unsloth", "In full")),
    # what takes centuries has no screen of its own, unless somebody says how it is to run
    ("estimate -m llama-3-8b -d rtx-4070ti", 0, ("would take years", "not in detail", "not Compute", "not Why")),
    # and no notes on figures that are not shown
    ("estimate -m gpt-oss-20b -d rx-6900-xt", 0, ("In full", "not Nobody", "not Transformers 5", "not as above")),
    ("estimate -m llama-3-8b -d rtx-4070ti --micro-batch 2", 0, ("in detail", "Compute")),
    # slips of units that are no errors
    (
        "estimate -m llama-3-8b -d rtx-4090 --memory 24TB",
        0,
        ("more than any GeForce RTX 4090 has",),
    ),
    ("estimate -m llama-3-8b -d rtx-4090 --memory 48GiB", 0, ("not more than any",)),
    ("estimate -m gpt2 -d rtx-4090 --tokens 10", 0, ("--tokens 10 is less than one step of 524 k tokens",)),
    ("estimate -m gpt2 -d rtx-4090 --tokens 10B", 0, ("not less than one step",)),
    # a question about users says its task by itself; its speeds are those under load, or say that they are not
    ("solve max-users -m llama-3.1-8b -d h100-sxm --prompt 500", 0, ("not is about that",)),
    (
        "estimate -m llama-3-8b -d h100-sxm -t inference --prompt 1000 --output 300 --rate 60 --ttft 300ms",
        0,
        ("✗ requests pile up", "not ✗ infeasible"),
    ),
    (
        "estimate -m llama-3.1-8b -d h100-sxm -t inference --users 500 --prompt 500 --output 200",
        0,
        ("to each while no prompt is read", "first token after", "not tokens/s, limited by computation first token"),
    ),
    # long numbers have separators, but not where they are typed
    (
        "solve max-context -m llama-3.1-8b -d h100-sxm -t inference",
        0,
        ("of context 131,072", "has room for 449,968", "--context 449968 is"),
    ),
    # a recipe that is shown says how it is written
    ("launch -m llama-3-8b -d rtx-4090 -t qlora", 0, ("-o DIR writes these files",)),
    ("launch -m qwen3-8b -d rtx-4090 -t inference", 0, ("llama-server", "not -o DIR")),
    ("launch -m llama-3-8b -d rtx-4090 -t inference --engine ollama", 0, ("not 'llama-3-8b' for 'llama-3-8b'",)),
    # what is ranked says in which format, what needs no change what it takes, and what was taken for want of a task
    ("compare -m llama-3-8b -d rtx-4090 -d arc-b580 -t inference", 0, ("Formats differ", "--quant asks all for one")),
    ("compare -m llama-3-8b -d rtx-4090 -d t4 -t inference --quant q4_k_m", 0, ("not Formats differ",)),
    ("plan -m llama-3-70b -d 'rx 6900 xt' -t inference", 0, ("Nothing has to change: 13.5 GiB, 1.54 tokens/s.",)),
    ("solve max-model -d rtx-4070ti -t inference", 0, ("Format Memory Tokens/s", "q4_k_m", "not was taken")),
    ("solve max-model -d t4", 0, ("Format Memory Tokens/s", "--task inference was taken, since no task was said")),
    ("solve max-model -d t4 --tokens 1B", 0, ("Format Memory Time", "pre-training", "not was taken")),
    # of models alike the newest, and where the largest may just do the largest that surely does
    ("solve max-model -d rtx-4070ti -t qlora", 0, ("! phi-3-medium ", "✓ ", "not mythomax")),
    ("estimate -m llama-3-8b -d rtx-4090", 0, ("LoRA ✓", "--engine pytorch-liger")),
    ("estimate -m gpt2-xl -d 4070ti", 0, ("Full fine-tuning ✓", "Pre-training ✓", "not --offload all --tokens")),
    ("estimate -m bge-m3 -d rtx-4090", 0, ("Embedding ✓", "Pre-training in detail")),
    # a framework for one card is proposed, and written
    ("estimate -m qwen3-8b -d 4070ti -t qlora", 0, ("! tight", "--engine unsloth ✓")),
    ("launch --engine unsloth -m qwen3-8b -d 4070ti -t qlora", 0, ("load_in_4bit: true", "unsloth train")),
    # what a launcher cannot do is no default of it
    ("estimate -m llama-3-8b -d 2xt4 -t qlora", 0, ("✓ feasible", "not ZeRO 3", "fp16-mixed")),
    ("launch --engine trl -m llama-3-8b -d 2xt4 -t qlora", 0, ("trl sft", "not was taken")),
    ("estimate -m llama-3-8b -d 4xa100 -t finetune", 0, ("✓ feasible", "ZeRO 3", "not tp 2")),
    # several cards at home: nothing is divided but where it must be or that is faster, or weights lie in main memory
    ("estimate -m gpt2 -d 2xt4 -t pretrain --tokens 10B", 0, ("✓ feasible", "not ZeRO")),
    ("estimate -m llama-3.2-1b -d 2xrtx-4090 -t finetune", 0, ("✓ feasible", "ZeRO 3")),
    ("plan -m llama-3.3-70b -d 2xrtx-3090 -t qlora", 0, ("Change --offload all ✓",)),
    ("launch --engine axolotl -m llama-3.3-70b -d 2xrtx-3090 -t qlora --offload all", 0, ("offload_params: true",)),
    ("launch --engine trl -m llama-3.3-70b -d 2xrtx-3090 -t qlora --offload all", 2, ("does not divide quantized",)),
    # commands agree: one 4090 before two T4s, a rung of 16 bits that does not fit beside an answer in 8
    ("compare -m llama-3-8b -d rtx-4090 -d 2xt4 -t qlora", 0, ("Time, bar ✓ rtx-4090",)),
    (
        "estimate -m llama-3-70b -d 4xl40s -t inference --concurrency 32 --context 8192 --quant fp8",
        0,
        ("✓ feasible", "39.7 GiB", "inference, 16 bits ✗ 55.6 GiB"),
    ),
    ("plan -m qwen3-coder-480b-a35b -d 8xh200 -t inference", 0, ("Nothing has to change",)),
    ("plan -m deepseek-v3 -d 8xh100-sxm -t inference", 0, ("Change --quant awq-int4 ✓", "not q6_k", "not engine auto")),
    ("plan -m gpt2-xl -d rtx-3060 -t pretrain", 0, ("Change --checkpointing full", "--engine deepspeed --offload all")),
    # the same memory is not taken twice; what Metal's limit leaves is another's
    ("estimate -m gpt-oss:20b -d 'macbook air m2 16gb' -t inference", 0, ("! tight", "--gpu-layers 22 ✓")),
    (
        "estimate -m qwen3-32b -d 'm2 16gb' -t inference --quant q4_k_m --engine llama.cpp --gpu-layers 30",
        0,
        ("✗ does not fit", "would hold 20.2 GiB of one memory of 16 GiB"),
    ),
    # one user of a card that others serve many with; devices that are there are no change
    ("plan -m qwen3-32b -d t4 -t inference", 0, ("Change --engine llama.cpp ✓",)),
    ("plan -m llama-3.1-8b -d l4 -t inference --rate 2 --ttft 1s", 0, ("Change --quant fp8", "not --num-devices 1")),
    # no engine of clusters for a model that it has not
    ("estimate -m whisper-large-v3-turbo -d 256xa100 -t lora", 0, ("✓ feasible", "pytorch", "not megatron")),
    # machines of several sizes
    ("estimate -m llama-3.3-70b -d 'm3 ultra' -t inference", 0, ("sold with 96, 256 and 512 GiB", "works from 96 GiB")),
    (
        "estimate -m llama-3.3-70b -d 'framework desktop' -t inference",
        0,
        ("32, 64, 96 and 128 GiB", "works from 64 GiB"),
    ),
    (
        "plan -m llama-3-70b -d 'mac mini m4 16gb' -t qlora",
        0,
        ("Change -d m3-max-30c", "not --memory auto"),
    ),
    ("estimate -m llama-3-8b -d 'm4 max' -t lora", 0, ("of memory assumed", "it is sold with", "works from")),
    (
        "estimate -m llama-3-8b -d 'm1 max' -t lora --memory 32GiB",
        0,
        ("✓ feasible", "18.9 GiB", "fp16-mixed", "adapters on the last 16 layers"),
    ),
    # what macOS lets the GPU have is on the screen, can be said, and is raised before anything is given up
    (
        "estimate -m qwen3-coder-30b -d 'm4 pro 24gb' -t inference",
        0,
        ("let the GPU have 17.8 GiB of 24 GiB", "--wired-limit 20GiB ✓"),
    ),
    (
        "estimate -m qwen3-coder-30b -d 'm4 pro 24gb' -t inference --wired-limit 20GiB",
        0,
        ("✓ feasible", "20 GiB usable"),
    ),
    ("estimate -m gpt2 -d m4 --iogpu-wired-limit 20000", 2, ("Here it is --wired-limit",)),
    (
        "launch --engine mlx-lm -m qwen3-coder-30b -d 'm4 pro 24gb' -t inference --wired-limit 20GiB",
        0,
        ("sudo sysctl iogpu.wired_limit_mb=20480",),
    ),
    # what runs at a desk is no way for many users, and another engine says which format it takes
    (
        "estimate -m llama-3.1-8b -d rtx-4090 -t inference --concurrency 32 --context 4096",
        0,
        ("✗ does not fit", "--kv-dtype fp8 ✓", "little loss of quality; fp8 weights", "not llama.cpp instead"),
    ),
    ("estimate -m qwen3-32b -d t4 -t inference", 0, ("--engine llama.cpp ✓", "many requests; q4_k_m weights")),
    # no communication of TPUs is taken off what a server wants
    ("estimate -m llama-3.1-8b -d v5e-8 -t inference", 0, ("✓ feasible", "tp 8")),
    # a load that is only just kept has a way that surely keeps it
    (
        "plan -m llama-3-8b -d h100-sxm -t inference --prompt 1000 --output 300 --rate 8 --ttft 300ms --tpot 20ms",
        0,
        ("! tight", "--num-devices 2 --tp 1 --pp 1 ✓", "--num-devices 4 ✓", "not Nothing has to change"),
    ),
    # another job only where the one that was asked for has no way
    (
        "plan -m llama-3-8b -d rtx-4090 -t pretrain --tokens 2T --deadline 60d",
        0,
        ("--num-devices", "not --task qlora", "not --task lora"),
    ),
    (
        "plan -m qwen3-30b-a3b -d rtx-4090 -t qlora",
        0,
        ("Change --engine unsloth !", "Or --engine unsloth --lora-targets attention ✓"),
    ),
    # searches skip what cannot be asked
    ("compare -m gpt2 -m llama-3-8b -d rtx-4090 -t inference --context 4096", 0, ("1 of the rows cannot be asked",)),
    ("solve deadline -m llama-3-8b -d 8xh100-sxm --tokens 100B", 0, ("Answer time", "not infeasible")),
    # several models on one device: one table
    (
        "compare -m llama-3.1-8b -m qwen3-8b -m gemma-3-12b -d rtx-3060 -t inference",
        0,
        ("Model GiB", "✓ qwen3-8b", "not Speed as a multiple"),
    ),
    (
        "estimate -m gemma-3-27b -d rtx-4070ti -t inference",
        0,
        ("larger ones fit with more layers in main memory only",),
    ),
    # nobody said how much memory is beside a processor
    ("estimate -m gemma-3-27b -d 'core i5-8250u' -t inference", 0, ("32 GiB of main memory (--memory)",)),
    # what may not fit as a whole llama.cpp fits by itself, and the screen says so
    (
        "estimate -m llama-3.3-70b -d 2xrtx-3090 -t inference",
        0,
        (
            "✓ feasible",
            "not surely fits",
            "smallest usual format; larger ones fit with some layers in main memory only",
            "llama.cpp then leaves up to",
            "on the host",
        ),
    ),
    ("estimate -m qwen3.6-35b-a3b -d rtx-4090 -t inference", 0, ("✓ feasible", "q4_k_m", "inference, 8 bits ✓")),
    # a way that surely does, of two small changes, before one of much slower steps
    (
        "estimate -m qwen2.5-0.5b -d rtx-3060 -t finetune",
        0,
        ("--engine pytorch-liger --checkpointing full ✓",),
    ),
    # whole experts on each device, where kernels would pad their parts
    ("estimate -m kimi-k3 -d 8xb300 -t inference", 0, ("✗ does not fit", "--ep 8 ✓", "need no padding")),
    ("estimate -m kimi-k3 -d 8xb300 -t inference --ep 8", 0, ("✓ feasible",)),
    # work as people count it
    ("estimate -m gpt2 -d t4 -t lora --examples 5k --epochs 3", 0, ("5 k examples", "x 3 epochs")),
    ("estimate -m gpt2 -d t4 -t inference --prompt 0", 0, ("not first token", "reads prompts at")),
    # what is typed elsewhere
    ("estimate -m gpt2 -d t4 -d rtx-4090", 2, ("--device is given 2 times", "llmfeas compare")),
    ("estimate -m 'gemma 4' -d rtx-4090", 2, ("can mean several models", "gemma-4-12b", "not gemma-3-4b")),
    ("estimate -m ./Meta-Llama.gguf -d rtx-4090", 3, ("./Meta-Llama.gguf: there is no such file",)),
    (
        "estimate -m Qwen3-8B-Q4_K_M.gguf -d rtx-4090 -t inference",
        0,
        ("Qwen3 8B", "q4_k_m", "file of this name is here"),
    ),
    ("estimate -m nothing-Q4_K_M.gguf -d rtx-4090", 3, ("there is no such file",)),
    ("compare -m gpt2 -d rtx-4090 m3-max", 2, ("several names commas: -d rtx-4090,m3-max",)),
    ("estimate -m llama 3 8b -d rtx 4090", 2, ("needs quotes", '-m "llama 3 8b"', '-d "rtx 4090"')),
    ("estimate -m gpt2 --gpu t4 -t inference --users 8 -c 512", 0, ("room for 512 tokens", "8 requests at once")),
    ("estimate -m gpt2 -d 2xt4 -t finetune --fsdp full_shard", 0, ("ZeRO 3",)),
    ("estimate -m gpt2 -d t4 --batch-size 4", 2, ("--micro-batch in training, --concurrency in inference",)),
    ("estimate -m gpt2 -d t4 --gpus 3", 0, ("3 x Tesla T4",)),
    ("estimate -m gpt2 -d t4 --users 3", 0, ("3 requests at once",)),
    ("estimate -m gpt2 -d t4 --learning-rate 1e-4", 2, ("changes neither memory nor time", "not Did you mean")),
    ("estimate -m gpt2 -d t4 --epochs 3", 2, ("--epochs is about --examples or --data-size",)),
    # what nobody asked for, and no one card does, is told in a line; a chat that does not fit says in which format
    (
        "estimate -m llama-3.1-8b -d rtx-4070ti",
        0,
        ("Pre-training ✗", "In full --task with one of these shows its figures", "not To make it work", "not gb200"),
    ),
    ("estimate -m phi-4 -d jetson-orin-nano", 0, ("Chat ✗ does not fit: q4_k_m needs", "not would make it fit")),
    ("estimate -m gemma-2-9b -d kaggle-2xt4", 0, ("would take years", "not free hours")),
    ("estimate -m gemma-2-2b -d kaggle-tpu-v5e-8 -t pretrain", 0, ("weeks of the 20 free hours",)),
    # adapters on a base in 4 bits under the engine that the same screen names where no task is said
    ("estimate -m llama-3.1-8b -d rtx-4070ti -t lora", 0, ("To make it work --engine unsloth --task qlora ✓",)),
    ("plan -m llama-3.1-8b -d rtx-4070ti -t lora", 0, ("Change --engine unsloth --task qlora ✓",)),
    # the main memory that a verdict hangs on
    ("estimate -m qwen3-32b -d rtx-4070ti -t inference", 0, ("32 GiB of main memory in the computer (--host-memory)",)),
    ("estimate -m qwen3-8b -d rtx-4070ti -t inference", 0, ("not (--host-memory)",)),
    # no way shortens the requests that were described
    (
        "estimate -m deepseek-v3 -d 16xh200 -t inference --engine sglang --prompt 4000 --output 1000"
        " --concurrency 512 --disaggregate 8:8",
        0,
        ("To make it work", "--concurrency 128 ✓", "not a shorter context"),
    ),
    # a slip of the hand is no engine; a name that is like none is a plain one
    ("estimate -m llama-3-8b -d h100 -t inference --engine vlllm", 2, ("unknown engine 'vlllm'. Did you mean 'vllm'",)),
    ("estimate -m llama-3-8b -d h100 -t inference --engine myserver", 0, ("taken as a plain one",)),
    ("estimate -m gpt2 -d h100 --tp 3", 2, ("tp 3 needs 3 devices, or a multiple of that, and there is 1.",)),
    (
        "estimate -m gpt2 -d 8xh100 --tp 2 --pp 3",
        2,
        (
            "tp 2 x pp 3 needs 6 devices",
            "there are 8. The product may be 1, 2, 4, 8.",
        ),
    ),
    # what a server computes in no fp16 runs there on a card without bf16 in no way, and people take another program
    ("estimate -m gemma-2-9b -d kaggle-2xt4 -t inference", 0, ("✓ feasible", "llama.cpp")),
    (
        "estimate -m gemma-3-12b -d v100-sxm2-32gb -t inference --engine vllm",
        0,
        ("✗ not supported", "vLLM computes Gemma 3 12B in bf16 or fp32 alone, and Tesla V100 SXM2 32GB has no bf16"),
    ),
    ("estimate -m gemma-3-12b -d a100 -t inference --engine vllm", 0, ("✓ feasible",)),
    ("estimate -m gemma-2-9b -d v100-sxm2-32gb -t inference --engine sglang", 0, ("not bf16 or fp32 alone",)),
    # what limits a device stands behind its name, which is said once
    (
        "compare -m llama-3.1-70b -d 256xtrn2 -d 256xh100-sxm -t pretrain --tokens 1T",
        0,
        (
            "Limits trainium2: compiles models ahead",
            "; through torch-neuronx and optimum-neuron",
            "not optimum-neuron trainium2:",
        ),
    ),
    # what a Mac runs is code of its own
    (
        "estimate -m llama-3.2-1b -d m4-max-40c -t lora",
        0,
        ("runs the engine's own code", "not Training runs the model's"),
    ),
    ("estimate -m llama-3.2-1b -d m4-max-40c -t lora --transformers 4", 0, ("MLX does not run transformers' code",)),
    # what is no command, but something that one does
    ("explain -m gpt2 -d t4", 2, ("Did you mean 'estimate --explain'?",)),
    ("max-model -d 4090", 2, ("Did you mean 'solve max-model'?",)),
    ("serve -m gpt2 -d t4", 2, ("Did you mean 'estimate --task inference'?",)),
    ("gpus", 2, ("Did you mean 'devices'?",)),
    # a part of names is looked for
    ("estimate -m 8B -d rtx-4090", 2, ("unknown model '8B'. See 'llmfeas models search 8b'.",)),
    ("models search 8b", 0, ("llama-3.1-8b",)),
    # a task that is typed as an option
    ("estimate -m gpt2 -d t4 --qlora", 2, ("Here it is --task qlora.",)),
    ("estimate -m gpt2 -d t4 --serve", 2, ("Here it is --task inference.",)),
    # as many devices as the largest machines have, and a layout without what is not divided
    (
        "solve min-devices -m llama-3.1-405b -d h100-sxm -t pretrain --tokens 15.6T --deadline 60d",
        0,
        ("Answer devices", "not none works", "not cp 1"),
    ),
    # no twice as many machines where fewer are in time
    (
        "plan -m llama-3.1-70b -d 64xh100-sxm -t pretrain --tokens 100B --deadline 7d",
        0,
        (
            "Change -d 192xh100-sxm",
            "misses the deadline",
            "megatron instead of pytorch",
            "not 256xh100-sxm",
        ),
    ),
    # one sentence for a file that is not there
    *((f"{command} nowhere.json", 3, ("nowhere.json: there is no such file. Check the path",)) for command in READERS),
    # a list of names is cut, never a name
    ("models show llama-3.1-8b", 0, ("more (--json)",)),
    ("devices show rtx-4070ti", 0, ("techpowerup (memory",)),
)


def said(text: str) -> str:
    return re.sub(r"[ \n\u00a0]+", " ", text)


@pytest.mark.parametrize(("line", "code", "words"), QUESTIONS, ids=[row[0] for row in QUESTIONS])
def test_a_first_question_gets_the_answer_of_an_expert(
    run: Callable[..., Outcome], line: str, code: int, words: tuple[str, ...]
) -> None:
    result = run(*shlex.split(line))
    screen = said(result.out + result.err)
    assert result.code == code, screen
    for word in words:
        absent = word.startswith("not ")
        assert (word.removeprefix("not ") in screen) != absent, f"{word}: {screen}"
