# What makes many commits of TVM quick to build. CMake includes it at the end of `project(tvm)`, by the variable
# CMAKE_PROJECT_tvm_INCLUDE: nothing of TVM is edited.

# TVM would put the commit's version into every compiler's command, and ccache would find nothing of the commit before. The
# Python package still says it; the libraries say what their header does, as when TVM is built by CMake alone.
unset(SKBUILD_PROJECT_VERSION_FULL)
unset(SKBUILD_PROJECT_VERSION_FULL CACHE)

# Those of LLVM are compiled with -fno-rtti: Clang takes no header that was compiled otherwise.
function(skip_sources_with_flags_of_their_own target)
  get_target_property(sources ${target} SOURCES)
  foreach(source ${sources})
    get_source_file_property(flags ${source} COMPILE_FLAGS)
    if(flags)
      set_source_files_properties(${source} PROPERTIES SKIP_PRECOMPILE_HEADERS ON)
    endif()
  endforeach()
endfunction()

function(precompile_headers_of_tvm)
  foreach(target tvm_objs tvm_compiler_objs)
    if(TARGET ${target})
      target_precompile_headers(${target} PRIVATE "$<$<COMPILE_LANGUAGE:CXX>:${PRECOMPILED_HEADER}>")
      # A file with a time in it is another one for each build, and ccache then finds nothing.
      target_compile_options(${target} PRIVATE "SHELL:-Xclang -fno-pch-timestamp")
      skip_sources_with_flags_of_their_own(${target})
    endif()
  endforeach()
endfunction()

# GCC does not instantiate templates in a precompiled header, and that is where the time goes. TVM's targets do not exist
# yet, so they are given the header when CMake has read the whole file.
if(CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
  set(PRECOMPILED_HEADER "${CMAKE_CURRENT_LIST_DIR}/precompiled.h")
  cmake_language(DEFER CALL precompile_headers_of_tvm)
endif()
