# The tests of a build for another processor, under its emulator (./dev test --aarch64): all unit tests, and kernels' bits against those of
# this machine's build, KHUB_NATIVE. Those labelled `quick` are part of ./dev test; the target `quick` is what they need.

# What the emulator can't do, or isn't what it says it is.
set(without_cache_system files_where_links_are_refused a_disk_that_is_full_when_the_file_is_closed) # no seccomp
set(without_swap where_nobody_can_know)                                                             # no seccomp
set(without_incremental the_first_call_opens_nothing)                                               # no seccomp
set(without_kernel_load F5_a_host_that_exports_the_names)         # starts a program of the other processor
set(without_platform_accelerators drivers_that_do_not_work        # the time limit is too short for an emulated start
    probe_is_missing)                                             # a program that isn't there seems to start, and to end
set(without_platform_libraries cache_of_this_machine)             # /etc/ld.so.cache lists another processor's libraries
set(without_platform_machine features_as_linux_sees_them)         # /proc/cpuinfo describes another processor

# Not those that wait for processes: beside many others an emulated one may start too late.
set(quick kernels_arguments kernels_isa kernels_rotary layout platform platform_libraries platform_machine tensor value variant
    variant_repository)

# What is staged, with the helper process started through the emulator.
set(prefix ${CMAKE_BINARY_DIR}/emulated)
file(MAKE_DIRECTORY ${prefix}/libexec/khub)
foreach(folder bin lib share)
    file(CREATE_LINK ${KHUB_STAGE}/${folder} ${prefix}/${folder} SYMBOLIC)
endforeach()
list(JOIN CMAKE_CROSSCOMPILING_EMULATOR " " emulator)
file(WRITE ${prefix}/libexec/khub/khub-probe "#!/bin/sh\nexec ${emulator} ${KHUB_STAGE}/libexec/khub/khub-probe \"$@\"\n")
file(CHMOD ${prefix}/libexec/khub/khub-probe PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE)

add_custom_target(quick DEPENDS stage oracle_bits)
foreach(source ${unit_sources})
    get_filename_component(name ${source} NAME_WE)
    string(REGEX REPLACE "^test_" "" name ${name})
    list(JOIN without_${name} "," without)
    # Check's own time limits are those of a processor.
    set_property(TEST unit.${name} APPEND PROPERTY ENVIRONMENT KHUB_PREFIX=${prefix} KHUB_STAGE=${prefix} KHUB_WITHOUT=${without} CK_TIMEOUT_MULTIPLIER=10)
    set_property(TEST unit.${name} PROPERTY TIMEOUT 1200)
    if(name IN_LIST quick)
        add_dependencies(quick unit_${name})
        set_property(TEST unit.${name} PROPERTY LABELS quick)
    endif()
endforeach()

cmake_path(GET KHUB_PACK PARENT_PATH native_bin)
cmake_path(GET native_bin PARENT_PATH native_stage)
add_test(NAME emulated.bits COMMAND ${KHUB_PYTHON} -m pytest -q -p no:cacheprovider ${CMAKE_CURRENT_SOURCE_DIR}/emulated/test_bits.py)
set_tests_properties(emulated.bits PROPERTIES LABELS quick COST 100 TIMEOUT 1200
    ENVIRONMENT "${environment};KHUB_EMULATOR=${emulator};KHUB_NATIVE=${KHUB_NATIVE};KHUB_NATIVE_STAGE=${native_stage}")
