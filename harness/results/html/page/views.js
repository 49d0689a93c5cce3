// What a chart can show of a row: how to read it, how far it may be off, and which line it cannot cross.

const onGpu = (row) => row.backend !== 'cpu';

function arithmeticCeiling(row, ceilings) {
  if (!onGpu(row)) return ceilings.cpu_f32_flops_per_s;
  const names = {f32: 'gpu_f32_flops_per_s', int8_matmul: 'gpu_int8_ops_per_s'};
  return ceilings[names[row.work?.arithmetic] ?? 'gpu_f16_flops_per_s'];
}
const memoryCeiling = (row, ceilings) => ceilings[onGpu(row) ? 'gpu_read_bytes_per_s' : 'cpu_read_bytes_per_s'];

// Half the width of the 95 % confidence interval of the isolated median, as a share of it: the figure's own error bar.
const uncertainty = (row) => row.timing?.isolated.ci_half_width_ratio ?? null;
const around = (value, row) => (value == null || uncertainty(row) == null ? null
  : [value / (1 + uncertainty(row)), value * (1 + uncertainty(row))]);

// Horizontal lines, each ceiling once.
function ceilingLines(rows, ceilings, ceiling, shown) {
  return distinct(rows.map((row) => ceiling(row, ceilings)).filter(Boolean))
      .map((value) => ({label: `ceiling ${shown(value)}`, level: value}));
}

// The least time that the ceilings leave for the problems of a panel.
function leastTime(rows, ceilings, axis) {
  const least = new Map();
  for (const row of rows.filter((one) => onGpu(one) && one.work)) {
    const compute = row.work.flops / (arithmeticCeiling(row, ceilings) ?? Infinity);
    const memory = row.work.bytes / (memoryCeiling(row, ceilings) ?? Infinity);
    const ns = 1e9 * Math.max(compute, memory);
    const x = axis.place(row);
    if (ns > 0) least.set(x, Math.min(ns, least.get(x) ?? Infinity));
  }
  const points = [...least].map(([x, y]) => ({x, y})).sort((a, b) => a.x - b.x);
  return points.length > 1 ? [{label: 'GPU ceiling', points}] : [];
}

function throughputView(section, limit) {
  const compute = limit === 'compute';
  const field = compute ? 'flops_per_s' : 'bytes_per_s';
  const shown = compute ? shownFlops : shownBandwidth;
  const ceiling = compute ? arithmeticCeiling : memoryCeiling;
  return {
    id: field, name: compute ? 'Arithmetic rate' : 'Memory rate', shown, log: true,
    value: (row) => row.rates?.[field], range: (row) => around(row.rates?.[field], row),
    lines: (rows) => ceilingLines(rows, section.ceilings, ceiling, shown),
    caption: `${compute ? 'Floating-point operations' : 'Least bytes moved'} per second. Dashed grey: the ceiling that ` +
             'was measured on this machine.',
  };
}

function metricView({name, label}) {
  const share = name.endsWith('_ratio');
  return {id: name, name: label, shown: (value) => shownMetric(name, value), log: !share, unit: share,
          value: (row) => row.metrics[name], caption: `${label}, as the operator defines it.`};
}

// All views that the rows have figures for; the first is shown first.
function viewsOf(section) {
  const rows = section.rows.filter(hasFigure);
  const limited = (limit) => rows.filter((row) => row.rates?.limit === limit).length;
  const limits = limited('memory') > limited('compute') ? ['memory', 'compute'] : ['compute', 'memory'];
  const rates = limits.map((limit) => throughputView(section, limit));
  const speedup = {
    id: 'speedup', name: 'Speed-up', shown: shownSpeedup, log: true, value: (row) => row.speedup,
    range: (row) => row.speedup_ci, lines: () => [{label: section.baseline, level: 1}],
    caption: `How many times as fast as ${section.baseline}, on the same problem.`,
  };
  const time = {
    id: 'time', name: 'Time', shown: shownTime, log: true, value: (row) => row.timing?.headline_ns,
    range: (row) => around(row.timing?.headline_ns, row), lines: (some, axis) => leastTime(some, section.ceilings, axis),
    caption: 'Time of one launch. Dashed grey: the least time that the measured ceilings leave.',
  };
  const memory = {
    id: 'memory', name: 'Memory', shown: shownBytes, log: true, value: (row) => row.memory?.peak_bytes || null,
    caption: 'The most memory that a row held at once: inputs, outputs, workspace.',
  };
  const metrics = section.metrics.map(metricView);
  const all = section.metrics_first ? [...metrics, time]
      : [...rates, ...(section.baseline ? [speedup] : []), time, ...metrics, memory];
  const usable = all.filter((view) => rows.some((row) => view.value(row) != null));
  const special = [rooflineOf(section, rows), paretoOf(section, rows)].filter(Boolean);
  return [...usable, ...special];
}

function rooflineOf(section, rows) {
  const placed = rows.filter((row) => row.work?.flops > 0 && row.work?.bytes > 0 && row.rates?.flops_per_s);
  if (placed.length === 0) return null;
  return {id: 'roofline', name: 'Roofline', whole: true, shown: shownFlops, shownX: (v) => `${shownNumber(v)} FLOP/B`,
          xLabel: 'operations per byte', x: (row) => row.work.flops / row.work.bytes,
          value: (row) => row.rates.flops_per_s, range: (row) => around(row.rates.flops_per_s, row), rows: placed,
          roofs: true, log: true,
          caption: 'Every row by its arithmetic intensity. Dashed grey: what memory and arithmetic were measured to allow.'};
}

// What quantising costs against what it brings. A row that quantises nothing has the error of its own rounding.
function paretoOf(section, rows) {
  const name = section.metrics.map((metric) => metric.name).find((one) => one.endsWith('rel_error'));
  if (!name || !rows.some((row) => row.metrics[name] > 0)) return null;
  const error = (row) => row.metrics[name] || row.check?.rel_l2_error || null;
  const bySpeed = rows.some((row) => row.speedup != null && row.metrics[name] > 0) && !section.metrics_first;
  const bits = rows.some((row) => row.metrics.weights_bits_effective);
  const x = bySpeed ? (row) => row.speedup
      : bits ? (row) => row.metrics.weights_bits_effective : (row) => row.timing?.headline_ns;
  return {id: 'pareto', name: bySpeed ? 'Error against speed' : bits ? 'Error against bits' : 'Error against time',
          whole: true, byBits: true, log: true, front: bySpeed ? 'right' : 'left', rows, x, value: error, shown: shownError,
          shownX: bySpeed ? shownSpeedup : bits ? shownNumber : shownTime,
          xLabel: bySpeed ? `speed-up over ${section.baseline}` : bits ? 'bits for each weight, scales counted' : 'time',
          caption: `Relative L2 error, lower is better, ${bySpeed ? 'further right is faster' : 'further left is less'}. ` +
                   'The grey line joins the rows that no other row beats in both; rows that quantise nothing stand at ' +
                   'their rounding error.'};
}
