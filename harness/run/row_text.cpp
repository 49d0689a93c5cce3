#include "harness/run/row_text.hpp"

#include "harness/results/json.hpp"
#include "harness/results/shown_fields.hpp"

namespace inferometer {

RowTexts::RowTexts(const Sweep& sweep) {
  std::vector<const Fields*> problems;
  for (const SweepRow& row : sweep.rows) problems.push_back(&row.problem);
  if (!problems.empty()) fields_ = shown_fields(Json::object(), sweep.operator_name, problems).varying;
}

std::string RowTexts::operator()(const SweepRow& row) const {
  std::string text = row.operator_name + "/" + row.variant;
  for (const std::string& name : fields_)
    if (const Value* value = field_in(row.problem, name)) text += " " + name + "=" + short_text(*value);
  return text;
}

}  // namespace inferometer
