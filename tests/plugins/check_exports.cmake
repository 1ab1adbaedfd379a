# Licensed to the Apache Software Foundation (ASF) under one or more contributor
# license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
# SPDX-License-Identifier: Apache-2.0

# Fails if LIBRARY exports a name that is not one of the contract.
execute_process(COMMAND "${NM}" -D --defined-only "${LIBRARY}"
  OUTPUT_VARIABLE symbols COMMAND_ERROR_IS_FATAL ANY)
string(REGEX MATCHALL "[^ \n]+\n" names "${symbols}")
set(contract "iggy_(sink_(open|consume|close|version)|source_(open|handle|handle_v2|batch_result|close|version))")
list(LENGTH names count)
if(count EQUAL 0)
  message(FATAL_ERROR "${LIBRARY} exports nothing")
endif()
foreach(name IN LISTS names)
  string(STRIP "${name}" name)
  if(NOT name MATCHES "^${contract}$" AND NOT name MATCHES "^__(asan|ubsan|odr_asan)")
    message(FATAL_ERROR "${LIBRARY} exports ${name}")
  endif()
endforeach()
