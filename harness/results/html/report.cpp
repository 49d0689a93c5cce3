#include "harness/results/html/report.hpp"

#include <cstddef>

#include "harness/results/html/answers.hpp"
#include "harness/results/html/assets.hpp"
#include "harness/results/html/chart_data.hpp"
#include "harness/results/html/section.hpp"
#include "harness/results/html/text.hpp"

namespace inferometer {
namespace {

// Nothing is fetched, whatever a label holds: the browser itself is told so.
constexpr std::string_view kPolicy =
    "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:";

constexpr std::string_view kNoCharts =
    "This report was made by a build without Chart.js, so it has no charts; every figure is in the tables. With the "
    "Debian package libjs-chart.js installed, the next build draws them.";

std::string head(const std::vector<ReportFile>& files, const PageParts& parts) {
  const std::string title = files.size() == 1 ? files.front().question : std::to_string(files.size()) + " questions";
  std::string text = std::string(kHtmlReportHeading) + "\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n";
  text.append("<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n");
  text.append("<meta name=\"color-scheme\" content=\"light dark\">\n");
  text.append("<meta http-equiv=\"Content-Security-Policy\" content=\"").append(kPolicy).append("\">\n");
  text.append("<meta name=\"generator\" content=\"inferometer\">\n");
  text.append(html_element("title", "", title + " - Inferometer")).append("\n<style>\n");
  return text.append(parts.style).append("</style>\n</head>\n");
}

std::string overview(const std::vector<ReportFile>& files, const std::vector<NamedResults>& sources) {
  std::string text = "<nav aria-label=\"Questions\" class=\"overview\">\n<h2>Questions and answers</h2>\n<ol>\n";
  for (std::size_t i = 0; i < files.size(); ++i) {
    text.append("<li><a href=\"#q").append(std::to_string(i + 1)).append("\">");
    text.append(html_text(files[i].question)).append("</a>").append(answer_lines(files[i], sources[i].json));
    text.append("</li>\n");
  }
  return text.append("</ol>\n</nav>\n");
}

std::string scripts(const std::vector<ReportFile>& files, const std::vector<NamedResults>& sources,
                    const PageParts& parts) {
  std::string text;
  for (std::size_t i = 0; i < files.size(); ++i) {
    text.append("<script type=\"application/json\" class=\"data\" data-section=\"q").append(std::to_string(i + 1));
    text.append("\">").append(script_json(chart_data(files[i], sources[i].json))).append("</script>\n");
  }
  if (!parts.chart_library.empty()) text.append("<script>").append(parts.chart_library).append("</script>\n");
  return text.append("<script>\n").append(parts.script).append("</script>\n");
}

}  // namespace

PageParts built_in_parts() {
  return {.style = report_style(), .script = report_script(), .chart_library = chart_library()};
}

std::string html_report(const std::vector<NamedResults>& sources, const PageParts& parts) {
  std::vector<ReportFile> files;
  files.reserve(sources.size());
  for (const NamedResults& source : sources) files.push_back(read_report_file(source));
  std::string text =
      head(files, parts) + "<body>\n<header class=\"masthead\"><p class=\"brand\">Inferometer</p></header>\n<main>\n";
  if (parts.chart_library.empty()) text += html_element("p", "class=\"note\"", kNoCharts) + "\n";
  if (files.size() > 1) text += overview(files, sources);
  for (std::size_t i = 0; i < files.size(); ++i)
    text += report_section("q" + std::to_string(i + 1), files[i], sources[i]);
  text +=
      "</main>\n<footer><p>Every figure was taken after its output was checked against a double-precision reference, "
      "and "
      "checked again afterwards; a row that failed has no figure.</p></footer>\n";
  return text + scripts(files, sources, parts) + "</body>\n</html>\n";
}

}  // namespace inferometer
