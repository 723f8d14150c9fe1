# rill_add_kernels(TARGET source.kernel.cu ...
#                  [TARGETS cuda:sm_90,ptx hip:gfx90a cpu]   # default: every target whose compiler is found
#                  [PREFIX mine_]                            # prefix of every generated name
#                  [INCLUDE_DIRECTORIES directory ...] [DEFINITIONS NAME[=VALUE] ...]
#                  [HEADERS types.h ...]                     # C headers that declare the types of kernel parameters
#                  [OPTIONS option ...])                     # other options of rillcc
#
# Compiles kernel sources with rillcc into the target, and links the target with rill.  The target's own sources can include
# "saxpy.rill.h".  A kernel source is compiled again when it, a file that it includes, or rillcc changes.
function(rill_add_kernels target)
  if(CMAKE_VERSION VERSION_LESS 3.20)
    message(FATAL_ERROR "rill_add_kernels needs CMake 3.20 or later; this is ${CMAKE_VERSION}")
  endif()
  if(NOT TARGET ${target})
    message(FATAL_ERROR "rill_add_kernels: there is no target ${target}")
  endif()
  get_property(languages GLOBAL PROPERTY ENABLED_LANGUAGES)
  if(NOT C IN_LIST languages)
    message(FATAL_ERROR "rill_add_kernels: rillcc writes C; add it to the languages of the project")
  endif()
  cmake_policy(SET CMP0116 NEW) # paths in dependency files

  set(lists TARGETS INCLUDE_DIRECTORIES DEFINITIONS HEADERS OPTIONS)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "PREFIX" "${lists}")
  if(NOT arg_UNPARSED_ARGUMENTS OR arg_KEYWORDS_MISSING_VALUES)
    message(FATAL_ERROR "rill_add_kernels: no source, or nothing after ${arg_KEYWORDS_MISSING_VALUES}")
  endif()
  set(options ${arg_OPTIONS})
  foreach(item IN LISTS arg_TARGETS)
    list(APPEND options --target "${item}")
  endforeach()
  foreach(item IN LISTS arg_INCLUDE_DIRECTORIES)
    get_filename_component(item "${item}" ABSOLUTE)
    list(APPEND options -I "${item}")
  endforeach()
  foreach(item IN LISTS arg_DEFINITIONS)
    list(APPEND options -D "${item}")
  endforeach()
  foreach(item IN LISTS arg_HEADERS)
    list(APPEND options --include "${item}")
  endforeach()
  if(arg_PREFIX)
    list(APPEND options --prefix "${arg_PREFIX}")
  endif()

  set(folder "${CMAKE_CURRENT_BINARY_DIR}/${target}.kernels")
  file(MAKE_DIRECTORY "${folder}")
  foreach(source IN LISTS arg_UNPARSED_ARGUMENTS)
    get_filename_component(path "${source}" ABSOLUTE)
    get_filename_component(name "${source}" NAME)
    string(REGEX REPLACE "[.].*$" "" stem "${name}")
    set(out "${folder}/${arg_PREFIX}${stem}.rill")
    add_custom_command(
      OUTPUT "${out}.c" "${out}.h"
      COMMAND "${RILL_RILLCC}" ${options} -o "${out}.c" --header "${out}.h" --depfile "${out}.d" "${path}"
      MAIN_DEPENDENCY "${path}"
      DEPENDS "${RILL_RILLCC}"
      DEPFILE "${out}.d"
      COMMENT "Compiling kernels of ${name}"
      VERBATIM)
    target_sources(${target} PRIVATE "${out}.c" "${out}.h")
  endforeach()
  target_include_directories(${target} PRIVATE "${folder}")
  target_link_libraries(${target} PRIVATE rill::rill)
endfunction()
