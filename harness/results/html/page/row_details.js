// What a row holds beyond its line in the table: its samples, its check, its memory, its commands.

function copyButton(text) {
  const button = element('button', {type: 'button', className: 'copy', onclick: async () => {
    try {
      await navigator.clipboard.writeText(text);
    } catch {  // a page from a file may not use the clipboard: the old way asks nobody
      const field = element('textarea', {value: text});
      document.body.append(field);
      field.select();
      document.execCommand('copy');
      field.remove();
    }
    button.textContent = 'Copied';
    setTimeout(() => { button.textContent = 'Copy'; }, 1500);
  }}, 'Copy');
  return button;
}

const commandLine = (name, text) => element('div', {className: 'line'}, element('span', {}, name),
                                            element('code', {}, text), copyButton(text));

function timingFacts(timing) {
  if (!timing) return [];
  const one = timing.isolated;
  const facts = [
    ['headline', `${timing.headline}, ${shownTime(timing.headline_ns)}`],
    ['isolated', `median ${shownTime(one.median_ns)}, p5 ${shownTime(one.p5_ns)}, p95 ${shownTime(one.p95_ns)}, ` +
                 `${one.samples} samples, ${one.cache} cache, ${one.stop_reason}`],
  ];
  if (timing.amortized)
    facts.push(['amortized', `mean ${shownTime(timing.amortized.mean_ns)}, ${timing.amortized.launches} launches over ` +
                             `${timing.amortized.input_sets} input sets, ${timing.amortized.cache} cache`]);
  if (one.sm_mhz_median) facts.push(['SM clock', `${Math.round(one.sm_mhz_median)} MHz`]);
  if (one.flags.length) facts.push(['flags', one.flags.join(', ')]);
  return facts;
}

function factsOf(row) {
  const facts = [...timingFacts(row.timing)];
  if (row.check)
    facts.push(['check', `relative L2 error ${shownError(row.check.rel_l2_error ?? NaN)}, at most ` +
                         `${shownError(row.check.tolerance_rel_l2)}; ${row.check.outputs_checked} of ` +
                         `${row.check.outputs_total} outputs against ${row.check.reference}` +
                         (row.check.repeated_after_timing ? ', repeated after timing' : '')]);
  const memory = Object.entries(row.memory ?? {}).filter(([, bytes]) => bytes > 0);
  if (memory.length)
    facts.push(['memory', memory.map(([role, bytes]) => `${role.replace('_bytes', '')} ${shownBytes(bytes)}`).join(', ')]);
  for (const [name, value] of Object.entries(row.metrics))
    if (value != null) facts.push([name, shownMetric(name, value)]);
  const versions = Object.entries(row.versions ?? {});
  if (versions.length) facts.push(['versions', versions.map(([name, version]) => `${name} ${version}`).join(', ')]);
  if (row.reason) facts.push(['reason', row.reason]);
  return facts;
}

function rowDetails(row) {
  const list = element('dl', {}, ...factsOf(row).flatMap(([name, value]) => [element('dt', {}, name), element('dd', {}, value)]));
  const box = element('div', {className: 'row-details'}, list, commandLine('Measure again', row.reproduce));
  if (row.profile) box.append(commandLine('Profile', row.profile));
  return box;
}
