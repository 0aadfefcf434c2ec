# How all C of this project is compiled.
set(CMAKE_C_STANDARD 11)
set(CMAKE_C_STANDARD_REQUIRED ON)
set(CMAKE_C_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
if(NOT CMAKE_BUILD_TYPE)
    set(CMAKE_BUILD_TYPE Release)
endif()

add_compile_definitions(_GNU_SOURCE)
# No product is fused into a sum unless the source says fma: results don't depend on the compiler's mood.
add_compile_options(-Wall -Wextra -pedantic -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wvla
                    -Wno-missing-field-initializers -ffp-contract=off)
option(KHUB_WERROR "Warnings are errors" OFF)
if(KHUB_WERROR)
    add_compile_options(-Werror)
endif()
if(KHUB_SANITIZE)
    add_compile_options(-fsanitize=${KHUB_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer)
    add_link_options(-fsanitize=${KHUB_SANITIZE})
    # What the sanitizers know of each place in the source are addresses, 100,000 in the command: where a program isn't moved, no start fills
    # them in. A test starts thousands.
    if(NOT KHUB_SANITIZE STREQUAL "thread") # of which few are started
        add_link_options($<$<STREQUAL:$<TARGET_PROPERTY:TYPE>,EXECUTABLE>:-no-pie>)
    endif()
    # The interceptor of __tls_get_addr is off: when a block of thread-local storage starts 16 bytes into a page, it takes the
    # allocator's words before it for an older glibc's header, and the leak check then reads from a wild address.
    # Libraries that aren't ours (libcurl, libcrypto, libtvm_ffi) weren't compiled for the thread sanitizer: it sees the C library's
    # functions that they call, and not by which atomics they keep their threads apart, so what they touch doesn't count. What
    # our code touches does, in their callbacks too.
    # Their runtime stands between C++ and its exceptions, and finds C++'s library only when the program starts with it: so does one that
    # opens libtorch.
    set(KHUB_SANITIZER_CXX -Wl,--push-state,--no-as-needed -lstdc++ -Wl,--pop-state)
    set(KHUB_SANITIZER_ENVIRONMENT ASAN_OPTIONS=detect_leaks=1:allocator_may_return_null=1:intercept_tls_get_addr=0
        UBSAN_OPTIONS=print_stacktrace=1 TSAN_OPTIONS=ignore_noninstrumented_modules=1:second_deadlock_stack=1)
else()
    add_link_options(-Wl,-z,relro,-z,now)
endif()
