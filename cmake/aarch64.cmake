# A build for AArch64 Linux on another machine: Debian's compiler, and a root of its libraries (./dev fills .deps/arm64-root). What is
# built for it runs under qemu.
set(KHUB_ROOT ${CMAKE_CURRENT_LIST_DIR}/../.deps/arm64-root CACHE PATH "Where headers and libraries for AArch64 are")
list(APPEND CMAKE_TRY_COMPILE_PLATFORM_VARIABLES KHUB_ROOT)
get_filename_component(root ${KHUB_ROOT} ABSOLUTE)

set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_C_COMPILER aarch64-linux-gnu-gcc)
set(CMAKE_CXX_COMPILER NOTFOUND) # none is needed, and the one of this machine is none
set(CMAKE_SYSROOT ${root})
set(CMAKE_CROSSCOMPILING_EMULATOR qemu-aarch64;-L;${root})
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(ENV{PKG_CONFIG_SYSROOT_DIR} ${root})
set(ENV{PKG_CONFIG_LIBDIR} ${root}/usr/lib/aarch64-linux-gnu/pkgconfig:${root}/usr/share/pkgconfig)
