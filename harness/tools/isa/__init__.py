"""Adreno machine code without a phone, by Mesa's open compiler (docs/explanation/isa.md)."""

from harness.base.tool import CacheKind, Command, Tool

TOOL = Tool(
    "isa",
    commands=(
        Command(
            "isa",
            "Count the Adreno machine code of the kernels, without a phone.",
            "Explain",
            "harness.tools.isa.command:isa",
        ),
    ),
    record_parts={"isa": "harness.tools.isa.code:CaseCode"},
    page_sections={"history": "harness.tools.isa.history:section"},
    cache_kinds=(
        CacheKind("isa_toolchains", "Mesa's compiler for Adreno GPUs, unpacked"),
        CacheKind("isa_program", "program that passes kernels to Mesa's compiler"),
        CacheKind("isa_kernels", "machine code from Mesa's compiler"),
    ),
    doctor_checks={"open compiler": "harness.tools.isa.toolchain:check"},
)
