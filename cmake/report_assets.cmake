# Writes OUTPUT with the parts of an HTML report as strings: PAGE/style.css, the scripts of PAGE, and Chart.js from
# CHART_LIBRARY where it was found.

# In the order in which they use each other.
set(scripts format layout views marks chart datasets charts row_details table filter page)

# A literal of at most 60,000 bytes, which every compiler takes; adjacent ones are one string.
function(string_literals variable text)
  set(literals "")
  string(LENGTH "${text}" length)
  set(begin 0)
  while(begin LESS length)
    string(SUBSTRING "${text}" ${begin} 60000 part)
    string(APPEND literals "\n    R\"inferometer(${part})inferometer\"")
    math(EXPR begin "${begin} + 60000")
  endwhile()
  if(NOT literals)
    set(literals "\"\"")
  endif()
  set(${variable} "${literals}" PARENT_SCOPE)
endfunction()

file(READ ${PAGE}/style.css style)
set(script "")
foreach(name IN LISTS scripts)
  file(READ ${PAGE}/${name}.js text)
  string(APPEND script "${text}")
endforeach()
set(chart "")
if(EXISTS "${CHART_LIBRARY}")
  file(READ "${CHART_LIBRARY}" chart)
endif()
string_literals(style "${style}")
string_literals(script "${script}")
string_literals(chart "${chart}")
file(WRITE ${OUTPUT} "// Made by cmake/report_assets.cmake.
#include \"harness/results/html/assets.hpp\"

namespace inferometer {

std::string_view report_style() { return ${style}; }
std::string_view report_script() { return ${script}; }
std::string_view chart_library() { return ${chart}; }

}  // namespace inferometer
")
