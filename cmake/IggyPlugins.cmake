# Licensed to the Apache Software Foundation (ASF) under one or more contributor
# license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
# SPDX-License-Identifier: Apache-2.0

# Targets and functions that every directory with C code uses.

find_package(Threads REQUIRED)

# The contract alone: an include directory.
add_library(iggy_abi INTERFACE)
target_include_directories(iggy_abi INTERFACE "${PROJECT_SOURCE_DIR}/abi")

# How all C code of the project is compiled.
add_library(iggy_options INTERFACE)
target_compile_definitions(iggy_options INTERFACE _POSIX_C_SOURCE=200809L _DEFAULT_SOURCE
                                                  "PLUGIN_VERSION=\"${PROJECT_VERSION}\"")
target_compile_options(iggy_options INTERFACE
  -Wall -Wextra -Wpedantic -Werror
  $<$<COMPILE_LANGUAGE:C>:-std=c99>)
target_link_libraries(iggy_options INTERFACE iggy_abi Threads::Threads)
if(IGGY_SANITIZE)
  target_compile_options(iggy_options INTERFACE
    -fsanitize=${IGGY_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer)
  target_link_options(iggy_options INTERFACE -fsanitize=${IGGY_SANITIZE})
endif()

# iggy_add_plugin(<name> [EXPORTS <version script>] SOURCES <file>... [LIBRARIES <target>...])
#
# A plugin library build/plugins/lib<name>.so on the SDK.
function(iggy_add_plugin name)
  cmake_parse_arguments(ARG "" "EXPORTS" "SOURCES;LIBRARIES" ${ARGN})
  if(ARG_EXPORTS)
    list(PREPEND ARG_SOURCES EXPORTS ${ARG_EXPORTS})
  endif()
  iggy_connector_add_plugin(${name} ${ARG_SOURCES})
  target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR}/examples)
  target_link_libraries(${name} PRIVATE iggy_options ${ARG_LIBRARIES})
  set_target_properties(${name} PROPERTIES
    LIBRARY_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/plugins")
  if(NOT APPLE AND NOT IGGY_SANITIZE) # a sanitizer's symbols come from the program
    target_link_options(${name} PRIVATE LINKER:--no-undefined)
  endif()
endfunction()

# iggy_add_source_plugin(<name> SOURCES <file>... [LIBRARIES <target>...])
#
# As iggy_add_plugin, and a second library lib<name>_gen1.so that shows generation 1 alone.
function(iggy_add_source_plugin name)
  iggy_add_plugin(${name} ${ARGN})
  iggy_add_plugin(${name}_gen1 EXPORTS "${PROJECT_SOURCE_DIR}/cmake/generation-1.map" ${ARGN})
endfunction()

# iggy_add_test(<name> <program> <argument>...)
function(iggy_add_test name program)
  set(command ${program})
  if(IGGY_SANITIZE)
    if(TARGET ${program})
      set(command $<TARGET_FILE:${program}>)
    endif()
    list(PREPEND command ${PROJECT_SOURCE_DIR}/tests/plugins/sanitized)
  endif()
  add_test(NAME ${name} COMMAND ${command} ${ARGN})
  set_tests_properties(${name} PROPERTIES TIMEOUT 900)
endfunction()
