"""What an ELF file says about itself, as far as a dynamic linker asks.

What is read is what glibc's loader reads, the program headers and the dynamic segment. Android's reads section headers
as well, of every library (bionic, linker_phdr.cpp: ReadSectionHeaders, ReadDynamicSection).
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

SIZE_LIMIT_BYTES = 1 << 30
SYMBOL_BYTES = 24
_FLAG_TEXTREL = 4
_EXECUTABLE, _WRITABLE = 1, 2


class BadElf(Exception):
    """The file is no ELF file, or not a whole one; the text says what is wrong in words that follow its name."""


@dataclass(frozen=True)
class Elf:
    """One executable or shared library."""

    machine: str
    """Machine as in elf.h: `EM_AARCH64`."""
    bits: int
    kind: str
    """`ET_DYN` for shared libraries and position-independent executables."""
    interpreter: str
    """Path of the dynamic linker that an executable names; empty for libraries."""
    soname: str
    needed: tuple[str, ...]
    """Libraries that the loader brings along (DT_NEEDED)."""
    exported: frozenset[str]
    undefined: frozenset[str]
    """Symbols that others must define; weak ones are not among them."""
    page_bytes: int
    """The largest page size with which every LOAD segment can be mapped."""
    hash_tables: frozenset[str]
    """`DT_HASH`, `DT_GNU_HASH`: by which the loader finds symbols."""
    text_relocations: bool
    writable_code: bool
    section_fault: str
    """Why Android's loader would refuse the section headers, in words that follow "it"; empty if it takes them."""


def read_elf(file: Path) -> Elf:
    """Read an executable or a shared library. Raises `BadElf`, and OSError if it cannot be read at all."""
    with file.open("rb") as stream:
        elf = _open(file, stream)
        try:
            return _read(elf, file.stat().st_size)
        except BadElf:
            raise
        except Exception as error:  # whatever pyelftools trips over in a damaged file
            raise BadElf(f"is damaged ({type(error).__name__} while reading it)") from error


def undefined_in_object(file: Path) -> frozenset[str]:
    """Symbols that a relocatable object (`.o`) expects of others. Raises `BadElf`."""
    with file.open("rb") as stream:
        elf = _open(file, stream)
        try:
            table = elf.get_section_by_name(".symtab")
            symbols = list(table.iter_symbols()) if table else []
        except Exception as error:
            raise BadElf(f"is damaged ({type(error).__name__} while reading it)") from error
    return frozenset(symbol.name for symbol in symbols if symbol.name and _is_undefined(symbol))


def _open(file: Path, stream: Any) -> Any:
    from elftools.elf.elffile import ELFFile

    size = file.stat().st_size
    if size > SIZE_LIMIT_BYTES:
        raise BadElf(f"is larger than {SIZE_LIMIT_BYTES >> 20} MiB")
    if stream.read(4) != b"\x7fELF":
        raise BadElf("is no ELF file")
    stream.seek(0)
    try:
        elf = ELFFile(stream)
        end = elf["e_shoff"] + elf["e_shnum"] * elf["e_shentsize"]
    except Exception as error:
        raise BadElf("is truncated or damaged") from error
    if end > size:
        raise BadElf(f"is truncated: it has {size} bytes of at least {end}")
    return elf


def _read(elf: Any, size: int) -> Elf:
    segments = list(elf.iter_segments())
    loads = [segment for segment in segments if segment["p_type"] == "PT_LOAD"]
    end = max((load["p_offset"] + load["p_filesz"] for load in loads), default=0)
    if end > size:
        raise BadElf(f"is truncated: it has {size} bytes of at least {end}")
    dynamic = next((segment for segment in segments if segment["p_type"] == "PT_DYNAMIC"), None)
    if dynamic is None:
        raise BadElf("is linked statically, or no program or shared library")
    tags = list(dynamic.iter_tags())
    symbols = _symbols(dynamic, {tag.entry.d_tag for tag in tags}, size)
    return Elf(
        machine=str(elf["e_machine"]),
        bits=elf.elfclass,
        kind=str(elf["e_type"]),
        interpreter=next((s.get_interp_name() for s in segments if s["p_type"] == "PT_INTERP"), ""),
        soname=next((tag.soname for tag in tags if tag.entry.d_tag == "DT_SONAME"), ""),
        needed=tuple(tag.needed for tag in tags if tag.entry.d_tag == "DT_NEEDED"),
        exported=frozenset(symbol.name for symbol in symbols if _is_exported(symbol)),
        undefined=frozenset(symbol.name for symbol in symbols if _is_undefined(symbol)),
        page_bytes=min((_page_bytes(load) for load in loads), default=0),
        hash_tables=frozenset(tag.entry.d_tag for tag in tags) & {"DT_HASH", "DT_GNU_HASH"},
        text_relocations=any(
            tag.entry.d_tag == "DT_TEXTREL" or (tag.entry.d_tag == "DT_FLAGS" and tag.entry.d_val & _FLAG_TEXTREL)
            for tag in tags
        ),
        writable_code=any(load["p_flags"] & _EXECUTABLE and load["p_flags"] & _WRITABLE for load in loads),
        section_fault=_section_fault(elf, dynamic),
    )


def _section_fault(elf: Any, dynamic: Any) -> str:
    if elf["e_shnum"] == 0:
        return "has no section headers"
    if elf["e_shstrndx"] == 0:
        return "names no section with the names of its sections"
    headers = [section.header for section in elf.iter_sections()]
    section = next((header for header in headers if header["sh_type"] == "SHT_DYNAMIC"), None)
    if section is None:
        return "has no section header of its dynamic section"
    if (section["sh_offset"], section["sh_size"]) != (dynamic["p_offset"], dynamic["p_filesz"]):
        return "has a section header of its dynamic section that is not where its program header says"
    linked = section["sh_link"]
    if linked >= len(headers) or headers[linked]["sh_type"] != "SHT_STRTAB":
        return "has a dynamic section that names no section of strings"
    return ""


def _symbols(dynamic: Any, tags: set[str], size: int) -> list[Any]:
    """Return the dynamic symbol table. Only the hash tables tell its length, so they are not believed blindly."""
    if "DT_SYMTAB" not in tags or not tags & {"DT_HASH", "DT_GNU_HASH"}:
        return []
    count = dynamic.num_symbols()
    if count * SYMBOL_BYTES > size:
        raise BadElf(f"is damaged: it claims {count} symbols")
    return [dynamic.get_symbol(index) for index in range(1, count)]


def _is_exported(symbol: Any) -> bool:
    return bool(symbol["st_shndx"] != "SHN_UNDEF" and symbol["st_info"]["bind"] != "STB_LOCAL")


def _is_undefined(symbol: Any) -> bool:
    return bool(symbol["st_shndx"] == "SHN_UNDEF" and symbol["st_info"]["bind"] == "STB_GLOBAL")


def _page_bytes(load: Any) -> int:
    """Return the largest page size that its segments can be mapped with.

    Their place in the file and in memory must agree modulo that size.
    """
    alignment = max(int(load["p_align"]), 1)
    while alignment > 1 and (load["p_vaddr"] - load["p_offset"]) % alignment:
        alignment //= 2
    return alignment
