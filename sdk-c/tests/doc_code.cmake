# Licensed to the Apache Software Foundation (ASF) under one or more contributor
# license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
# SPDX-License-Identifier: Apache-2.0

# iggy_doc_code(<page>): writes the C code of a page to files, each under the name that
# the first line of its block says: "/* name.c: ... */".
function(iggy_doc_code page)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${page}")
  file(READ "${page}" text)
  while(text MATCHES "\n```c\n(/\\* ([a-z_]+\\.c):)")
    set(name "${CMAKE_MATCH_2}")
    string(FIND "${text}" "\n```c\n${CMAKE_MATCH_1}" begin)
    math(EXPR begin "${begin} + 6")
    string(SUBSTRING "${text}" ${begin} -1 text)
    string(FIND "${text}" "\n```" end)
    string(SUBSTRING "${text}" 0 ${end} code)
    file(CONFIGURE OUTPUT "${CMAKE_CURRENT_BINARY_DIR}/doc/${name}" CONTENT "@code@\n" @ONLY)
    string(SUBSTRING "${text}" ${end} -1 text)
  endwhile()
endfunction()
