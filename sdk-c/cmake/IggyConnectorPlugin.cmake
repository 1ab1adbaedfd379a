# Licensed to the Apache Software Foundation (ASF) under one or more contributor
# license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
# SPDX-License-Identifier: Apache-2.0

# iggy_connector_add_plugin(<name> [EXPORTS <version script>] <source>...)
#
# A plugin library lib<name>.so that exports what the host looks for and nothing else, or
# what another version script says. Link further libraries as of any target; those that are
# static stay inside.
function(iggy_connector_add_plugin name)
  cmake_parse_arguments(ARG "" "EXPORTS" "" ${ARGN})
  if(NOT ARG_EXPORTS)
    set(ARG_EXPORTS "${CMAKE_CURRENT_FUNCTION_LIST_DIR}/iggy-connector.map")
  endif()
  add_library(${name} MODULE ${ARG_UNPARSED_ARGUMENTS})
  target_link_libraries(${name} PRIVATE IggyConnector::sdk)
  set_target_properties(${name} PROPERTIES
    PREFIX lib
    C_VISIBILITY_PRESET hidden
    CXX_VISIBILITY_PRESET hidden
    VISIBILITY_INLINES_HIDDEN ON)
  if(NOT APPLE) # hidden visibility is not enough: what the C++ library instantiates is visible
    target_link_options(${name} PRIVATE "LINKER:--version-script,${ARG_EXPORTS}")
  endif()
endfunction()
