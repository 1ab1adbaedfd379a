# Licensed to the Apache Software Foundation (ASF) under one or more contributor
# license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
# SPDX-License-Identifier: Apache-2.0

# Installs the SDK from BUILD into an empty folder and builds, tests and inspects the project
# CONSUMER with it: by find_package, and by pkg-config where there is one.
set(prefix "${WORK}/prefix")
file(REMOVE_RECURSE "${WORK}")
function(run)
  execute_process(COMMAND ${ARGN} COMMAND_ECHO STDOUT COMMAND_ERROR_IS_FATAL ANY)
endfunction()

run(${CMAKE_COMMAND} --install ${BUILD} --prefix ${prefix} --component IggyConnector)
run(${CMAKE_COMMAND} -S ${CONSUMER} -B ${WORK}/build -G ${GENERATOR}
  -DCMAKE_PREFIX_PATH=${prefix} -DCMAKE_C_COMPILER=${CC} "-DCMAKE_C_FLAGS=${FLAGS}"
  -DUPPER_SINK=${DOC}/upper_sink.c -DCLOCK_SOURCE=${DOC}/clock_source.c
  -DPLUGINS_TEST=${DOC}/plugins_test.c)
run(${CMAKE_COMMAND} --build ${WORK}/build)
run(${CMAKE_CTEST_COMMAND} --test-dir ${WORK}/build --output-on-failure)

# cc_with(<part> <argument>...): the compiler with what the part's .pc file says
function(cc_with part)
  execute_process(COMMAND ${CMAKE_COMMAND} -E env PKG_CONFIG_PATH=${folder}:$ENV{PKG_CONFIG_PATH}
    ${PKG_CONFIG} --cflags --libs iggy-connector-${part}
    OUTPUT_VARIABLE flags OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
  separate_arguments(flags UNIX_COMMAND "${FLAGS} ${flags}")
  run(${CC} -std=c99 -Werror ${ARGN} ${flags})
endfunction()

find_program(PKG_CONFIG pkg-config)
if(PKG_CONFIG)
  file(GLOB_RECURSE files ${prefix}/*.pc)
  list(GET files 0 folder)
  get_filename_component(folder ${folder} DIRECTORY)
  cc_with(sdk -fPIC -shared -fvisibility=hidden -o ${WORK}/libupper_sink.so ${DOC}/upper_sink.c)
  foreach(part IN ITEMS config json state)
    if(EXISTS ${folder}/iggy-connector-${part}.pc)
      cc_with(${part} -o ${WORK}/${part} ${CONSUMER}/${part}.c)
      run(${WORK}/${part})
    endif()
  endforeach()
else()
  message(STATUS "pkg-config is not installed: its files are not tried")
endif()
