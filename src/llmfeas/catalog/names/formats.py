"""What people call formats of weights, in names of models and files and by themselves."""

from __future__ import annotations

import functools
import re
from typing import Final

_SPELLINGS: Final[tuple[tuple[str, str], ...]] = (
    (r"q\d_\d-unquantized", "none"),
    (r"ud-(q\d)_k_xl", r"ud-\1_k_xl"),
    (r"ud-(iq\d)_(xxs|s|m|xs)", r"\1_\2"),
    (r"d?i?q\d_k(?:s|ss|l|t)?_r\d|i?q\d_k(?:s|ss|l|t)", "ik"),
    (r"(q[345])_k(?!_)", r"\1_k_m"),
    (r"(q\d)k([sml])", r"\1_k_\2"),
    (r"(?:ud-)?(i?q\d(?:_\d|_k|_nl|_xxs|_xs|_s|_m|_l)(?:_(?:xl|s|m|l))?|tq[12]_0)", r"\1"),
    (r"aqlm(?:-pv)?-(\d)bit-(\d+x\d+)(?:-hf)?", r"aqlm-\1bit-\2"),
    (r"aqlm(?:-pv)?(?:-2bit)?(?:-hf)?", "aqlm-2bit-1x16"),
    (r"([12348])-?bit(?:gs64)?[-_]hqq(?:_calib|[+])?|hqq-([12348])-?bit", r"hqq-\1\2bit"),
    (r"hqq(?:_calib|[+])?", "hqq-4bit"),
    (r"\dbitgs\d+[-_]hqq(?:_calib|[+])?|attn-\dbit-moe-\dbit(?:-metaoffload)?-hqq", "hqq"),
    (r"(?:bitnet-)?1\.58-?bits?", "bitnet"),
    (r"(?:torchao-|ao-)?int4wo(?:-(?:gs)?128)?(?:-hqq)?|(?:torchao|ao)-int4(?:-gs128)?", "torchao-int4"),
    (r"(?:torchao-|ao-)?int8wo", "w8a8-int8"),
    (r"(?:torchao-|ao-)?float8(?:dq|wo)", "fp8"),
    (r"int8-int4|8da4w|(?:spinquant|qlora)_int4_eo8", "8da4w"),
    (r"w4afp8", "w4afp8"),
    (
        r"(?:mlx-)?(?:mixed[_-]\d(?:[_-]\d)*(?:bit)?|\d\.\d+bit-mixed)|(?:mlx-|\dbit-m-)?dq\d?(?:plus|_k_m)?",
        "mlx-mixed",
    ),
    (r"jang(?:tq\d?|_\d[a-z])?", "jang"),
    (r"oq(\d)e?", r"mlx-\1bit"),
    (r"mlx-(mxfp[48]|nvfp4)", r"mlx-\1"),
    (r"nvfp4a16", "nvfp4a16"),
    (r"(?:nv)?fp4", "nvfp4"),
    (r"w?mxfp4(?:-q8|[-_]moe)?(?:-?amxfp4|-?a(?:16|8))?(?:-preview)?", "mxfp4"),
    (r"mxfp8", "mxfp8"),
    (r"(?:unsloth-)?bnb-4bit|nf4", "nf4"),
    (r"bnb-8bit", "int8"),
    (r"(?:quantized.)?w8a8(?:-int8)?", "w8a8-int8"),
    (r"gptq-(?:int8|8bit)|awq-(?:8bit|bf16-int8)|(?:quantized.)?w8a16", "gptq-int8"),
    (r"(?:auto)?awq(?:-int4|-4bit)?|(?:int4|4bit)-awq", "awq-int4"),
    (r"int([48])-ov", r"openvino-int\1"),
    (r"(?:int4-)?auto-?round|int4-a?sym-inc", "autoround-int4"),
    (r"q(\d)f(?:16|32)_\d(?:-mlc)?", r"mlc-\1bit"),
    (r"gptq(?:-int4|-4bit|-4b)?(?:-128g)?", "gptq-int4"),
    (r"(?:quantized.)?w4a(?:16|8)", "w4a16"),
    (r"fp8(?:-(?:dynamic|static|block|pertensor|static-pertensor|kv))*", "fp8"),
    (r"(?:mlx-)?(\d)bit-(?:gs|g)(32|16)", r"mlx-\1bit-g\2"),
    (r"(?:mlx-)?(\d)bit(?:-mlx)?(?:-dwq)?(?:-v\d)?", r"mlx-\1bit"),
    (r"exl([23])[-_ ](\d)bpw", r"exl\1-\2.0bpw"),
    (r"exl3[-_ ](\d\.\d+)bpw(?:-h\d)?|(\d\.\d+)bpw(?:-h\d)?[-_]exl3", r"exl3-\1\2bpw"),
    (r"(\d\.\d+)bpw(?:-h\d)?(?:-exl2)?|exl2[-_ ](\d\.\d+)bpw(?:-h\d)?", r"exl2-\1\2bpw"),
    (r"exl([23])", r"exl\1-4.0bpw"),
    (r"q([26])(?!-\d+b)", r"q\1_k"),  # `Q3-30B` is Qwen3
    (r"q([35])(?!-\d+b)", r"q\1_k_m"),
    (r"int4|q4", "int4"),
    (r"int8|q8", "int8"),
    (r"bf16|fp16|f16|fp32|f32", "none"),
)
"""How formats are written, and their ids in data/quantization.yaml; the first that is found counts."""
_EACH: Final = "|".join(f"(?P<f{place}>{pattern})" for place, (pattern, _) in enumerate(_SPELLINGS))
_ANY: Final = re.compile(f"(?<![a-z0-9])(?:{_EACH})(?![a-z0-9])")
_FURTHER: Final = re.compile(
    r"(?<![a-z0-9])(?:nvfp4|mxfp4|attnfp8|fp8(?:ple)?|plefp8|w4a(?:16|4)|fp16|bf16|[48]bit|q8|int8(?:mix)?|gs?(?:32|64|128)|gb10|kvfp8|scale-uint8|ptpc|a?sq|smashed|mlx-vlm)(?![a-z0-9])"
)
"""What names say beside a format: of other tensors, of the same once more, of the machine that it was made for."""
_VAGUE: Final = ("none", "int4", "int8")
"""What a name may leave open, and `--quant` may not: `int4` is what its engine calls 4 bits."""
_OPEN: Final = frozenset({"fp4"})
"""What names of models settle, and `--quant` does not: it is NVFP4 there, and may be any format of that width here."""
_AGAIN: Final = re.compile(r"-v\d(?![a-z0-9.])")
"""Behind a format, which of its uploads it is: `NVFP4-v2`."""
_PARTED: Final = re.compile(r"(?<=[qk\d])-(?=(?:\d|k|k-[sml]|[sml]|xl|xs|xxs|nl)(?![a-z0-9]))")


@functools.lru_cache(maxsize=8192)
def without_format(name: str) -> tuple[str, str]:
    """A name in lower case without the format that it says, and the id of that; the id is empty where it says none."""
    spelled = _PARTED.sub("_", re.sub(r"[\s:]+", "-", name))
    found = _ANY.search(spelled)
    if found is None:
        return name, ""
    index = next(i for i in range(len(_SPELLINGS)) if found[f"f{i}"] is not None)
    pattern, wanted = _SPELLINGS[index]
    match = re.fullmatch(pattern, found[0])
    assert match is not None
    before = spelled[: found.start()].removesuffix("mlx-vlm-")
    rest = f"{before} {_FURTHER.sub(' ', _AGAIN.sub(' ', spelled[found.end() :], 1))}"
    return rest, match.expand(wanted)


def format_named(text: str) -> str:
    """The id of the format that a text means; empty where it says anything else too."""
    rest, wanted = without_format(text[:60].lower().strip())
    return "" if rest.strip(" -_") or wanted in _VAGUE or text.strip().lower() in _OPEN else wanted
