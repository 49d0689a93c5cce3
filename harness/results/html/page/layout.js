// What goes where in the charts of a sweep: one field along x, what tells lines apart, what tells panels apart.

const fieldText = (row, name) => JSON.stringify(row.problem[name] ?? null).replaceAll('"', '');
const hasFigure = (row) => row.status === 'ok' || row.status === 'suspect';

const distinct = (values) => [...new Set(values)];

// Whether rows that agree in `names` agree in `other`.
function determines(rows, names, other) {
  const seen = new Map();
  return rows.every((row) => {
    const key = names.map((name) => fieldText(row, name)).join('|');
    const value = other(row);
    if (!seen.has(key)) seen.set(key, value);
    return seen.get(key) === value;
  });
}

// Fields that can go along x, the likeliest first: swept by the config, many values, large ones. Of fields that always
// change together the first one stands for all.
function xFields(section) {
  const rows = section.rows;
  const candidates = section.varying.map((name) => {
    const values = distinct(rows.map((row) => fieldText(row, name)));
    const numeric = rows.every((row) => typeof row.problem[name] === 'number');
    const swept = section.axes.includes(name) && numeric && values.length > 2;
    const largest = numeric ? Math.max(...rows.map((row) => row.problem[name])) : 0;
    return {name, swept, numeric, count: values.length, largest};
  });
  const order = (a, b) => b.swept - a.swept || b.count - a.count || b.numeric - a.numeric || b.largest - a.largest;
  const chosen = [];
  for (const candidate of candidates.sort(order)) {
    const same = chosen.find((other) => determines(rows, [other.name], (row) => fieldText(row, candidate.name)) &&
                                        determines(rows, [candidate.name], (row) => fieldText(row, other.name)));
    if (!same) chosen.push({...candidate, label: candidate.name});
    else if (same.numeric && candidate.numeric && rows.every((row) => row.problem[same.name] === row.problem[candidate.name]))
      same.label += ` = ${candidate.name}`;
  }
  return chosen;
}

const labelOf = (row, names) => names.map((name) => `${name} ${fieldText(row, name)}`).join(', ');

// {x, panels: [{label, rows}], series: [label], seriesOf(row)}. Fields in which a row differs from its baseline tell
// lines apart; of the others those that follow from x or the variant are left out, and the rest tells panels apart, or
// lines too where that leaves one panel that can still be read.
function layoutOf(section, x) {
  const rows = section.rows;
  const others = section.varying.filter((name) => name !== x.name);
  const kept = (names, rest) => rest.filter((name) => !determines(rows, names, (row) => fieldText(row, name)));
  const byVariant = (name) => determines(rows.map((row) => ({problem: {variant: row.variant, [name]: row.problem[name]}})),
                                         ['variant'], (row) => fieldText(row, name));
  const treatment = others.filter((name) => section.treatment.includes(name) && !byVariant(name));
  let apart = kept([x.name], others.filter((name) => !section.treatment.includes(name) && !byVariant(name)));
  let lines = treatment;
  const seriesWith = (names) => distinct(rows.map((row) => `${row.variant} ${labelOf(row, names)}`.trim()));
  const kMostLines = 6;
  if (apart.length > 0 && seriesWith([...treatment, ...apart]).length <= kMostLines) {
    lines = [...treatment, ...apart];
    apart = [];
  }
  const seriesOf = (row) => [row.variant, labelOf(row, lines)].filter(Boolean).join(' · ');
  const panels = new Map();
  for (const row of rows) {
    const label = labelOf(row, apart);
    if (!panels.has(label)) panels.set(label, {label, rows: []});
    panels.get(label).rows.push(row);
  }
  return {x, panels: [...panels.values()], series: distinct(rows.map(seriesOf)), seriesOf};
}

// The values along x: numbers on a logarithmic scale, where all are positive; else names, side by side.
function xAxisOf(rows, x) {
  const values = distinct(rows.map((row) => row.problem[x.name]));
  if (x.numeric && values.every((value) => value > 0)) {
    return {log: true, label: x.label, ticks: values.sort((a, b) => a - b), place: (row) => row.problem[x.name]};
  }
  const texts = x.numeric ? values.sort((a, b) => a - b).map(String) : distinct(rows.map((row) => fieldText(row, x.name)));
  return {log: false, label: x.label, names: texts, ticks: texts.map((_, i) => i), joined: x.numeric,
          place: (row) => texts.indexOf(fieldText(row, x.name))};
}
