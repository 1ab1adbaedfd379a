# Licensed to the Apache Software Foundation (ASF) under one or more contributor
# license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
# SPDX-License-Identifier: Apache-2.0

# Fails unless PROGRAM prints the content of GOLDEN.
execute_process(COMMAND "${PROGRAM}" OUTPUT_VARIABLE got COMMAND_ERROR_IS_FATAL ANY)
file(READ "${GOLDEN}" want)
if(NOT got STREQUAL want)
  message(FATAL_ERROR "${PROGRAM} printed\n${got}\nbut ${GOLDEN} holds\n${want}")
endif()
