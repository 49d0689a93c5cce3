// What the page's scripts draw charts from.
#pragma once

#include "harness/results/report_file.hpp"

namespace inferometer {

// {"question", "baseline", "axes": [fields that the config sweeps], "treatment": [fields in which a row's baseline
// differs], "varying": [...], "metrics": [{"name", "label"}], "metrics_first", "ceilings", "rows": [{...}]}; a row as
// in the results file, without what no script shows, and with "profile", the command that profiles it.
Json chart_data(const ReportFile& file, const Json& results);

}  // namespace inferometer
