# What an installation has. The stage is an installation, so what is tested is what is installed.
include(CMakePackageConfigHelpers)
set(CMAKE_INSTALL_MESSAGE LAZY)

install(TARGETS khub khub-model EXPORT khub LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(TARGETS khub-cli DESTINATION ${CMAKE_INSTALL_BINDIR})
install(TARGETS khub-probe khub-serve khub-cli-model DESTINATION ${CMAKE_INSTALL_LIBEXECDIR}/khub)
install(TARGETS khub-torch LIBRARY DESTINATION ${CMAKE_INSTALL_LIBEXECDIR}/khub/torch)
install(DIRECTORY include/khub DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} FILES_MATCHING PATTERN "*.h")
# Messages name docs/…: that is here, with everything the pages link to.
install(FILES LICENSE README.md CONTRIBUTING.md DESTINATION ${CMAKE_INSTALL_DOCDIR})
install(DIRECTORY docs examples DESTINATION ${CMAKE_INSTALL_DOCDIR} PATTERN CMakeLists.txt EXCLUDE
        PATTERN demo.sh EXCLUDE PATTERN __pycache__ EXCLUDE)

# The tvm-ffi runtime beside libkhub; its file name carries the version, so that nothing has to be opened to know it.
if(KHUB_TVM_FFI)
    set(versioned libtvm_ffi.so.${tvm_ffi_version})
    install(PROGRAMS "${KHUB_TVM_FFI}/lib/libtvm_ffi.so" DESTINATION ${CMAKE_INSTALL_LIBDIR} RENAME ${versioned})
    install(CODE "file(CREATE_LINK ${versioned} \"\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/${CMAKE_INSTALL_LIBDIR}/libtvm_ffi.so\" SYMBOLIC)")
endif()

# Well-known machines, for --platform and khub matrix.
install(DIRECTORY platforms DESTINATION ${CMAKE_INSTALL_DATADIR}/khub FILES_MATCHING PATTERN "*.json")

# Whom signatures of kernels are judged by.
if(EXISTS "${KHUB_TRUSTED_ROOT}")
    install(FILES "${KHUB_TRUSTED_ROOT}" DESTINATION ${CMAKE_INSTALL_DATADIR}/khub)
else()
    message(WARNING "There is no ${KHUB_TRUSTED_ROOT}: signatures can be judged with a trusted root of one's own only")
endif()

foreach(name khub khub-model)
    configure_file(cmake/${name}.pc.in ${name}.pc @ONLY)
    install(FILES ${CMAKE_CURRENT_BINARY_DIR}/${name}.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
endforeach()
install(EXPORT khub NAMESPACE khub:: DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/khub)
configure_package_config_file(cmake/khub-config.cmake.in khub-config.cmake
    INSTALL_DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/khub)
write_basic_package_version_file(khub-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/khub-config.cmake ${CMAKE_CURRENT_BINARY_DIR}/khub-config-version.cmake
        DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/khub)

# Every build ends with the stage. It is made anew when something that is installed has changed.
get_property(packed GLOBAL PROPERTY khub_packed)
file(GLOB_RECURSE installed CONFIGURE_DEPENDS include/khub/*.h docs/*.md examples/* platforms/*.json)
set(staged ${KHUB_STAGE}/bin/khub)
add_custom_command(OUTPUT ${staged}
    COMMAND ${CMAKE_COMMAND} -DCMAKE_INSTALL_PREFIX=${KHUB_STAGE} -P ${CMAKE_BINARY_DIR}/cmake_install.cmake
    COMMAND ${CMAKE_COMMAND} -E touch ${staged}
    DEPENDS khub khub-model khub-cli khub-cli-model khub-probe khub-serve khub-torch ${packed} ${installed} LICENSE README.md CONTRIBUTING.md
            ${CMAKE_BINARY_DIR}/cmake_install.cmake
    COMMENT "Staging into ${KHUB_STAGE}" VERBATIM)
add_custom_target(stage ALL DEPENDS ${staged})
