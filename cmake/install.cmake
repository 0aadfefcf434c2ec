# What an installation has. The stage is an installation, so what is tested is what is installed.
include(CMakePackageConfigHelpers)

install(TARGETS khub khub-model EXPORT khub LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(TARGETS khub-cli DESTINATION ${CMAKE_INSTALL_BINDIR})
if(TARGET khub-probe)
    install(TARGETS khub-probe DESTINATION ${CMAKE_INSTALL_LIBEXECDIR}/khub)
endif()
install(DIRECTORY include/khub DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} FILES_MATCHING PATTERN "*.h")
install(FILES LICENSE README.md DESTINATION ${CMAKE_INSTALL_DOCDIR})

# The tvm-ffi runtime beside libkhub; its file name carries the version, so that nothing has to be opened to know it.
if(KHUB_TVM_FFI)
    file(READ "${KHUB_TVM_FFI}/include/tvm/ffi/c_api.h" api)
    foreach(part MAJOR MINOR PATCH)
        string(REGEX MATCH "define TVM_FFI_VERSION_${part} ([0-9]+)" _ "${api}")
        set(tvm_ffi_${part} ${CMAKE_MATCH_1})
    endforeach()
    set(versioned libtvm_ffi.so.${tvm_ffi_MAJOR}.${tvm_ffi_MINOR}.${tvm_ffi_PATCH})
    install(PROGRAMS "${KHUB_TVM_FFI}/lib/libtvm_ffi.so" DESTINATION ${CMAKE_INSTALL_LIBDIR} RENAME ${versioned})
    install(CODE "file(CREATE_LINK ${versioned} \"\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/${CMAKE_INSTALL_LIBDIR}/libtvm_ffi.so\" SYMBOLIC)")
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

# Every build ends with the stage.
add_custom_target(stage ALL
    COMMAND ${CMAKE_COMMAND} -DCMAKE_INSTALL_PREFIX=${KHUB_STAGE} -DCMAKE_INSTALL_MESSAGE=NEVER
            -P ${CMAKE_BINARY_DIR}/cmake_install.cmake
    COMMENT "Staging into ${KHUB_STAGE}")
add_dependencies(stage khub khub-model khub-cli)
if(TARGET khub-probe)
    add_dependencies(stage khub-probe)
endif()
if(TARGET kernels)
    add_dependencies(stage kernels)
endif()
