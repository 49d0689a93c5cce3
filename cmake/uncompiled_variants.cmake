# Without the CUDA Toolkit the .cu files are not compiled, but their variants must still be known by name, so that a
# sweep reports them as unsupported instead of calling them unknown. Writes OUTPUT with one registration for each
# `.name = "<backend>.<method>"` found in kernels/<operator>/*.cu.
function(inferometer_write_uncompiled_variants output)
  set(registrations "")
  foreach(source IN LISTS ARGN)
    file(READ ${source} text)
    if(NOT text MATCHES "RegisterVariant<")
      continue()
    endif()
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${source})
    cmake_path(GET source PARENT_PATH folder)
    cmake_path(GET folder FILENAME operator_name)
    string(REGEX REPLACE "\"[ \n]+\"" "" text "${text}")  # a summary of several literals
    string(REPLACE ";" "<semicolon>" text "${text}")  # in a list it would part two elements
    string(REGEX MATCHALL "\\.name = \"[a-z0-9_]+\\.[a-z0-9_]+\",[ \n]*\\.summary =[ \n]*\"[^\"]*\"" found "${text}")
    if(NOT found)
      message(FATAL_ERROR "${source}: registers a variant, but not in the form .name = \"backend.method\", .summary = \"...\"")
    endif()
    foreach(entry IN LISTS found)
      string(REGEX REPLACE "^\\.name = \"([^\"]*)\",[ \n]*\\.summary =[ \n]*\"([^\"]*)\"$"
        "    add(\"${operator_name}\", \"\\1\", \"\\2\");\n" registration "${entry}")
      string(REPLACE "<semicolon>" ";" registration "${registration}")
      string(APPEND registrations "${registration}")
    endforeach()
  endforeach()
  configure_file(${PROJECT_SOURCE_DIR}/cmake/uncompiled_variants.cpp.in ${output} @ONLY)
endfunction()
