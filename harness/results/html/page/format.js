'use strict';
// Figures as people read them: three digits and a unit that fits.

function inUnit(value, units) {
  const [size, unit] = units.find(([least]) => Math.abs(value) >= least) ?? units[units.length - 1];
  const scaled = value / size;
  const digits = Math.abs(scaled) >= 100 ? 0 : Math.abs(scaled) >= 10 ? 1 : 2;
  return `${Number(scaled.toFixed(digits))} ${unit}`.trim();
}

const shownTime = (ns) => inUnit(ns, [[1e9, 's'], [1e6, 'ms'], [1e3, 'µs'], [1, 'ns']]);
const shownBytes = (bytes) => inUnit(bytes, [[1e12, 'TB'], [1e9, 'GB'], [1e6, 'MB'], [1e3, 'kB'], [1, 'B']]);
const shownFlops = (rate) => inUnit(rate, [[1e12, 'TFLOP/s'], [1e9, 'GFLOP/s'], [1e6, 'MFLOP/s'], [1, 'FLOP/s']]);
const shownBandwidth = (rate) => `${shownBytes(rate)}/s`;
const shownNumber = (value) => String(Number(value.toPrecision(3)));
const shownShare = (ratio) => `${Number((100 * ratio).toPrecision(3))} %`;
const shownSpeedup = (ratio) => `${Number(ratio.toPrecision(3))}×`;
const shownError = (error) => error.toExponential(1).replace('.0e', 'e');

// 16384 is read as 16k where all its neighbours are multiples of 1024 too; other numbers stay as they are.
function shownLength(value) {
  if (value >= 1048576 && value % 1048576 === 0) return `${value / 1048576}M`;
  return value >= 1024 && value % 1024 === 0 ? `${value / 1024}k` : shownNumber(value);
}

// By the suffix of a metric's name, which is its unit.
function shownMetric(name, value) {
  if (name.endsWith('_ratio')) return shownShare(value);
  if (name.endsWith('_rel_error')) return shownError(value);
  if (name.endsWith('_ns')) return shownTime(value);
  if (name.endsWith('_bytes')) return shownBytes(value);
  return name.endsWith('_per_s') ? `${shownNumber(value)} /s` : shownNumber(value);
}

// An element with text and children; text never becomes markup.
function element(tag, properties = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (name in made) made[name] = value;
    else made.setAttribute(name, value);
  }
  made.append(...children);
  return made;
}
