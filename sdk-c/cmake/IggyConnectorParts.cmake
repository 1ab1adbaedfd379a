# Licensed to the Apache Software Foundation (ASF) under one or more contributor
# license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
# SPDX-License-Identifier: Apache-2.0

# The libraries under the optional parts of the SDK, as the targets IggyConnector::cjson and
# IggyConnector::msgpack. Neither is there when it is not installed.
find_package(PkgConfig QUIET)

# iggy_connector_find(<target> <header> <library names> <pkg-config names>)
function(iggy_connector_find target header libraries modules)
  string(TOUPPER IGGY_${target} prefix)
  if(PkgConfig_FOUND)
    pkg_search_module(${prefix}_PC QUIET ${modules})
  endif()
  find_path(${prefix}_INCLUDE_DIR ${header} HINTS ${${prefix}_PC_INCLUDE_DIRS})
  find_library(${prefix}_LIBRARY NAMES ${libraries} HINTS ${${prefix}_PC_LIBRARY_DIRS})
  mark_as_advanced(${prefix}_INCLUDE_DIR ${prefix}_LIBRARY)
  if(${prefix}_INCLUDE_DIR AND ${prefix}_LIBRARY AND NOT TARGET IggyConnector::${target})
    add_library(IggyConnector::${target} UNKNOWN IMPORTED GLOBAL)
    set_target_properties(IggyConnector::${target} PROPERTIES
      IMPORTED_LOCATION "${${prefix}_LIBRARY}"
      INTERFACE_INCLUDE_DIRECTORIES "${${prefix}_INCLUDE_DIR}")
  endif()
endfunction()

iggy_connector_find(cjson cjson/cJSON.h cjson libcjson)
iggy_connector_find(msgpack msgpack.h "msgpack-c;msgpackc" "msgpack-c;msgpack")
