# Licensed to the Apache Software Foundation (ASF) under one or more contributor
# license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
# SPDX-License-Identifier: Apache-2.0

# Fails if FILE has more than MOST lines, or none.
file(READ "${FILE}" text)
string(REGEX MATCHALL "\n" newlines "${text}")
list(LENGTH newlines count)
if(count EQUAL 0 OR count GREATER MOST)
  message(FATAL_ERROR "${FILE} has ${count} lines; 1 to ${MOST} are allowed")
endif()
