// Brings a section to life once the page is read.

const allCharts = [];

function startSection(data) {
  const place = document.getElementById(data.dataset.section);
  const section = JSON.parse(data.textContent);
  for (const command of place.querySelectorAll('.command')) command.append(copyButton(command.textContent));
  const table = place.querySelector('.rows table');
  if (!table) return;
  const rows = new RowTable(section, table);
  const charts = typeof Chart === 'undefined' ? null : new Charts(section, place.querySelector('.charts'));
  if (charts) allCharts.push(charts);
  const filter = new Filter(section, place.querySelector('.filter'), (wanted) => {
    const shown = rows.filter(wanted);
    filter.show(shown.length, section.rows.length);
    charts?.filter(shown);
  });
  filter.show(section.rows.length, section.rows.length);
}

function setChartDefaults() {
  Chart.defaults.font.family = getComputedStyle(document.body).fontFamily;
  Chart.defaults.color = cssColour('--muted');
}

const redrawAll = () => {
  setChartDefaults();
  allCharts.filter((charts) => charts.drawn).forEach((charts) => charts.draw());
};

if (typeof Chart !== 'undefined') {
  setChartDefaults();
  matchMedia('(prefers-color-scheme: dark)').addEventListener('change', redrawAll);
  addEventListener('beforeprint', () => {  // on paper everything is near, and light
    document.documentElement.classList.add('printing');
    setChartDefaults();
    allCharts.forEach((charts) => {
      charts.observer?.disconnect();
      charts.draw();
      charts.charts.forEach((chart) => chart.resize());
    });
  });
  addEventListener('afterprint', () => {
    document.documentElement.classList.remove('printing');
    redrawAll();
  });
}
document.querySelectorAll('script.data').forEach(startSection);
