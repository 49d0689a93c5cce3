// The lines of one chart.

function seriesDataset(label, index, points, joined) {
  const mark = markOf(index);
  return {label, data: points, showLine: joined, borderColor: mark.colour, backgroundColor: mark.colour, borderWidth: 1.8,
          borderDash: mark.dash, pointStyle: mark.shape, pointRadius: 4, pointHoverRadius: 6, pointBorderWidth: 1.6,
          clip: 8};
}

function referenceDataset(line, xs) {
  const points = line.points ?? [xs[0], xs.at(-1)].map((x) => ({x, y: line.level}));
  return {label: line.label, name: line.label, data: points, showLine: true, borderColor: cssColour('--muted'), borderWidth: 1.3,
          borderDash: [5, 4], pointRadius: 0, pointHitRadius: 0, order: 10};
}

const pointsOf = (rows, view, place) => rows
    .filter((row) => view.value(row) != null)
    .map((row) => ({x: place(row), y: view.value(row), range: view.range?.(row) ?? null, row}))
    .sort((a, b) => a.x - b.x);

// A line for each series of a panel. One that has no place on a logarithmic axis (block_size 0: not in blocks), or a
// single point where others have many, is a level that the others are read against.
function panelDatasets(panel, layout, view, axis, hidden) {
  const datasets = [];
  layout.series.forEach((label, index) => {
    if (hidden.has(label)) return;
    const rows = panel.rows.filter((row) => layout.seriesOf(row) === label);
    const points = pointsOf(rows, view, axis.place).filter((point) => !axis.log || point.x > 0);
    if (points.length > 0) datasets.push(seriesDataset(label, index, points, axis.log || axis.joined));
    const levels = axis.log ? pointsOf(rows, view, axis.place).filter((point) => !(point.x > 0)) : [];
    if (levels.length === 1) {
      const ends = [axis.ticks[0], axis.ticks.at(-1)].map((x) => ({...levels[0], x, range: null}));
      datasets.push({...seriesDataset(label, index, ends, true), pointRadius: 3});
    }
  });
  for (const line of view.lines?.(panel.rows.filter((row) => view.value(row) != null), axis) ?? [])
    datasets.push(referenceDataset(line, axis.log ? axis.ticks : [-0.5, axis.names.length - 0.5]));
  return datasets;
}

// Rows that no other row beats in both directions, from the best error on.
function frontOf(points, side) {
  const further = (a, b) => (side === 'right' ? a.x - b.x : b.x - a.x);
  const front = [];
  for (const point of [...points].sort((a, b) => a.y - b.y || further(b, a)))
    if (front.length === 0 || further(point, front.at(-1)) > 0) front.push(point);
  return front;
}

// What memory and arithmetic allow at each intensity.
function roofDatasets(rows, ceilings, min, max) {
  const roofs = new Map();
  for (const row of rows) {
    const [memory, compute] = [memoryCeiling(row, ceilings), arithmeticCeiling(row, ceilings)];
    if (memory && compute) roofs.set(`${memory} ${compute}`, {memory, compute});
  }
  return [...roofs.values()].map(({memory, compute}) => {
    const ridge = Math.min(Math.max(compute / memory, min), max);
    const points = [min, ridge, max].map((x) => ({x, y: Math.min(memory * x, compute)}));
    return referenceDataset({label: `${shownFlops(compute)}, ${shownBandwidth(memory)}`, points});
  });
}

// Views of all rows at once: {datasets, axis}.
function wholeDatasets(view, section, layout, rows, hidden) {
  const xs = view.rows.map(view.x).filter((value) => value > 0);
  const [low, high] = [Math.min(...xs), Math.max(...xs)];
  const room = Math.max(1.2, (high / low) ** 0.06);
  const axis = {roof: true, label: view.xLabel, shown: view.shownX, min: low / room, max: high * room};
  const seriesOf = view.byBits ? (row) => labelBits(row, section) : layout.seriesOf;
  const series = distinct(section.rows.filter(hasFigure).map(seriesOf));
  const shown = rows.filter((row) => view.rows.includes(row) && view.x(row) > 0);
  const datasets = series.map((label, index) => hidden.has(label) ? null : seriesDataset(
      label, index, pointsOf(shown.filter((row) => seriesOf(row) === label), view, view.x), false)).filter(Boolean);
  if (view.roofs) datasets.push(...roofDatasets(shown, section.ceilings, axis.min, axis.max));
  if (view.front) {
    const front = frontOf(datasets.flatMap((dataset) => dataset.data), view.front);
    if (front.length > 1) datasets.push(referenceDataset({label: 'best of all rows', points: front.map(({x, y}) => ({x, y}))}));
  }
  return {datasets, axis, series};
}

// Bit widths and formats tell lines apart, whatever else the sweep varies.
function labelBits(row, section) {
  const names = section.varying.filter((name) => /bits|format|group_size|symmetric/.test(name));
  return [row.variant, labelOf(row, names)].filter(Boolean).join(' · ');
}
