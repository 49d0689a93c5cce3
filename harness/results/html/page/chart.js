// One chart of Chart.js from one panel: scales, lines, error bars, ceilings.

const errorBars = {
  id: 'errorBars',
  afterDatasetsDraw(chart) {
    const {ctx, scales} = chart;
    chart.data.datasets.forEach((dataset, i) => {
      if (!chart.isDatasetVisible(i)) return;
      ctx.save();
      ctx.strokeStyle = dataset.borderColor;
      ctx.lineWidth = 1.4;
      dataset.data.forEach((point, j) => {
        if (!point.range) return;
        const x = chart.getDatasetMeta(i).data[j].x;
        const [low, high] = point.range.map((value) => scales.y.getPixelForValue(value));
        ctx.beginPath();
        for (const y of [low, high]) {
          ctx.moveTo(x - 4, y);
          ctx.lineTo(x + 4, y);
        }
        ctx.moveTo(x, low);
        ctx.lineTo(x, high);
        if (Math.abs(low - high) > 2) ctx.stroke();  // narrower than the point itself it cannot be seen
      });
      ctx.restore();
    });
  },
};

// The names of lines that are not in the legend, at their right ends.
const lineNames = {
  id: 'lineNames',
  afterDatasetsDraw(chart) {
    const {ctx, chartArea} = chart;
    ctx.save();
    ctx.beginPath();
    ctx.rect(chartArea.left, chartArea.top - 12, chartArea.width, chartArea.height + 12);
    ctx.clip();
    ctx.font = `11px ${Chart.defaults.font.family}`;
    ctx.fillStyle = cssColour('--muted');
    ctx.textAlign = 'right';
    chart.data.datasets.forEach((dataset, i) => {
      if (!dataset.name) return;
      const last = chart.getDatasetMeta(i).data.at(-1);
      if (last) ctx.fillText(dataset.name, Math.min(last.x, chartArea.right) - 4, last.y - 5);
    });
    ctx.restore();
  },
};

// Round values of a logarithmic scale: powers of ten; between few of them 2 and 5 too.
function logTicks(min, max) {
  const decades = Math.log10(max / min);
  const steps = decades > 4 ? [1] : decades > 0.9 ? [1, 2, 5] : [1, 1.2, 1.5, 2, 2.5, 3, 4, 5, 6, 7, 8, 9];
  const ticks = [];
  for (let power = Math.floor(Math.log10(min)); power <= Math.ceil(Math.log10(max)); ++power)
    for (const step of steps) ticks.push(step * 10 ** power);
  const inside = ticks.filter((tick) => tick >= min && tick <= max);
  return inside.length > 1 ? inside : [min, max];
}

// The scale that all panels of a view share, so that they can be compared by eye.
function yScaleOf(view, values, straight) {
  const log = view.log && !straight && values.every((value) => value > 0);
  const shared = {title: {display: false}, grid: {color: cssColour('--grid')}, border: {display: false}};
  const ticks = {color: cssColour('--muted'), callback: (value) => view.shown(value)};
  if (!log) return {...shared, type: 'linear', min: 0, max: view.unit ? 1 : undefined, ticks};
  const [low, high] = [Math.min(...values), Math.max(...values)];
  const room = Math.max(1.12, (high / low) ** 0.08);
  const [min, max] = [low / room, high * room];
  return {...shared, type: 'logarithmic', min, max, ticks: {...ticks, autoSkip: false},
          afterBuildTicks: (axis) => { axis.ticks = logTicks(min, max).map((value) => ({value})); }};
}

function xScaleOf(axis, title) {
  const shared = {title: {display: title, text: axis.label, color: cssColour('--muted')},
                  grid: {color: cssColour('--grid')}, border: {color: cssColour('--rule')}};
  const ticks = {color: cssColour('--muted'), maxRotation: 40, autoSkip: true, autoSkipPadding: 8};
  if (axis.roof) {
    return {...shared, type: 'logarithmic', min: axis.min, max: axis.max,
            ticks: {...ticks, callback: (value) => axis.shown(value)},
            afterBuildTicks: (scale) => { scale.ticks = logTicks(axis.min, axis.max).map((value) => ({value})); }};
  }
  if (!axis.log) {
    return {...shared, type: 'linear', min: -0.5, max: axis.names.length - 0.5,
            ticks: {...ticks, autoSkip: false, callback: (value) => axis.names[value] ?? ''},
            afterBuildTicks: (scale) => { scale.ticks = axis.ticks.map((value) => ({value})); }};
  }
  const [low, high] = [axis.ticks[0], axis.ticks.at(-1)];
  const room = Math.max(1.05, (high / low) ** 0.03);
  return {...shared, type: 'logarithmic', min: low / room, max: high * room,
          ticks: {...ticks, callback: (value) => shownLength(value)},
          afterBuildTicks: (scale) => { scale.ticks = axis.ticks.map((value) => ({value})); }};
}

function drawChart(canvas, {datasets, x, y, view, shownX}) {
  const tooltipLabel = ({dataset, raw}) => {
    if (!raw.row) return `${dataset.label}: ${view.shown(raw.y)}`;
    const near = uncertainty(raw.row);
    return `${dataset.label}: ${view.shown(raw.y)}${near == null || !view.range ? '' : ` ± ${shownShare(near)}`}`;
  };
  return new Chart(canvas, {
    type: 'scatter',
    data: {datasets},
    options: {
      responsive: true, maintainAspectRatio: false, animation: false,  // printing waits for none
      interaction: {mode: 'nearest', intersect: false}, scales: {x, y},
      plugins: {legend: {display: false},
                tooltip: {callbacks: {label: tooltipLabel, title: ([item]) => shownX(item.raw)}}},
    },
    plugins: [errorBars, lineNames],
  });
}
