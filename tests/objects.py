"""Small libraries for macOS and Windows, and GPU code, made byte by byte: no linker for them is at hand where the tests run.
`python objects.py FOLDER` writes the seeds of the fuzz targets."""
import pathlib
import struct
import subprocess
import sys
import tempfile

CPUS = {"x86_64": 0x01000007, "aarch64": 0x0100000C}


def text_command(command, text, before=b""):
    """A load command that ends with a text: a library's name, a path."""
    size = 12 + len(before) + len(text) + 1
    size += -size % 8
    return struct.pack("<III", command, size, 12 + len(before)) + before + text.encode() + bytes(size - 12 - len(before) - len(text))


def macho(arch="aarch64", kind=6, needed=("/usr/lib/libSystem.B.dylib",), name=None, paths=(), minos="14.0", old_minos=None, undefined=(), defined=(),
          constructors=0, signed=True, flags=0x85):
    """`undefined`: names, or (name, library's number from 1)."""
    version = [int(x) for x in minos.split(".")] if minos else None
    commands = [text_command(0xC, n, bytes(12)) for n in needed] + [text_command(0x8000001C, p) for p in paths]
    if name:
        commands.append(text_command(0xD, name, bytes(12)))
    if version:
        commands.append(struct.pack("<6I", 0x32, 24, 1, version[0] << 16 | version[1] << 8, 0, 0))
    if old_minos:
        major, minor = map(int, old_minos.split("."))
        commands.append(struct.pack("<4I", 0x24, 16, major << 16 | minor << 8, 0))
    if constructors:
        section = struct.pack("<16s16sQQ8I", b"__mod_init_func", b"__DATA", 0, constructors * 8, 0, 0, 0, 0, 9, 0, 0, 0)
        commands.append(struct.pack("<II16sQQQQIIII", 0x19, 72 + 80, b"__DATA", 0, 0, 0, 0, 3, 3, 1, 0) + section)
    if signed:
        commands.append(struct.pack("<4I", 0x1D, 16, 0, 0))
    strings, symbols = b"\0", b""
    for entry in [*undefined, *((d, None) for d in defined)]:
        symbol, library = entry if isinstance(entry, tuple) else (entry, 254)
        symbols += struct.pack("<IBBHQ", len(strings), 0x01 if library is not None else 0x0F, 0, (library or 0) << 8, 0 if library is not None else 64)
        strings += b"_" + symbol.encode() + b"\0"
    at = 32 + sum(map(len, commands)) + 24
    commands.append(struct.pack("<6I", 0x2, 24, at, len(symbols) // 16, at + len(symbols), len(strings)))
    body = b"".join(commands)
    return struct.pack("<8I", 0xFEEDFACF, CPUS[arch], 0, kind, len(commands), len(body), flags, 0) + body + symbols + strings


def universal(*parts):
    at, header, body = 8 + 20 * len(parts), b"", b""
    for part in parts:
        header += struct.pack(">5I", struct.unpack_from("<I", part, 4)[0], 0, at + len(body), len(part), 3)
        body += part
    return struct.pack(">II", 0xCAFEBABE, len(parts)) + header + body


def pe(arch="x86_64", imports=None, delayed=None, exports=(), flags=0x140, section_flags=0xC0000040, kind=0x2022, name="k.dll"):
    """`imports`: {library: [names]}. One section, which has everything, at address 0x1000 and offset 0x200."""
    data, base = bytearray(), 0x1000

    def put(content):
        at = base + len(data)
        data.extend(content)
        data.extend(bytes(-len(data) % 8))
        return at

    def thunks(names):
        return put(b"".join(struct.pack("<Q", put(b"\0\0" + n.encode() + b"\0")) for n in names) + struct.pack("<Q", 1 << 63 | 7) + bytes(8))

    ready = [(put(library.encode() + b"\0"), thunks(names)) for library, names in (imports or {}).items()]
    import_at = put(b"".join(struct.pack("<5I", t, 0, 0, n, t) for n, t in ready) + bytes(20)) if ready else 0
    ready = [(put(library.encode() + b"\0"), thunks(names)) for library, names in (delayed or {}).items()]
    delayed_at = put(b"".join(struct.pack("<8I", 1, n, 0, t, t, 0, 0, 0) for n, t in ready) + bytes(32)) if ready else 0
    names = put(b"".join(struct.pack("<I", put(e.encode() + b"\0")) for e in exports) + bytes(4))
    export_at = put(struct.pack("<IIHHIIIIIII", 0, 0, 0, 0, put(name.encode() + b"\0"), 1, len(exports), len(exports), 0, names, 0)) if exports else 0
    directories = [0] * 32
    directories[0], directories[2], directories[26] = export_at, import_at, delayed_at
    optional = bytearray(112 + 128)
    struct.pack_into("<H", optional, 0, 0x20B)
    struct.pack_into("<H", optional, 70, flags)
    struct.pack_into("<I", optional, 108, 16)
    struct.pack_into("<32I", optional, 112, *directories)
    machine = {"x86_64": 0x8664, "aarch64": 0xAA64}[arch]
    head = b"MZ" + bytes(0x3A) + struct.pack("<I", 0x40) + b"PE\0\0" + struct.pack("<HHIIIHH", machine, 1, 0, 0, 0, len(optional), kind) + optional
    head += struct.pack("<8sIIIIIIHHI", b".rdata", len(data), base, len(data), 0x200, 0, 0, 0, 0, section_flags)
    return head + bytes(0x200 - len(head)) + data


def fat_entry(arch, ptx=False, suffix="", payload=b"\x7fELF....", extra=0):
    flags = 0x11 | {"": 0, "a": 0x100000, "f": 0x200000}[suffix]
    header = struct.pack("<HHIQIIHHIIIQQQ", 1 if ptx else 2, 0x101, 64 + extra, len(payload), 0, 0, 0, 9, arch, 0, 0, flags, 0, 0)
    return header + bytes(extra) + payload


def fat_binary(*entries):
    body = b"".join(entries)
    return struct.pack("<IHHQ", 0xBA55ED50, 1, 16, len(body)) + body


def hip_bundle(*targets):
    names = ["host-x86_64-unknown-linux--", *(f"hipv4-amdgcn-amd-amdhsa--{t}" for t in targets)]
    return b"__CLANG_OFFLOAD_BUNDLE__" + struct.pack("<Q", len(names)) + b"".join(struct.pack("<QQQ", 4096, 0, len(n)) + n.encode() for n in names)


def section(name, content):
    """Assembler text for bytes in a section of their own."""
    return f'.section {name},"a",@progbits\n.balign 8\n' + "".join(f".byte {','.join(map(str, content[i:i + 64]))}\n" for i in range(0, len(content), 64))


def elf(path, text, *options):
    """A shared library without any code but that of `text`, an assembler's."""
    with tempfile.TemporaryDirectory() as folder:
        source = pathlib.Path(folder, "x.s")
        source.write_text(text + '\n.section .note.GNU-stack,"",@progbits\n')
        subprocess.run(["gcc", "-shared", "-nostdlib", "-Wl,--build-id=none", source, *options, "-o", path], check=True)
    return path


def symbols(names):
    return ".data\n" + "".join(f".quad {n}\n" for n in names)


def elf_seed():
    with tempfile.TemporaryDirectory() as folder:
        stub = elf(pathlib.Path(folder, "libc.so.6"), ".globl memcpy,puts\nmemcpy: puts: .byte 0\n", f"-Wl,--version-script={versions(folder)},-soname,libc.so.6")
        text = (symbols(["memcpy", "puts", "cudaMalloc", "PyErr_Occurred"]) + ".globl __tvm_ffi_f\n__tvm_ffi_f: .quad 0\n" + section(".nv_fatbin", fat_binary(fat_entry(90), fat_entry(80, ptx=True)))
                + section(".hip_fatbin", hip_bundle("gfx90a:xnack+")) + '.section .init_array,"aw"\n.quad __tvm_ffi_f\n')
        library = elf(pathlib.Path(folder, "k.so"), text, stub, "-Wl,-s,-z,noseparate-code,-z,max-page-size=64,-rpath,$ORIGIN:/opt/x,-soname,k.so")
        return library.read_bytes()


def versions(folder):
    path = pathlib.Path(folder, "versions")
    path.write_text("GLIBC_2.2.5 { global: puts; };\nGLIBC_2.14 { global: memcpy; };\n")
    return path


def loader_cache(*paths):
    """An ld.so.cache in glibc's newer form: a header of 48 bytes, entries of 24, texts. 0x303: a library of glibc 2 for x86-64."""
    entries, texts, at = b"", b"", 48 + 24 * len(paths)
    for path in paths:
        name = path.rpartition("/")[2]
        entries += struct.pack("<iIIIQ", 0x303, at + len(texts), at + len(texts) + len(name) + 1, 0, 0)
        texts += name.encode() + b"\0" + path.encode() + b"\0"
    return b"glibc-ld.so.cache1.1" + struct.pack("<II", len(paths), len(texts)) + bytes(20) + entries + texts


SEEDS = {
    "elf/library": elf_seed,
    "loader/library": elf_seed,
    "loader/cache": lambda: loader_cache("/lib/libm.so.6", "/lib/libc.so.6"),
    "macho/library": lambda: macho(needed=("/usr/lib/libSystem.B.dylib", "@rpath/libtorch.dylib"), name="@rpath/k.dylib", paths=("@loader_path", "/opt/x"), constructors=2,
                                   undefined=(("puts", 1), "PyErr_SetString", "aoti_torch_get_dim"), defined=("__tvm_ffi_f", "g")),
    "macho/universal": lambda: universal(macho("x86_64", minos=None, old_minos="10.15"), macho()),
    "pe/library": lambda: pe(imports={"KERNEL32.dll": ["Sleep"], "python3.dll": ["Py_IncRef"]}, delayed={"c10.dll": ["x"]}, exports=("__tvm_ffi_f", "g")),
    "gpu/cuda": lambda: fat_binary(fat_entry(90), fat_entry(100, suffix="f", extra=16), fat_entry(80, ptx=True)) + fat_binary(fat_entry(120, suffix="a")),
    "gpu/hip": lambda: hip_bundle("gfx90a:xnack+", "gfx1100"),
}

if __name__ == "__main__":
    for name, make in SEEDS.items():
        path = pathlib.Path(sys.argv[1], name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(make())
